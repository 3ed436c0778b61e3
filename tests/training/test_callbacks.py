"""Callbacks of this package and of scikit-learn."""

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from abcgbm import AdaptiveBaseClass, Checkpoint, IterationReport, KeepOnInterrupt, TimeLimit
from models import assert_same_model, base_labels, ensemble_arrays, noisy_data, run_python, small

X, Y = noisy_data(n_classes=4)
NAMES = np.array(["a", "b", "c", "d"])[Y]
VALIDATION = {"X_val": X[:50], "y_val": NAMES[:50]}


class Recorder:
    """A callback that records its reports and asks to stop after ``stop_after`` iterations."""

    def __init__(self, stop_after=None):
        self.reports, self.stop_after = [], stop_after

    def __call__(self, report):
        self.reports.append(report)
        return report.iteration == self.stop_after


def assert_same_trees(one, other):
    others = ensemble_arrays(other)
    for name, array in ensemble_arrays(one).items():
        np.testing.assert_array_equal(array, others[name], err_msg=name, strict=True)


@pytest.mark.parametrize(
    "variant",
    [{}, {"algorithm": "mart"}, {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)}],
    ids=str,
)
def test_callback_receives_the_history_of_fit(variant):
    recorder = Recorder()
    model = small(**variant, callbacks=recorder, early_stopping=False)
    model.fit(X, NAMES, **VALIDATION)
    heard = recorder.reports
    assert [r.iteration for r in heard] == list(range(1, 9))
    assert [r.train_loss for r in heard] == model.train_loss_[1:].tolist()
    assert [r.base_class for r in heard] == base_labels(model)
    assert [r.validation_loss for r in heard] == model.validation_loss_[1:].tolist()
    assert [r.validation_score for r in heard] == model.validation_score_[1:].tolist()
    np.testing.assert_array_equal([r.class_losses for r in heard], model.class_losses_[1:])


def test_report_has_no_validation_loss_without_validation():
    recorder = Recorder()
    small(callbacks=[recorder]).fit(X, Y)
    assert {(r.validation_loss, r.validation_score) for r in recorder.reports} == {(None, None)}


def test_report_is_immutable():
    recorder = Recorder()
    model = small(callbacks=recorder, max_iter=1).fit(X, Y)
    with pytest.raises(dataclasses.FrozenInstanceError):
        recorder.reports[0].iteration = 7
    recorder.reports[0].class_losses[:] = 0
    assert model.class_losses_[1].all()


def test_callbacks_do_not_change_the_model():
    assert_same_model(small(callbacks=[Recorder(), Recorder()]).fit(X, Y), small().fit(X, Y))


def test_all_callbacks_are_called_in_order():
    called = []

    def first(report):
        called.append(("first", report.iteration))
        return True

    def second(report):
        called.append(("second", report.iteration))

    small(callbacks=[first, second]).fit(X, Y)
    assert called == [("first", 1), ("second", 1)]


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: [c], lambda c: (Recorder(), c)])
def test_callback_that_returns_true_stops_training(wrap):
    model = small(callbacks=wrap(Recorder(stop_after=3))).fit(X, Y)
    assert (model.n_iter_, model.stop_reason_) == (3, "callback")
    assert_same_trees(model, small(max_iter=3).fit(X, Y))


def test_numpy_true_stops_training():
    model = small(callbacks=lambda report: np.float64(report.train_loss) > 0).fit(X, Y)
    assert (model.n_iter_, model.stop_reason_) == (1, "callback")


@pytest.mark.parametrize("answer", [None, False, 1, "stop", [True]], ids=repr)
def test_other_return_values_do_not_stop(answer):
    assert small(callbacks=lambda _: answer).fit(X, Y).stop_reason_ == "max_iter"


def test_stop_by_a_callback_keeps_the_best_iteration():
    eager = {"learning_rate": 0.5, "max_iter": 100, "n_iter_no_change": 50}
    model = small(**eager, callbacks=Recorder(stop_after=30)).fit(X[50:], NAMES[50:], **VALIDATION)
    assert (model.n_iter_, model.stop_reason_) == (30, "callback")
    assert model.best_iteration_ == np.argmax(model.validation_score_) < 30


