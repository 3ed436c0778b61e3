"""The loop over steps, as the estimator runs it."""

import numpy as np
import pytest

import core
import reference
from abcgbm.stopping import MACHINE_ACCURACY, stop_reason
from models import assert_same_model, noisy_data, small
from strategies import random_problem

VARIANTS = {
    "mart": ({"algorithm": "mart"}, reference.Algorithm("mart", None)),
    "mart class by class": (
        {"algorithm": "mart", "refresh": "class"},
        reference.Algorithm("mart", None, refresh="class"),
    ),
    "Mb": ({"algorithm": "mart", "base_class": "worst"}, reference.Algorithm("mart", "worst")),
    "abc-mart": ({"algorithm": "abc-mart"}, reference.Algorithm("abc-mart", "worst")),
    "fixed base": ({"base_class": 1}, reference.Algorithm("abc-mart", 1)),
}
SEPARABLE = np.repeat([0.0, 1.0, 2.0], 20)[:, None], np.repeat(["a", "b", "c"], 20)


def first_base_zero(n_classes: int) -> int:
    """A seed whose first base class is 0, as in the reference."""
    X, y = np.arange(2.0 * n_classes)[:, None], np.arange(2 * n_classes) % n_classes
    fits = (small(max_iter=1, min_samples_leaf=1, random_state=s).fit(X, y) for s in range(1000))
    return next(model.random_state for model in fits if model.base_classes_[0] == 0)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", VARIANTS)
def test_loop_is_that_of_the_reference(name, n_classes):
    parameters, algorithm = VARIANTS[name]
    problem = random_problem(3, 300, 3, n_classes)
    trainer = core.trainer(problem)
    rounds = reference.boost(trainer, algorithm, n_classes, max_iter=8)
    model = small(
        **parameters,
        min_samples_leaf=problem.params["min_weight"],
        max_leaf_nodes=problem.params["max_leaf_nodes"],
        random_state=first_base_zero(n_classes),
    ).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model._ensemble.raw(problem.X, 1), trainer.raw().T)
    np.testing.assert_array_equal(model.class_losses_[1:], [r.class_losses for r in rounds])
    assert model.train_loss_[-1] == trainer.loss()


# ------------------------------------------------------------------------------------------ the end


def test_training_ends_at_max_iter():
    model = small(max_iter=3).fit(*noisy_data())
    assert (model.n_iter_, model.stop_reason_) == (3, "max_iter")
    assert model._ensemble.n_steps == 3


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])
def test_training_ends_at_machine_accuracy(algorithm):
    model = small(algorithm, learning_rate=1.0, max_iter=1000).fit(*SEPARABLE)
    assert model.stop_reason_ == "machine_accuracy"
    assert model.train_loss_[-1] < MACHINE_ACCURACY <= model.train_loss_[-2]
    assert model._ensemble.n_steps == model.n_iter_ < 1000


@pytest.mark.parametrize("parameters", [p for p, _ in VARIANTS.values()], ids=VARIANTS)
def test_training_ends_where_no_tree_splits(parameters):
    model = small(**parameters).fit(np.zeros((40, 2)), np.arange(40) % 4)
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    assert (len(model.train_loss_), len(model.base_classes_)) == (1, 0)
    assert model.class_losses_.shape == (1, 4)
    assert model._ensemble.n_steps == 0


@pytest.mark.parametrize("parameters", [p for p, _ in VARIANTS.values()], ids=VARIANTS)
def test_step_that_changes_nothing_is_not_kept(parameters):
    model = small(**parameters, learning_rate=1e-300).fit(*noisy_data())
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    assert model._ensemble.n_steps == 0


@pytest.mark.parametrize(
    ("n_steps", "loss", "expected"),
    [
        (0, 1.0, None),
        (9, 2e-14, None),
        (9, 1.9e-14, "machine_accuracy"),
        (10, 1.0, "max_iter"),
        (10, 0.0, "machine_accuracy"),
    ],
)
def test_reasons_to_stop(n_steps, loss, expected):
    assert stop_reason(n_steps, loss, max_iter=10) == expected


# ------------------------------------------------------------------------------------- the progress


def test_progress_hears_of_every_step(monkeypatch):
    heard = []
    monkeypatch.setattr("abcgbm.classifier.ProgressLine.show", lambda _, *what: heard.append(what))
    model = small().fit(*noisy_data())
    assert heard == list(enumerate(model.train_loss_[1:], start=1))


def test_error_in_a_callback_comes_through_and_training_can_begin_anew(monkeypatch):
    def complain(_, step, loss):
        raise RuntimeError(f"at step {step}")

    with monkeypatch.context() as patched:
        patched.setattr("abcgbm.classifier.ProgressLine.show", complain)
        with pytest.raises(RuntimeError, match="at step 1"):
            small(n_jobs=2).fit(*noisy_data())
    assert small(n_jobs=2).fit(*noisy_data()).stop_reason_ == "max_iter"


# -------------------------------------------------------------------------------------- the refresh


def test_refresh_makes_a_difference_with_many_classes_but_none_with_two():
    X, y = noisy_data(n_classes=4)
    by_step, by_class = (small("mart", refresh=r).fit(X, y) for r in ("step", "class"))
    assert by_step.predict_proba(X).tobytes() != by_class.predict_proba(X).tobytes()
    X, y = noisy_data(n_classes=2)
    assert_same_model(*(small("mart", refresh=r).fit(X, y) for r in ("step", "class")))


def test_first_tree_of_a_model_does_not_depend_on_the_refresh():
    X, y = noisy_data(n_classes=4)
    one, other = (
        small("mart", refresh=r, max_iter=1).fit(X, y)._ensemble for r in ("step", "class")
    )
    end = one.tree_start[1]
    assert other.tree_start[1] == end
    np.testing.assert_array_equal(one.value[:end], other.value[:end])
    assert one.step_start.tolist() == other.step_start.tolist() == [0, 4]


# ---------------------------------------------------------------------------------------- the guard


def test_guard_that_never_acts_leaves_full_steps():
    X, y = noisy_data(n_classes=4)
    assert (small().fit(X, y)._ensemble.tree_base_scale == 1).all()


def test_guard_shortens_steps_of_many_classes():
    X, y = noisy_data(n_rows=900, n_classes=60)
    model = small(max_iter=10).fit(X, y)
    assert (model._ensemble.tree_base_scale < 1).any()
    assert (np.diff(model.train_loss_) <= 0).all()
