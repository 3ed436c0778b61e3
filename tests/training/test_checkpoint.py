"""A resumed fit gives the same bytes as an uninterrupted one."""

import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Categorical,
    Checkpoint,
    TimeLimit,
    TreePerClass,
)
from models import KINDS_OF_FIT, noisy_data, small, with_fields

ROWS, LABELS = noisy_data(n_rows=400, n_classes=4)
X, Y = ROWS[:250], LABELS[:250]
DATA = {"X": X, "y": Y}
WITH_VALIDATION = DATA | {"X_val": ROWS[250:], "y_val": LABELS[250:]}
WEIGHT = np.random.default_rng(0).integers(0, 4, 250) / 2
LEVELS = np.array(["a", "b", "c", "d", "e", "f"])
CODES = np.random.default_rng(1).integers(0, 6, 250)
FRAME = pd.DataFrame({"x": X[:, 0], "level": pd.Categorical(LEVELS[(CODES + Y) % 6]), "z": X[:, 1]})
EAGER = {"learning_rate": 0.25, "max_iter": 60, "n_iter_no_change": 4}
ALGORITHMS = KINDS_OF_FIT | {
    "shared, drawn": with_fields(KINDS_OF_FIT["shared, drawn"], baseline="prior"),
    "balanced": {"algorithm": "abc-mart", "class_weight": "balanced"},
    "pairs": {"interaction_cst": "pairwise", "algorithm": "abc-logitboost"},
}
every_algorithm = pytest.mark.parametrize("variant", ALGORITHMS.values(), ids=ALGORITHMS)


def assert_same_fit(one: ABCBoostClassifier, other: ABCBoostClassifier) -> None:
    """Check that models and histories are equal bit for bit."""
    assert one.model_ == other.model_
    assert one.history_ == other.history_
    assert one.refit_history_ == other.refit_history_


def every_checkpoint(model: ABCBoostClassifier, folder: Path, **data: object) -> list[Path]:
    """Fit, and return the checkpoints after each iteration of all phases."""
    current, kept = folder / "current", []

    def keep(_):
        kept.append(folder / f"after {len(kept) + 1}")
        shutil.copy(current, kept[-1])

    model.set_params(callbacks=[keep, Checkpoint(current, every=1)]).fit(**data)
    return [*kept, current]


def some(paths: list[Path], most: int = 5) -> list[Path]:
    """Return the first, the last, and some values between them."""
    return [paths[i] for i in sorted({*np.linspace(0, len(paths) - 1, most).astype(int)})]


def assert_resumes(parameters: dict, data: dict, folder: Path) -> None:
    """Check that a fit resumed from (some of) its checkpoints gives the same result."""
    whole = small(**parameters)
    paths = every_checkpoint(whole, folder, **data)
    assert len(paths) > 3
    for path in some(paths):
        assert_same_fit(small(**parameters).fit(**data, resume_from=path), whole)


# ------------------------------------------------------------------------------------- same bytes


@every_algorithm
def test_fit_resumes_from_any_iteration(variant, tmp_path):
    assert_resumes({"max_iter": 7} | variant, DATA, tmp_path)


@every_algorithm
def test_fit_with_early_stopping_resumes_from_any_iteration(variant, tmp_path):
    assert_resumes(EAGER | variant, WITH_VALIDATION, tmp_path)


@pytest.mark.parametrize("name", ["search with a gap", "shared, drawn", "balanced"])
def test_fit_with_held_out_rows_and_refit_resumes_from_any_iteration(name, tmp_path):
    parameters = EAGER | {"early_stopping": True, "refit": True} | ALGORITHMS[name]
    assert_resumes(parameters, DATA, tmp_path)


@pytest.mark.parametrize("scoring", ["error", "accuracy"])
def test_fit_with_another_score_resumes_from_any_iteration(scoring, tmp_path):
    assert_resumes(EAGER | {"scoring": scoring}, WITH_VALIDATION, tmp_path)


class NowAndThen:
    """A scorer with NaN in every third iteration and its best score after seven."""

    n_asked = 0

    def __call__(self, _estimator, _rows, _labels):
        self.n_asked += 1
        return np.nan if self.n_asked % 3 == 0 else -((self.n_asked - 7) ** 2)


