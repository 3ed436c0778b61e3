"""Refit on all rows, and the restart without a base class if validation rejects it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Checkpoint,
    KeepOnInterrupt,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.training.early_stopping import Stopping
from abcgbm.training.fit_run import FitArguments
from models import assert_same_model, base_labels, ensemble_arrays, noisy_data, small

X, Y = noisy_data(n_rows=400, n_classes=4)
WEIGHT = np.random.default_rng(0).integers(0, 4, 400)
EAGER = {"learning_rate": 0.3, "max_iter": "auto", "n_iter_no_change": 5}
HELD_OUT = {**EAGER, "early_stopping": True}
VARIANTS = {
    "abc-mart": {},
    "search": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)},
    "logitboost, subsample": {"algorithm": "logitboost", "subsample": 0.7},
    "shared": {"algorithm": "multi-output"},
    "balanced, prior": {
        "algorithm": AdaptiveBaseClass(baseline="prior"),
        "class_weight": "balanced",
    },
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def assert_same_trees(one, other):
    others = ensemble_arrays(other)
    for name, array in ensemble_arrays(one).items():
        np.testing.assert_array_equal(array, others[name], err_msg=name, strict=True)


@every_variant
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_refit_trains_on_all_rows_for_the_best_number_of_iterations(variant, weight):
    validated = small(**variant, **HELD_OUT).fit(X, Y, weight)
    model = small(**variant, **HELD_OUT, refit=True).fit(X, Y, weight)
    whole = small(**variant, **EAGER | {"max_iter": model.best_iteration_}).fit(X, Y, weight)
    assert_same_trees(model, whole)
    assert model.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()
    assert model.history_ == validated.history_
    assert model.refit_history_.train_loss.tolist() == whole.history_.train_loss.tolist()
    assert validated.refit_history_ is whole.refit_history_ is None


DEFAULTS = {
    "shared": {},
    "mart": {"algorithm": "mart", "max_depth": 3},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "class by class": {
        "algorithm": TreePerClass("mart", sequential_residuals=True),
        "max_iter": 40,
    },
    "all classes": {
        "algorithm": MultiOutputTrees(n_projections="all"),
        "subsample": 0.7,
        "random_state": 4,
    },
    "class weights": {"class_weight": "balanced", "tol": 1e-3, "callbacks": [TimeLimit(1e6)]},
}


@pytest.mark.parametrize("given", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_second_fit_with_refit_params_equals_refit(given, weight, tmp_path):
    """The default number of leaves is 14 for all 1,400 rows, 12 without the held-out ones."""
    rows, labels = noisy_data(n_rows=1400, n_classes=4)
    weight = None if weight is None else np.resize(weight + 1, len(labels))
    given = {"early_stopping": True, "n_iter_no_change": 5} | given
    callbacks = [*given.get("callbacks", []), Checkpoint(tmp_path / "m")]
    validated = ABCBoostClassifier(**given | {"callbacks": callbacks}).fit(rows, labels, weight)
    model = ABCBoostClassifier(**given, refit=True).fit(rows, labels, weight)
    for params in (validated.refit_params_, model.refit_params_):
        second = ABCBoostClassifier(**params).fit(rows, labels, weight)
        assert_same_trees(second, model)
        assert second.history_.train_loss.tolist() == model.refit_history_.train_loss.tolist()
    assert validated.refit_params_["max_iter"] == validated.best_iteration_ < validated.n_iter_
    settled = [validated.refit_params_[name] for name in validated.resolved_params_]
    assert "auto" not in [value for value in settled if isinstance(value, str)]


def test_second_fit_with_more_rows_keeps_the_number_of_leaves():
    rows = {"X": X[:250], "y": Y[:250], "X_val": X[250:], "y_val": Y[250:]}
    validated = ABCBoostClassifier(max_leaf_nodes=9, l2_regularization=0.3).fit(**rows)
    loaded = pickle.loads(pickle.dumps(validated))
    second = ABCBoostClassifier(**loaded.refit_params_).fit(np.tile(X, (5, 1)), np.tile(Y, 5))
    unbounded = {"max_iter": validated.best_iteration_, "early_stopping": False}
    assert second.resolved_params_ == validated.resolved_params_ | unbounded
    assert second.n_iter_ == validated.best_iteration_


def test_refit_params_need_an_iteration():
    with pytest.warns(UserWarning, match="no iteration improves the validation score"):
        model = small("mart", max_iter=3, scoring=lambda *_: 0.0).fit(X, Y, X_val=X, y_val=Y)
    with pytest.raises(AttributeError, match="refit_params_: the model has no iteration"):
        model.refit_params_  # noqa: B018
    with pytest.raises(NotFittedError):
        ABCBoostClassifier().refit_params_  # noqa: B018


def test_attributes_describe_the_validated_training():
    model = small(**HELD_OUT, refit=True).fit(X, Y)
    assert model.stop_reason_ == "early_stopping"
    assert len(model.validation_loss_) == len(model.train_loss_) == model.n_iter_ + 1
    assert model.best_iteration_ == model.model_.n_iter < model.n_iter_
    assert model.refit_history_.stop_reason == "max_iter"
    assert len(model.refit_history_.validation_loss) == 0
    assert len(list(model.staged_predict(X))) == model.best_iteration_


def test_given_validation_rows_are_not_trained_on():
    rows = {"X": X[:250], "y": Y[:250], "X_val": X[250:], "y_val": Y[250:]}
    model = small(**EAGER, refit=True).fit(**rows)
    assert_same_model(model, small(**EAGER).fit(**rows))
    assert model.refit_history_ is None


def test_binned_table_can_be_trained_on_twice():
    table = BinMapper().fit(X).transform(X)
    whole = small(**HELD_OUT, refit=True).fit(X, Y)
    binned = small(**HELD_OUT, refit=True).fit(table, Y)
    again = small(**EAGER | {"max_iter": binned.best_iteration_}).fit(table, Y)
    assert_same_trees(binned, again)
    assert whole.n_features_in_ == binned.n_features_in_


def test_stateful_random_state_is_drawn_from_once():
    one, other = (np.random.default_rng(7) for _ in range(2))
    model = small(**HELD_OUT, subsample=0.5, random_state=one, refit=True).fit(X, Y)
    small(**HELD_OUT, subsample=0.5, random_state=other).fit(X, Y)
    assert one.integers(2**32) == other.integers(2**32)
    assert model.refit_history_.seed == model.history_.seed


def test_callbacks_receive_both_trainings():
    heard = []
    model = small(**HELD_OUT, refit=True, callbacks=heard.append).fit(X, Y)
    phases = [report.phase for report in heard]
    assert phases == ["train"] * model.n_iter_ + ["refit"] * model.best_iteration_
    again = heard[model.n_iter_ :]
    assert [report.iteration for report in again] == list(range(1, model.best_iteration_ + 1))
    assert {report.validation_loss for report in again} == {None}


def stop_in_refit(report):
    return report.phase == "refit" and report.iteration == 2


def test_interrupted_refit_leaves_the_validated_model():
    def interrupt(report):
        if stop_in_refit(report):
            raise KeyboardInterrupt

    validated = small(**HELD_OUT).fit(X, Y)
    keep = {"callbacks": [interrupt, KeepOnInterrupt()]}
    for given in ({"callbacks": stop_in_refit}, keep):
        model = small(**HELD_OUT, refit=True, **given).fit(X, Y)
        assert_same_model(model, validated)
        assert model.refit_history_ is None
    with pytest.raises(KeyboardInterrupt):
        small(**HELD_OUT, refit=True, callbacks=interrupt).fit(X, Y)


def test_refit_does_not_start_after_the_time_limit():
    heard = []
    given = {"callbacks": [heard.append, TimeLimit(1e-9)]}
    model = small(**HELD_OUT, refit=True, **given).fit(X, Y)
    assert (model.stop_reason_, model.refit_history_) == ("time_limit", None)
    assert [report.phase for report in heard] == ["train"]


def test_refit_without_time_left_leaves_the_validated_model(monkeypatch):
    validated = small(**HELD_OUT).fit(X, Y)
    phases = []
    monkeypatch.setattr(Stopping, "_is_time_up", lambda _: phases[-1:] == ["refit"])
    given = {"callbacks": [lambda report: phases.append(report.phase), TimeLimit(1e9)]}
    model = small(**HELD_OUT, refit=True, **given).fit(X, Y)
    assert_same_model(model, validated)
    assert (model.refit_history_, phases[-1]) == (None, "refit")


def test_scikit_learn_callbacks_receive_both_trainings():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

    class Hooks:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            self.heard.append(context.max_subtasks)

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.heard.append(context.task_name)

        def on_fit_task_end(self, estimator, context, **_):
            pass

    hooks = Hooks()
    model = small(**HELD_OUT, refit=True).set_callbacks(hooks).fit(X, Y)
    assert hooks.heard[:2] == [None, "fit"]
    assert hooks.heard.count("step") == model.n_iter_ + model.best_iteration_


def test_refitted_model_supports_pickle_search_and_warm_start():
    model = small(**HELD_OUT, refit=True).fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert_same_model(restored, model)
    assert restored.refit_history_ == model.refit_history_
    search = GridSearchCV(small(**HELD_OUT, refit=True), {"max_leaf_nodes": [3, 4]}, cv=2).fit(X, Y)
    assert search.best_estimator_.refit_history_ is not None
    n_iter = model.best_iteration_ + 3
    model.set_params(refit=False, early_stopping=False, warm_start=True, max_iter=n_iter)
    whole = small(**EAGER | {"max_iter": n_iter}).fit(X, Y)
    assert_same_model(model.fit(X, Y), whole)
    assert model.refit_history_ is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "refit=True without early stopping; expected early_stopping=True"),
        ({"early_stopping": False}, "refit=True with early_stopping=False; expected"),
        ({**HELD_OUT, "warm_start": True}, "refit=True with warm_start=True; expected one of"),
    ],
    ids=str,
)
def test_invalid_refit_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        small(refit=True, **parameters).fit(X, Y)


# --------------------------------------------------------------------- restart without a base class


def averse():
    """Return a scorer that falls for the start and three iterations, and rises afterwards."""
    called = []

    def scorer(estimator, rows, labels):
        called.append(1)
        return -len(called) if len(called) <= 4 else min(len(called), 10)

    return scorer


def disliked(**parameters):
    """A fit whose score improves only without a base class."""
    given = {"n_iter_no_change": 3, "max_iter": "auto", "scoring": averse()} | parameters
    rows = {} if "early_stopping" in parameters else {"X_val": X[:50], "y_val": Y[:50]}
    return small(**given).fit(X, Y, **rows)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"algorithm": "abc-mart"}, "mart"),
        ({"algorithm": "abc-logitboost"}, "logitboost"),
        ({"algorithm": AdaptiveBaseClass(base_derivatives=False)}, "mart"),
    ],
    ids=str,
)
def test_training_restarts_without_a_base_class_before_giving_up(given, plain):
    heard = []
    with pytest.warns(UserWarning, match=f"restarted without one, as algorithm='{plain}'"):
        model = disliked(**given, callbacks=heard.append)
    rising = iter(range(20))
    score = {"scoring": lambda *_: min(next(rising), 5)}
    assert_same_model(model, disliked(algorithm=plain, **score))
    assert (model.best_iteration_, model.n_iter_, model.stop_reason_) == (5, 8, "early_stopping")
    assert model.resolved_params_["algorithm"] == TreePerClass(plain)
    assert set(base_labels(model)) == {None}
    assert [r.phase for r in heard] == ["train"] * 3 + ["plain"] * 8
    assert [r.iteration for r in heard] == [1, 2, 3, *range(1, 9)]


def test_restarted_training_is_refitted_without_a_base_class():
    with pytest.warns(UserWarning, match="training was restarted"):
        model = disliked(algorithm="abc-mart", early_stopping=True, refit=True)
    assert_same_trees(model, small("mart", max_iter=5).fit(X, Y))


def test_improving_iteration_with_a_base_class_is_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(**HELD_OUT).fit(X, Y)
    assert model.resolved_params_["algorithm"] == AdaptiveBaseClass(line_search=False)
    assert None not in base_labels(model)


@pytest.mark.parametrize(
    "given",
    [{"callbacks": lambda _: True}, {"callbacks": [TimeLimit(1e-9)]}],
    ids=["callback", "time"],
)
def test_requested_stop_does_not_restart_training(given):
    with pytest.warns(UserWarning, match="no iteration improves the validation score"):
        model = disliked(algorithm="abc-mart", **given)
    assert (model.best_iteration_, model.n_iter_) == (0, 1)
    assert model.resolved_params_["algorithm"] == AdaptiveBaseClass(line_search=False)


def test_scikit_learn_callbacks_receive_the_restart():
    framework = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    monitor = framework.ScoringMonitor(scoring="accuracy")
    given = {"n_iter_no_change": 3, "early_stopping": True, "max_iter": 5, "scoring": averse()}
    with pytest.warns(UserWarning, match="training was restarted"):
        small(**given).set_callbacks(monitor).fit(X, Y)
    assert sum(row["task_name"] == "step" for row in monitor.get_logs().data) == 3 + 5


def test_fit_that_has_run_can_be_shown_and_does_not_run_again():
    model, runs = small(**HELD_OUT, refit=True), []
    model._fit(FitArguments(X, Y), None, runs.append)
    (run,) = runs
    assert "first=None" in repr(run)
    assert run.n_iter_left is None
    with pytest.raises(RuntimeError, match="has run already"):
        run.run(None, None)