def test_error_in_a_callback_leaves_no_model_and_fit_can_be_repeated():
    def complain(report):
        if report.iteration == 2:
            raise RuntimeError("enough")

    model = small(callbacks=complain)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert_same_model(model.set_params(callbacks=None).fit(X, Y), small().fit(X, Y))


@pytest.mark.parametrize("bad", [3, "call", [3], [print, None]], ids=repr)
def test_callback_that_is_not_callable_is_named(bad):
    with pytest.raises(TypeError, match=r"callbacks=.*; expected None, a callable, TimeLimit"):
        small(callbacks=bad).fit(X, Y)


def test_report_is_documented():
    for field in dataclasses.fields(IterationReport):
        assert field.name in IterationReport.__doc__


def test_fitted_model_with_a_closure_can_be_pickled():
    heard = []
    model = small(callbacks=lambda report: heard.append(report.iteration)).fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert_same_model(restored, model)
    assert restored.get_params() == model.get_params() | {"callbacks": None}
    assert model.callbacks is not None
    assert_same_model(restored.fit(X, Y), model)
    assert len(heard) == 8


def test_pickled_unfitted_estimator_keeps_its_callbacks():
    restored = pickle.loads(pickle.dumps(small(callbacks=[print])))
    assert restored.callbacks == [print]


def test_clone_shares_the_callbacks():
    lock = threading.Lock()  # which no copy can be made of

    class Gatherer(Recorder):
        def __init__(self):
            super().__init__()
            self.lock = lock

    one, several = Gatherer(), [Gatherer(), Gatherer()]
    for given in (one, several):
        model = clone(small(max_iter=3, callbacks=given))
        assert model.callbacks is given
        model.fit(X, Y)
    assert [len(gatherer.reports) for gatherer in (one, *several)] == [3, 3, 3]
    cross_val_score(small(max_iter=3, callbacks=one), X, Y, cv=2)
    assert len(one.reports) == 3 + 2 * 3


def test_clone_otherwise_follows_scikit_learn():
    search = AdaptiveBaseClass(n_candidates=3)
    model = small(search, callbacks=lambda _: None)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(X_val=True)
    model.fit(X, Y)
    cloned = clone(model)
    assert not hasattr(cloned, "model_")
    assert cloned.algorithm is not search
    assert cloned.get_params(deep=False) == model.get_params(deep=False)
    assert str(cloned._get_metadata_request()) == str(model._get_metadata_request())
    assert cloned.callbacks is model.callbacks is not None


# --------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize("n_iter", [1, 4])
@pytest.mark.parametrize("source", ["callback", "scorer"])
def test_interrupted_training_keeps_its_iterations(n_iter, source):
    def callback(report):
        if source == "callback" and report.iteration == n_iter:
            raise KeyboardInterrupt

    scored = []

    def scorer(model, rows, labels):
        scored.append(1)
        if source == "scorer" and len(scored) == n_iter + 2:  # once before the first iteration
            raise KeyboardInterrupt
        return 1.0

    model = small(scoring=scorer, early_stopping=False, callbacks=[callback, KeepOnInterrupt()])
    model.fit(X, NAMES, **VALIDATION)
    assert (model.n_iter_, model.stop_reason_) == (n_iter, "interrupted")
    assert_same_trees(model, small(max_iter=n_iter).fit(X, NAMES))
    assert len(model.train_loss_) == len(model.validation_loss_) == n_iter + 1


def interrupted_at(step):
    def callback(report):
        if report.iteration == step:
            raise KeyboardInterrupt

    return callback


def test_interrupted_training_leaves_no_model_by_default():
    model = small(callbacks=interrupted_at(3))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_interrupted_training_continues_with_a_warm_start():
    model = small(warm_start=True, callbacks=[interrupted_at(3), KeepOnInterrupt()]).fit(X, Y)
    assert model.n_iter_ == 3
    assert_same_model(model.set_params(callbacks=None).fit(X, Y), small().fit(X, Y))


