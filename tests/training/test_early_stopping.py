"""When training stops, and the best iteration."""

import math

import numpy as np
import pytest

from abcgbm import AdaptiveBaseClass, MultiOutputTrees, TimeLimit, TreePerClass
from abcgbm.training.early_stopping import Limits, Stopping, best_iteration
from models import assert_same_model, ensemble_arrays, noisy_data, small

X, Y = noisy_data(n_rows=500, n_classes=4)
LEARNED, VALIDATED = slice(0, 300), slice(300, 500)
FIT = {"X": X[LEARNED], "y": Y[LEARNED]}
VALIDATION = {"X_val": X[VALIDATED], "y_val": Y[VALIDATED]}
DEFAULT_STEPS = 100  # with trees per class
EAGER = {"learning_rate": 0.5, "max_iter": 200, "n_iter_no_change": 5}  # overfits soon
VARIANTS = {
    "mart": {"algorithm": "mart"},
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "abc-mart": {"algorithm": "abc-mart"},
    "search": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def reasons(limits: Limits, states: list[tuple[int, float, float]], **more) -> list[str | None]:
    stopping = Stopping(limits, **more)
    return [stopping.reason(*state) for state in states]


@pytest.mark.parametrize(
    ("n_iter", "loss", "expected"),
    [
        (0, 1.0, None),
        (9, 2e-14, None),
        (9, 1.9e-14, "machine_accuracy"),
        (10, 1.0, "max_iter"),
        (10, 0.0, "machine_accuracy"),
    ],
)
def test_reasons_to_stop(n_iter, loss, expected):
    assert reasons(Limits(max_iter=10), [(n_iter, loss, math.nan)]) == [expected]


def test_without_a_limit_only_machine_accuracy_stops():
    assert reasons(Limits(), [(10**9, 1.0, math.nan), (10**9, 0.0, math.nan)]) == [
        None,
        "machine_accuracy",
    ]


def test_patience_counts_iterations_since_the_last_improvement():
    scores = [1.0, 2.0, 2.0, 1.5, 3.0, 3.0, 2.0, 3.0]
    states = [(step, 1.0, score) for step, score in enumerate(scores)]
    expected = [*[None] * 7, "early_stopping"]
    assert reasons(Limits(n_iter_no_change=3), states) == expected


def test_score_is_better_only_by_more_than_tol():
    states = [(0, 1.0, 0.0), (1, 1.0, 0.5), (2, 1.0, 1.0)]  # 1.0 is better than 0.0, 0.5 is not
    limits = Limits(n_iter_no_change=2, tol=0.5)
    assert reasons(limits, states) == [None, None, None]
    assert reasons(Limits(n_iter_no_change=2, tol=1.0), states)[-1] == "early_stopping"


def test_nan_score_is_never_better():
    states = [(0, 1.0, 1.0), (1, 1.0, math.nan), (2, 1.0, math.nan)]
    assert reasons(Limits(n_iter_no_change=2), states) == [None, None, "early_stopping"]


def test_patience_includes_earlier_iterations():
    limits = Limits(n_iter_no_change=3)
    assert reasons(limits, [(4, 1.0, 1.0)], scores=[math.nan, 2.0, 1.0, 1.0]) == ["early_stopping"]
    assert reasons(limits, [(4, 1.0, 1.0)], scores=[math.nan, math.nan, 2.0, 1.0]) == [None]


def test_training_stops_at_the_deadline():
    times = iter([9.9, 10.0])
    stopping = Stopping(Limits(deadline=10.0), clock=lambda: next(times))
    assert [stopping.reason(step, 1.0, math.nan) for step in range(3)] == [None, None, "time_limit"]


def test_at_least_one_iteration_is_run():
    stopping = Stopping(Limits(deadline=10.0), clock=lambda: 11.0)
    assert [stopping.reason(step, 1.0, math.nan) for step in (5, 6)] == [None, "time_limit"]


def test_request_to_stop_is_a_reason():
    assert Stopping(Limits()).reason(1, 1.0, math.nan, stop_requested=True) == "callback"


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([1.0, 3.0, 2.0], 1),
        ([1.0, 3.0, 3.0], 1),
        ([3.0, 2.0], 0),
        ([math.nan, 1.0, math.nan], 1),
        ([math.nan] * 4, 3),
        ([-math.inf, -math.inf], 0),
    ],
)
def test_best_iteration_is_the_first_with_the_largest_score(scores, best):
    assert best_iteration(scores) == best


# ------------------------------------------------------------------------------ in the estimator


@every_variant
@pytest.mark.parametrize("scoring", ["loss", "error", "f1_macro"])
def test_early_stopping_gives_the_model_of_a_shorter_fit(variant, scoring):
    stopped = small(**variant, **EAGER, scoring=scoring).fit(**FIT, **VALIDATION)
    assert stopped.stop_reason_ == "early_stopping"
    assert 0 < stopped.best_iteration_ < stopped.n_iter_ < 200
    assert stopped.best_iteration_ == np.argmax(stopped.validation_score_)
    plain = small(**variant, learning_rate=0.5, max_iter=stopped.best_iteration_).fit(**FIT)
    arrays = ensemble_arrays(plain)
    for name, array in ensemble_arrays(stopped).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name, strict=True)
    assert stopped.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()
    assert stopped.n_iter_ == len(stopped.train_loss_) - 1 == len(stopped.validation_loss_) - 1