def test_resumed_fit_repeats_no_score_and_keeps_nan_scores(tmp_path):
    parameters = EAGER | {"n_iter_no_change": 6}
    whole = small(**parameters, scoring=NowAndThen())
    paths = every_checkpoint(whole, tmp_path, **WITH_VALIDATION)
    assert (whole.best_iteration_, whole.stop_reason_) == (6, "early_stopping")
    for n_iter, path in enumerate(paths[:-1], start=1):
        scorer = NowAndThen()
        scorer.n_asked = n_iter + 1  # includes the one before the first iteration
        resumed = small(**parameters, scoring=scorer).fit(**WITH_VALIDATION, resume_from=path)
        assert_same_fit(resumed, whole)


def averse_to_bases(estimator, rows, _labels):
    """A scorer that falls with a base class and rises with confident predictions otherwise."""
    confidence = estimator.predict_proba(rows).max(axis=1).mean()
    return -confidence if estimator.outputs.is_centred else min(confidence, 0.5)


@pytest.mark.parametrize("refit", [False, True])
def test_training_restarted_without_a_base_class_resumes_from_any_iteration(refit, tmp_path):
    parameters = EAGER | {"scoring": averse_to_bases, "early_stopping": True, "refit": refit}
    whole = small("abc-mart", **parameters)
    with pytest.warns(UserWarning, match="restarted without one"):
        paths = every_checkpoint(whole, tmp_path, **DATA)
    assert whole.resolved_params_["algorithm"] == TreePerClass("mart")
    for path in some(paths, 9):
        with pytest.warns(UserWarning, match="restarted without one"):
            resumed = small("abc-mart", **parameters).fit(**DATA, resume_from=path)
        assert_same_fit(resumed, whole)


DATA_OF_ALL_KINDS = {
    "categories": {"X": FRAME, "y": Y},
    "weights": DATA | {"sample_weight": WEIGHT},
    "weights of validation": WITH_VALIDATION | {"sample_weight_val": 1.0 + np.arange(150) % 3},
    "strings": {"X": X, "y": np.array(["ash", "birch", "elm", "yew"])[Y]},
    "binned": {"X": BinMapper().fit(X).transform(X), "y": Y},
    "sparse": {"X": sparse.csr_array(np.nan_to_num(X) * (np.abs(np.nan_to_num(X)) > 1)), "y": Y},
}