def test_interrupt_before_the_first_iteration_is_raised():
    def scorer(*_):
        raise KeyboardInterrupt

    model = small(scoring=scorer, callbacks=[KeepOnInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, NAMES, **VALIDATION)
    assert not hasattr(model, "n_iter_")


@pytest.mark.parametrize("kind", [KeepOnInterrupt, TimeLimit, Checkpoint])
def test_callback_class_is_not_a_callback(kind):
    with pytest.raises(TypeError, match=rf"expected an object: {kind.__name__}\(\.\.\.\)"):
        small(callbacks=[kind]).fit(X, Y)


CTRL_C = """
import os, signal, sys, threading
import numpy as np
from abcgbm import ABCBoostClassifier, KeepOnInterrupt

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10))
y = rng.integers(0, 5, len(X))
signal.signal(signal.SIGINT, signal.default_int_handler)

def soon(report):
    if report.iteration == 2:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

model = ABCBoostClassifier(max_iter=10**9, learning_rate=1e-6, callbacks=[soon, KeepOnInterrupt()])
model.fit(X, y)
shorter = ABCBoostClassifier(max_iter=model.n_iter_, learning_rate=1e-6).fit(X, y)
same = model.predict_proba(X).tobytes() == shorter.predict_proba(X).tobytes()
sys.stdout.write(f"{model.stop_reason_} {model.n_iter_ >= 2} {same}")
"""


def test_ctrl_c_keeps_the_model_so_far():
    assert run_python(CTRL_C) == "interrupted True True"


# ------------------------------------------------------------------- scikit-learn's own callbacks

framework = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


class Hooks:
    """A scikit-learn callback that records its calls and can ask to stop or fail."""

    def __init__(self, stop_after=None, fail_at=None):
        self.heard, self.models = [], []
        self.stop_after, self.fail_at = stop_after, fail_at

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.heard.append(f"end {context.task_name} {context.task_id}")
        if context.task_name == "step":
            self.models.append(fitted_estimator)
            if context.task_id + 1 == self.fail_at:
                raise RuntimeError("enough")
            return context.task_id + 1 == self.stop_after
        return None


def test_scikit_learn_callbacks_receive_every_iteration():
    hooks = Hooks()
    model = small(max_iter=2).set_callbacks(hooks).fit(X, Y)
    steps = ["begin step 0", "end step 0", "begin step 1", "end step 1"]
    assert hooks.heard == ["setup", "begin fit 0", *steps, "end fit 0", "teardown"]
    assert_same_model(model, small(max_iter=2).fit(X, Y))


@pytest.mark.parametrize(
    "parameters", [{}, {"max_iter": None, "callbacks": [TimeLimit(1e9)]}], ids=str
)
def test_scikit_learn_callback_stops_training(parameters):
    model = small(**parameters).set_callbacks(Hooks(stop_after=3)).fit(X, Y)
    assert (model.n_iter_, model.stop_reason_) == (3, "callback")
    assert_same_trees(model, small(max_iter=3).fit(X, Y))


def test_scikit_learn_callback_receives_the_model_so_far():
    hooks = Hooks()
    small(max_iter=3).set_callbacks(hooks).fit(X, Y)
    models, hooks.models = hooks.models, []  # scikit-learn keeps callbacks in a cache for ever
    for n_iter, model in enumerate(models, start=1):
        expected = small(max_iter=n_iter).fit(X, Y)
        assert_same_trees(model, expected)
        assert model.predict_proba(X).tobytes() == expected.predict_proba(X).tobytes()
        assert model.n_iter_ == n_iter


def test_task_without_progress_is_ended():
    hooks = Hooks()
    with pytest.warns(UserWarning, match="no tree can be split"):
        small().set_callbacks(hooks).fit(np.zeros((40, 1)), np.arange(40) % 2)
    steps = ["begin step 0", "end step 0"]
    assert hooks.heard == ["setup", "begin fit 0", *steps, "end fit 0", "teardown"]
    assert hooks.models == [None]


def test_refit_inside_a_callback_is_refused_with_the_reason():
    model = small()
    model.set_params(callbacks=lambda report: model.fit(X, Y))
    with pytest.raises(RuntimeError, match="while the same estimator is being fitted, by one of"):
        model.fit(X, Y)
    assert_same_trees(model.set_params(callbacks=None).fit(X, Y), small().fit(X, Y))


def test_copy_made_inside_a_callback_can_be_fitted():
    copies = []
    model = small()
    model.set_params(callbacks=lambda report: copies.append(copy.deepcopy(model)))
    model.fit(X, Y)
    assert_same_trees(copies[0].set_params(callbacks=None).fit(X, Y), small().fit(X, Y))


def test_error_in_a_scikit_learn_callback_leaves_no_model():
    hooks = Hooks(fail_at=2)
    model = small().set_callbacks(hooks)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, Y)
    assert hooks.heard[-1] == "teardown"
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert_same_model(model.set_callbacks().fit(X, Y), small().fit(X, Y))


