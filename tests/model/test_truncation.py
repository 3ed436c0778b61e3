"""A model that is cut to its first steps is the model of these steps."""

import io
from collections.abc import Iterable

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, MultiOutputTrees, TreePerClass
from models import base_labels, ensemble_arrays, noisy_data, small

ROWS, LABELS = noisy_data(n_rows=400, n_classes=4)
X, Y = ROWS[:250], LABELS[:250]
VALIDATION = {"X_val": ROWS[250:], "y_val": LABELS[250:]}
VARIANTS = {
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "search with a warm-up": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1, warmup=3)},
    "abc-logitboost": {"algorithm": AdaptiveBaseClass("logitboost", baseline="prior")},
    "shared, drawn": {
        "algorithm": MultiOutputTrees(n_projections=2, baseline="zero"),
        "subsample": 0.6,
    },
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
EAGER = {"learning_rate": 0.25, "max_iter": 60, "n_iter_no_change": 4}


def losses_of(history) -> tuple:
    return tuple(
        np.asarray(getattr(history, name)).tobytes()
        for name in (
            "train_loss",
            "class_losses",
            "base_classes",
            "search_losses",
            "best_iteration",
        )
    )


@every_variant
def test_first_steps_are_the_model_of_a_fit_of_so_many_steps(variant):
    whole = small(**variant).fit(X, Y)
    for m in (1, 3, 8):
        cut, fitted = whole.truncate(m), small(**variant, max_iter=m).fit(X, Y)
        assert cut.model_ == fitted.model_
        assert losses_of(cut.history_) == losses_of(fitted.history_)


@every_variant
def test_first_steps_predict_as_stages_do(variant):
    """But for reported scores: those of plain warm-up steps alone need no centring."""
    whole = small(**variant).fit(X, Y)
    for m, staged in enumerate(whole.staged_predict_proba(ROWS), start=1):
        cut = whole[:m]
        assert cut.predict_proba(ROWS).tobytes() == staged.tobytes()
        for method in ("predict", "predict_proba", "predict_log_proba"):
            one, other = getattr(cut, method)(ROWS), getattr(whole, method)(ROWS, n_iter=m)
            assert one.tobytes() == other.tobytes()


def test_record_ends_with_the_model():
    whole = small(**EAGER).fit(X, Y, **VALIDATION)
    assert whole.best_iteration_ > 2
    cut = whole.truncate(2)
    assert (cut.n_iter_, cut.best_iteration_, cut.stop_reason_) == (2, 2, "truncated")
    assert cut.train_loss_.tolist() == whole.train_loss_[:3].tolist()
    assert cut.validation_score_.tolist() == whole.validation_score_[:3].tolist()
    assert base_labels(cut) == base_labels(whole)[:2]
    assert len(cut.history_.candidate_losses) == 2
    assert cut.get_params() == whole.get_params()


def test_steps_after_the_best_one_can_be_cut_off_the_record():
    whole = small(**EAGER).fit(X, Y, **VALIDATION)
    cut = whole[:]
    assert cut.model_ == whole.model_
    assert cut.n_iter_ == cut.best_iteration_ == whole.best_iteration_ < whole.n_iter_


def test_model_that_is_not_cut_is_equal_and_another():
    whole = small().fit(X, Y)
    copy = whole.truncate(8)
    assert copy is not whole
    assert (copy.model_, copy.history_) == (whole.model_, whole.history_)
    assert copy.stop_reason_ == "max_iter"


def test_model_stays_as_it_is_when_another_is_cut_from_it():
    whole = small().fit(X, Y)
    before = whole.predict_proba(X).tobytes()
    whole.truncate(2).fit(X[:100], Y[:100])
    assert whole.predict_proba(X).tobytes() == before
    assert whole.n_iter_ == 8


def test_record_of_a_second_training_is_cut_too():
    whole = small(**EAGER, early_stopping=True, refit=True).fit(X, Y)
    cut = whole.truncate(2)
    assert cut.refit_history_.n_iter == cut.best_iteration_ == cut.n_iter_ == 2
    assert cut.predict_proba(X).tobytes() == whole.predict_proba(X, n_iter=2).tobytes()


def test_training_goes_on_from_the_last_step_that_was_kept():
    once = small(warm_start=True).fit(X, Y)
    again = once.truncate(3).fit(X, Y)
    assert (again.model_, again.history_) == (once.model_, once.history_)


def test_file_of_a_cut_model_has_its_steps_alone():
    whole, file = small().fit(X, Y), io.BytesIO()
    whole.truncate(3).save_model(file)
    loaded = ABCBoostClassifier.load_model(io.BytesIO(file.getvalue()))
    assert ensemble_arrays(loaded)["step_start"].tolist() == [0, 3, 6, 9]
    assert loaded.stop_reason_ == "truncated"


@pytest.mark.parametrize(("end", "left"), [(-1, 7), (-8, 0), (0, 0), (8, 8)])
def test_slice_ends_where_that_of_a_list_does(end, left):
    assert small().fit(X, Y)[:end].n_iter_ == left


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda m: m.truncate(9), ValueError, "n_iter=9; expected an integer from 0 to 8"),
        (lambda m: m.truncate(-1), ValueError, "n_iter=-1; expected"),
        (lambda m: m.truncate(2.5), TypeError, "n_iter=2.5; expected"),
        (lambda m: m[:9], ValueError, "end of a slice=9; expected an integer from -8 to 8"),
        (lambda m: m[:"a"], TypeError, "end of a slice='a'"),
        (
            lambda m: m[3:7],
            ValueError,
            r"model\[3:7\]; expected a slice from the first iteration on",
        ),
        (lambda m: m[::2], ValueError, r"model\[::2\]; expected a slice"),
        (lambda m: m[5], TypeError, r"model\[5\]; expected a slice"),
        (iter, TypeError, "not iterable"),
    ],
)
def test_cut_that_makes_no_model_is_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask(small().fit(X, Y))


def test_classifier_is_no_sequence():
    model = small().fit(X, Y)
    assert not isinstance(model, Iterable)
    assert np.array([model], dtype=object).shape == (1,)


def test_model_that_was_not_fitted_cannot_be_cut():
    for ask in (lambda: small().truncate(1), lambda: small()[:1]):
        with pytest.raises(NotFittedError):
            ask()