def test_early_stopping_stops_when_patience_runs_out():
    model = small(**EAGER, tol=0.0).fit(**FIT, **VALIDATION)
    assert model.n_iter_ == model.best_iteration_ + 5


@every_variant
def test_validation_without_early_stopping_does_not_change_the_model(variant):
    watched = small(**variant, early_stopping=False).fit(**FIT, **VALIDATION)
    plain = small(**variant).fit(**FIT)
    assert_same_model(watched, plain)
    assert watched.best_iteration_ == watched.n_iter_ == 8
    assert len(watched.validation_loss_) == len(watched.validation_score_) == 9
    assert len(plain.validation_loss_) == len(plain.validation_score_) == 0


def test_auto_stops_early_with_validation_rows():
    auto, on = (small(early_stopping=e, **EAGER).fit(**FIT, **VALIDATION) for e in ("auto", True))
    assert_same_model(auto, on)
    assert auto.stop_reason_ == "early_stopping"
    assert small(early_stopping="auto").fit(**FIT).stop_reason_ == "max_iter"


def test_max_iter_none_relies_on_early_stopping():
    bounded, endless = (
        small(**EAGER | {"max_iter": n}).fit(**FIT, **VALIDATION) for n in (200, None)
    )
    assert_same_model(bounded, endless)


def test_auto_max_iter_is_a_number_without_early_stopping():
    auto = small(max_iter="auto").fit(**FIT)
    assert_same_model(auto, small(max_iter=DEFAULT_STEPS).fit(**FIT))
    assert auto.resolved_params_["max_iter"] == auto.n_iter_ == DEFAULT_STEPS
    watched = small(max_iter="auto", early_stopping=False).fit(**FIT, **VALIDATION)
    assert (watched.n_iter_, watched.stop_reason_) == (DEFAULT_STEPS, "max_iter")


@pytest.mark.parametrize(
    "given", [{"learning_rate": 0.5}, {"learning_rate": 0.02}], ids=["fewer", "more"]
)
def test_auto_max_iter_depends_on_validation_with_early_stopping(given):
    auto, endless = (small(max_iter=n, **given).fit(**FIT, **VALIDATION) for n in ("auto", None))
    assert_same_model(auto, endless)
    assert (auto.stop_reason_, auto.resolved_params_["max_iter"]) == ("early_stopping", None)
    assert (auto.n_iter_ > DEFAULT_STEPS) == (given["learning_rate"] < 0.1)
    held_out = small(max_iter="auto", early_stopping=True, **given).fit(X, Y)
    assert held_out.stop_reason_ == "early_stopping"


def test_given_max_iter_takes_precedence_over_validation():
    slow = small(max_iter=5, learning_rate=0.02).fit(**FIT, **VALIDATION)
    assert (slow.n_iter_, slow.stop_reason_, slow.resolved_params_["max_iter"]) == (
        5,
        "max_iter",
        5,
    )


@pytest.mark.parametrize(
    ("parameters", "chosen"),
    [
        ({}, {"algorithm": AdaptiveBaseClass(line_search=False), "l2_regularization": 0.0}),
        (
            {"algorithm": "multi-output"},
            {"algorithm": MultiOutputTrees(n_projections=4, baseline="zero")},  # one per class
        ),
        ({"algorithm": "mart", "l2_regularization": 2}, {"l2_regularization": 2.0}),
    ],
    ids=str,
)
def test_resolved_parameters_are_attributes(parameters, chosen):
    model = small(**parameters).fit(**FIT)
    expected = {"max_iter": 8, "early_stopping": False, **chosen}
    assert {name: model.resolved_params_[name] for name in expected} == expected
    model.resolved_params_["max_iter"] = 9
    assert model.resolved_params_["max_iter"] == 8


@pytest.mark.parametrize("parameters", [{}, {"early_stopping": False}, {"early_stopping": "auto"}])
def test_unbounded_training_is_refused(parameters):
    with pytest.raises(ValueError, match="max_iter=None without early stopping or a time limit"):
        small(max_iter=None, **parameters).fit(**FIT)


def test_time_limit_keeps_the_model_so_far():
    model = small(max_iter=None, callbacks=[TimeLimit(1e-9)]).fit(**FIT)
    assert model.stop_reason_ == "time_limit"
    assert model.n_iter_ == 1
    assert_same_trees(model, small(max_iter=1).fit(**FIT))


def assert_same_trees(one, other):
    others = ensemble_arrays(other)
    for name, array in ensemble_arrays(one).items():
        np.testing.assert_array_equal(array, others[name], err_msg=name, strict=True)


def test_generous_time_limit_changes_nothing():
    assert_same_model(small(callbacks=[TimeLimit(1e9)]).fit(**FIT), small().fit(**FIT))


def test_model_without_iterations_warns():
    worse = {"X_val": X[LEARNED], "y_val": (Y[LEARNED] + 1) % 4}
    with pytest.warns(
        UserWarning, match="no iteration improves the validation score, so every cla"
    ):
        model = small(n_iter_no_change=3).fit(**FIT, **worse)
    assert (model.best_iteration_, model.n_iter_, model.stop_reason_) == (0, 3, "early_stopping")
    np.testing.assert_array_equal(model.predict_proba(X), 0.25)