@pytest.mark.parametrize("data", DATA_OF_ALL_KINDS.values(), ids=DATA_OF_ALL_KINDS)
def test_fit_to_any_data_type_resumes_from_any_iteration(data, tmp_path):
    assert_resumes({"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)}, data, tmp_path)


def test_refit_knows_categories_of_held_out_rows(tmp_path):
    levels = FRAME["level"].astype(str).where(np.arange(250) % 5 > 0, [f"n{i}" for i in range(250)])
    data = {"X": FRAME.assign(level=levels.astype("category")), "y": Y}
    parameters = EAGER | {
        "early_stopping": True,
        "refit": True,
        "categorical_features": Categorical(smoothing=0.1, penalty=0.0),
    }
    assert_resumes(parameters, data, tmp_path)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_resumed_fit_is_the_same_for_any_thread_count(n_jobs, tmp_path):
    whole = small(n_jobs=2)
    path = every_checkpoint(whole, tmp_path, **DATA)[3]
    assert_same_fit(small(n_jobs=n_jobs).fit(**DATA, resume_from=path), whole)


PARAMETERS = st.fixed_dictionaries(
    {
        "baseline": st.sampled_from(["zero", "prior"]),
        "subsample": st.sampled_from([0.5, 1.0]),
        "max_features": st.sampled_from([None, 2]),
        "class_weight": st.sampled_from([None, "balanced"]),
        "scoring": st.sampled_from(["loss", "error"]),
        "refit": st.booleans(),
        "n_iter_no_change": st.integers(1, 6),
        "random_state": st.integers(0, 9),
        "n_jobs": st.integers(1, 2),
    }
)


@given(st.sampled_from([*ALGORITHMS]), PARAMETERS, st.integers(1, 30))
def test_fit_of_any_parameters_resumes_from_any_iteration(name, parameters, n_iter):
    """The iterations of all trainings count; a shorter fit resumes from its end."""
    baseline = parameters.pop("baseline")
    parameters = ALGORITHMS[name] | parameters | {"early_stopping": True, "max_iter": 12}
    parameters = with_fields(parameters, baseline=baseline)
    reports = []

    def interrupt(report):
        reports.append(report)
        if len(reports) == n_iter:
            raise InterruptedError

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # warnings that no iteration, or none with a base class, improves the score
        path = Path(folder) / "file"
        with suppress(InterruptedError):
            small(callbacks=[interrupt, Checkpoint(path)], **parameters).fit(**DATA)
        resumed = small(**parameters).fit(**DATA, resume_from=path)
        assert_same_fit(resumed, small(**parameters).fit(**DATA))


# -------------------------------------------------------------------------------- more iterations


@every_algorithm
def test_resumed_fit_may_have_a_larger_max_iter(variant, tmp_path):
    *_, finished = every_checkpoint(small(**variant | {"max_iter": 4}), tmp_path, **DATA)
    resumed = small(**variant | {"max_iter": 7}).fit(**DATA, resume_from=finished)
    assert_same_fit(resumed, small(**variant | {"max_iter": 7}).fit(**DATA))


def test_finished_training_is_unchanged_by_resuming(tmp_path):
    whole = small(**EAGER)
    *_, finished = every_checkpoint(whole, tmp_path, **WITH_VALIDATION)
    assert whole.stop_reason_ == "early_stopping"
    reports = []
    resumed = small(**EAGER, callbacks=reports.append).fit(**WITH_VALIDATION, resume_from=finished)
    assert_same_fit(resumed, whole)
    assert reports == []


def test_fit_stopped_by_time_or_a_callback_can_be_resumed(tmp_path):
    path, whole = tmp_path / "file", small().fit(**DATA)
    for ending in (TimeLimit(1e-9), lambda report: report.iteration == 3):
        stopped = small(callbacks=[Checkpoint(path), ending]).fit(**DATA)
        assert stopped.n_iter_ < 8
        assert_same_fit(small().fit(**DATA, resume_from=path), whole)


# ------------------------------------------------------------------------------------- warm starts


def warm(first: dict, data: dict, **parameters) -> ABCBoostClassifier:
    """Return a fitted estimator with warm start."""
    return small(warm_start=True, **first).fit(**data).set_params(**parameters)


WARM = {
    "same rows": ({"max_iter": 3}, {"max_iter": 8}, DATA, DATA),
    "other rows": ({"max_iter": 3, "subsample": 0.7}, {"max_iter": 8}, WITH_VALIDATION, DATA),
    "another score": (
        {"max_iter": 3, "scoring": "accuracy", "random_state": 1},
        {**EAGER, "scoring": "loss", "random_state": 2},
        WITH_VALIDATION,
        WITH_VALIDATION,
    ),
    "other levels": ({"max_iter": 3}, {"max_iter": 8}, DATA_OF_ALL_KINDS["categories"], None),
    "restarted": (
        {"max_iter": 3, "early_stopping": False, "algorithm": "mart"},
        {**EAGER, "algorithm": "abc-mart", "early_stopping": True, "scoring": averse_to_bases},
        WITH_VALIDATION,
        WITH_VALIDATION,
    ),
}


@pytest.mark.parametrize(("first", "second", "before", "now"), WARM.values(), ids=WARM)
@pytest.mark.parametrize("is_fitted", [True, False])
@pytest.mark.filterwarnings("ignore:no step with a base class")
def test_warm_start_resumes_from_any_iteration(first, second, before, now, is_fitted, tmp_path):
    """With and without the earlier model in the estimator."""
    now = now or {
        "X": FRAME.assign(level=FRAME["level"].cat.rename_categories({"a": "new"})),
        "y": Y,
    }
    whole = warm(first, before, **second)
    paths = every_checkpoint(whole, tmp_path, **now)
    assert len(paths) > 4
    for path in some(paths):
        resumed = warm(first, before, **second)
        resumed = resumed if is_fitted else clone(resumed)
        assert_same_fit(resumed.fit(**now, resume_from=path), whole)


def test_warm_start_continues_a_resumed_fit(tmp_path):
    path = every_checkpoint(small(max_iter=6), tmp_path, **DATA)[2]
    resumed = small(max_iter=6, warm_start=True).fit(**DATA, resume_from=path)
    assert_same_fit(resumed.set_params(max_iter=9).fit(**DATA), small(max_iter=9).fit(**DATA))
