"""Fingerprints: what a model depends on."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from abcgbm._version import VERSION
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.binning import BinnedRows
from abcgbm.data.digest import digest_of
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.base_class import BasePolicy, WorstBases
from abcgbm.training.resolved import ResolvedParameters

Fingerprint = dict[str, str]  # a short value as text, of a longer one its digest

# Parameters that decide on the trees just as they are.
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
# These stand for nothing in the model, or only for how far training goes.
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
_MAX_CHARACTERS = 60  # of a value that is kept as it is
_DIGEST = "sha256:"
_TABLES = ("", "_val")  # what the names of their arguments end with


def fingerprint_of(
    plan: ResolvedParameters, learned: BinnedRows, validated: BinnedRows | None
) -> Fingerprint:
    """Return what a training depends on, settled: "auto" is what it became."""
    facts = {"version of abcgbm": VERSION, **_of_plan(plan), **_of_columns(learned.table)}
    for rows, suffix in zip((learned, validated), _TABLES, strict=True):
        facts |= {} if rows is None else _of_rows(rows, suffix)
    return {name: _text(value) for name, value in facts.items()}


def differences(then: Fingerprint, now: Fingerprint) -> list[str]:
    """Say of each fact that is another now what it was and what it is; values too long are left out."""
    names = [name for name in (then | now) if not _is_same(name, then, now)]
    follow = {
        name
        for suffix in _TABLES
        if _shape(suffix) in names
        for name in (*_digests(suffix), _bins(suffix))
    }
    return [
        _difference(name, then.get(name), now.get(name)) for name in names if name not in follow
    ]


def _is_same(name: str, then: Fingerprint, now: Fingerprint) -> bool:
    """Whether a fact is. One rank alone knows digests of rows, several know those of their bins."""
    for suffix in _TABLES:
        bins = _bins(suffix)
        if name in (*_digests(suffix), bins) and (bins in then) != (bins in now):
            return True  # which the losses of the steps so far will tell
    return then.get(name) == now.get(name)


def _difference(name: str, then: str | None, now: str | None) -> str:
    if then is None or now is None:
        return f"{name} was {'not ' if then is None else ''}given"
    is_short = not then.startswith(_DIGEST) and not now.startswith(_DIGEST)
    return f"{name} was {then}, is {now}" if is_short else f"{name} is another"


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_CHARACTERS else _DIGEST + digest_of(text)


def _of_plan(plan: ResolvedParameters) -> dict[str, Any]:
    settings, features = plan.settings, plan.features
    return {
        **{name: getattr(settings, name) for name in _AS_GIVEN},
        "algorithm": settings.algorithm.name,
        "base_class": _policy(plan.base_policy),
        "n_projections": plan.n_projections,
        "max_features": features.max_features or None,
        "interaction_cst": (features.max_path_features, features.interaction_groups),
        "early_stopping": plan.stops_early,
        "scoring": _scoring(settings),
        "random_state": f"seed {plan.seed}",
        "class_weight": plan.classes.factor.tolist(),
        "classes": plan.classes.labels.tolist(),
    }


def _policy(policy: BasePolicy) -> str:
    """The first base class is drawn, so it is the random state's."""
    return repr(replace(policy, first=0) if isinstance(policy, WorstBases) else policy)


def _scoring(settings: Parameters) -> str:
    """Of a callable only what it calls itself can be known, without where it lies in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(settings.scoring.given))


def _of_columns(table: BinnedTable) -> dict[str, Any]:
    names = table.feature_names
    return {
        "the names of X": None if names is None else names.tolist(),
        "categorical_features": np.flatnonzero(table.schema.is_categorical).tolist(),
    }


def _of_rows(binned: BinnedRows, suffix: str) -> dict[str, Any]:
    rows, table = binned
    bins = [table.thresholds, table.encoding.categories]
    shape = {_shape(suffix): f"{rows.n_rows} rows, {table.shape[1]} features"}
    if not rows.shard.is_single:  # and another rank may have these rows another time
        return shape | {_bins(suffix): _DIGEST + digest_of(bins)}
    values = ([table.binned.state(), *bins], rows.y, rows.sample_weight)
    digests = (_DIGEST + digest_of(of) for of in values)
    return shape | dict(zip(_digests(suffix), digests, strict=True))


def _bins(suffix: str) -> str:
    return f"the bins of X{suffix}"


def _shape(suffix: str) -> str:
    return f"the shape of X{suffix}"


def _digests(suffix: str) -> tuple[str, str, str]:
    return f"X{suffix}", f"y{suffix}", f"sample_weight{suffix}"
