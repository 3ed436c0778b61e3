"""Fingerprint of a fit: everything the model depends on, checked before a fit is resumed."""

# A fingerprint has every resolved parameter, and separate digests of bins, labels and weights, so that
# an error can name what changed. One digest of everything could not.

import re
from dataclasses import replace
from typing import Any

import numpy as np

from abcgbm._version import VERSION
from abcgbm.data.binning import BinnedRows
from abcgbm.data.digest import digest_of
from abcgbm.training.base_class import WorstBases
from abcgbm.training.resolved import ResolvedParameters

Fingerprint = dict[str, str]  # values as text; of a long value its digest

# Parameters that determine the trees by their values.
_AS_GIVEN = (
    "learning_rate",
    "max_leaf_nodes",
    "max_depth",
    "min_samples_leaf",
    "min_gain",
    "l2_regularization",
    "min_hessian_leaf",
    "max_bins",
    "categorical_smoothing",
    "categorical_penalty",
    "handle_unknown",
    "subsample",
    "sequential_residuals",
    "line_search",
    "baseline",
    "validation_fraction",
    "n_iter_no_change",
    "refit",
    "tol",
    "recenter",
)
# Parameters without influence on the model, except on the number of its iterations.
NOT_IN_FINGERPRINT = (
    "max_iter",
    "time_limit",
    "callbacks",
    "keep_on_interrupt",
    "n_jobs",
    "verbose",
    "warm_start",
    "checkpoint",
    "checkpoint_every",
)
_MAX_CHARACTERS = 60  # of a value that is stored as text
_DIGEST = "sha256:"
_TABLES = ("", "_val")  # suffixes of the arguments of fit


def fingerprint_of(
    resolved: ResolvedParameters, train: BinnedRows, validation: BinnedRows | None
) -> Fingerprint:
    """Return everything that the model depends on, with resolved values for "auto"."""
    names, is_categorical = train.table.feature_names, train.table.schema.is_categorical
    entries = {
        "version of abcgbm": VERSION,
        **_of_resolved(resolved),
        "the names of X": None if names is None else names.tolist(),
        "categorical_features": np.flatnonzero(is_categorical).tolist(),
    }
    for rows, suffix in zip((train, validation), _TABLES, strict=True):
        entries |= {} if rows is None else _of_rows(rows, suffix)
    return {name: _text(value) for name, value in entries.items()}


def differences(then: Fingerprint, now: Fingerprint) -> list[str]:
    """Return a text for each entry that differs; values are named unless they are long."""
    names = [name for name in (then | now) if not _is_same(name, then, now)]
    # Where the shape of a table differs, so do its digests.
    implied = {
        name
        for suffix in _TABLES
        if _shape(suffix) in names
        for name in (*_digests(suffix), _bins(suffix))
    }
    return [
        _difference(name, then.get(name), now.get(name)) for name in names if name not in implied
    ]


def _is_same(name: str, then: Fingerprint, now: Fingerprint) -> bool:
    # A single rank has digests of its rows, several ranks only those of their bins. Where these
    # cannot be compared, the losses of the trees show on resume whether the rows are the same.
    for suffix in _TABLES:
        bins = _bins(suffix)
        if name in (*_digests(suffix), bins) and (bins in then) != (bins in now):
            return True
    return then.get(name) == now.get(name)


def _difference(name: str, then: str | None, now: str | None) -> str:
    if then is None or now is None:
        return f"{name} was {'not ' if then is None else ''}given"
    is_short = not then.startswith(_DIGEST) and not now.startswith(_DIGEST)
    return f"{name} was {then}, is {now}" if is_short else f"{name} differs"


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_CHARACTERS else _DIGEST + digest_of(text)


def _of_resolved(resolved: ResolvedParameters) -> dict[str, Any]:
    settings, features, policy = resolved.settings, resolved.features, resolved.base_policy
    if isinstance(policy, WorstBases):
        policy = replace(policy, first=0)  # it is drawn, so it follows from the seed
    # The text of a callable contains its address in memory.
    scoring = re.sub(r" at 0x[0-9a-fA-F]+", "", str(settings.scoring.given))
    return {
        **{name: getattr(settings, name) for name in _AS_GIVEN},
        "algorithm": settings.algorithm.name,
        "base_class": repr(policy),
        "n_projections": resolved.n_projections,
        "max_features": features.max_features or None,
        "interaction_cst": (features.max_path_features, features.interaction_groups),
        "early_stopping": resolved.stops_early,
        "scoring": scoring,
        "random_state": f"seed {resolved.seed}",
        "class_weight": resolved.classes.factor.tolist(),
        "classes": resolved.classes.labels.tolist(),
    }


def _of_rows(binned: BinnedRows, suffix: str) -> dict[str, Any]:
    rows, table = binned
    bins = [table.thresholds, table.encoding.categories]
    shape = {_shape(suffix): f"{rows.n_rows} rows, {table.shape[1]} features"}
    if not rows.shard.is_single:  # on resume the rows may be distributed differently
        return shape | {_bins(suffix): _DIGEST + digest_of(bins)}
    values = ([table.binned.state(), *bins], rows.y, rows.sample_weight)
    digests = (_DIGEST + digest_of(of) for of in values)
    return shape | dict(zip(_digests(suffix), digests, strict=True))


# Names of the entries, as error messages show them and checkpoints store them.


def _bins(suffix: str) -> str:
    return f"the bins of X{suffix}"


def _shape(suffix: str) -> str:
    return f"the shape of X{suffix}"


def _digests(suffix: str) -> tuple[str, str, str]:
    return f"X{suffix}", f"y{suffix}", f"sample_weight{suffix}"