def test_warm_start_has_tasks_for_the_remaining_iterations():
    hooks = Hooks()
    model = small(max_iter=6, warm_start=True).fit(X, Y).set_params(max_iter=8)
    assert_same_model(model.set_callbacks(hooks).fit(X, Y), small().fit(X, Y))
    assert sum(what.startswith("end step") for what in hooks.heard) == 2


def test_scoring_monitor_scores_the_stages():
    monitor = framework.ScoringMonitor(scoring="accuracy")
    model = small().set_callbacks(monitor).fit(X, Y)
    logged = [row for row in monitor.get_logs().data if row["task_name"] == "step"]
    expected = [np.mean(labels == Y) for labels in model.staged_predict(X)]
    assert [row["accuracy"] for row in logged] == expected


def test_scoring_monitor_scores_with_weights():
    weight = np.random.default_rng(0).integers(0, 4, len(Y))
    monitor = framework.ScoringMonitor(scoring="accuracy")
    model = small().set_callbacks(monitor).fit(X, Y, weight)
    logged = [row for row in monitor.get_logs().data if row["task_name"] == "step"]
    expected = [np.average(labels == Y, weights=weight) for labels in model.staged_predict(X)]
    np.testing.assert_allclose([row["accuracy"] for row in logged], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "parameters", [{}, {"max_iter": None, "callbacks": [TimeLimit(0.2)]}], ids=str
)
def test_scikit_learn_progress_bar_runs(parameters, capsys):
    pytest.importorskip("rich", reason="the progress bar of scikit-learn is drawn by rich")
    small(**parameters).set_callbacks(framework.ProgressBar()).fit(X, Y)
    assert "ABCBoostClassifier" in capsys.readouterr().out


def test_fit_without_callbacks_does_not_use_the_private_interface(monkeypatch):
    def changed(*_, **__):
        raise TypeError("this interface has changed")

    model = small(max_iter=2)
    monkeypatch.setattr(type(model), "_init_callback_context", changed)
    assert_same_trees(model.fit(X, Y), small(max_iter=2).fit(X, Y))
    with pytest.raises(TypeError, match="has changed"):
        model.set_callbacks(Hooks()).fit(X, Y)


def test_callback_reaches_the_classifier_in_a_pipeline_and_a_search():
    hooks = Hooks()
    hooks.max_propagation_depth = None
    model = make_pipeline(StandardScaler(), small(max_iter=2)).set_callbacks(hooks)
    model.fit(X, Y)
    assert sum(what.startswith("end step") for what in hooks.heard) == 2
    hooks = Hooks()
    hooks.max_propagation_depth = None
    search = GridSearchCV(small(max_iter=2), {"max_leaf_nodes": [3, 4]}, cv=2)
    search.set_callbacks(hooks).fit(X, Y)
    assert sum(what.startswith("end step") for what in hooks.heard) == 2 * (2 * 2 + 1)


def test_older_scikit_learn_without_callbacks_works():
    code = """
import sys, types
import sklearn
kept = sys.modules.pop("sklearn.callback", None)
import sklearn.pipeline, sklearn.linear_model  # they import it themselves
sys.modules["sklearn.callback"] = None
del sklearn.callback
import warnings
import numpy as np
from abcgbm import ABCBoostClassifier
heard = []
X = np.arange(40.0)[:, None]
model = ABCBoostClassifier(max_iter=3, learning_rate=1.0, callbacks=heard.append)
model.fit(X, np.arange(40) // 20)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ABCBoostClassifier().fit(0 * X, np.arange(40) // 20)
where = caught[0].filename
sys.stdout.write(f"{len(heard)} {hasattr(model, 'set_callbacks')} {where}")
"""
    assert run_python(code) == "3 False <string>"
