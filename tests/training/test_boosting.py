"""The boosting loop of the estimator."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

import core
import reference
from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, MultiOutputTrees, TreePerClass
from abcgbm.model.history import Record
from abcgbm.parameters.objects import Algorithm
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.base_class import BasePolicy, WorstBases
from abcgbm.training.boosting import BoostingState, choose_and_train
from abcgbm.training.early_stopping import MACHINE_ACCURACY, min_loss
from models import assert_same_model, base_labels, noisy_data, small
from strategies import random_problem

VARIANTS = {
    "mart": ({"algorithm": "mart"}, reference.Algorithm("mart", None)),
    "mart class by class": (
        {"algorithm": TreePerClass("mart", sequential_residuals=True)},
        reference.Algorithm("mart", None, sequential_residuals=True),
    ),
    "Mb": (
        {"algorithm": AdaptiveBaseClass(base_derivatives=False, line_search=False)},
        reference.Algorithm("mart", "worst"),
    ),
    "abc-mart": ({"algorithm": "abc-mart"}, reference.Algorithm("abc-mart", "worst")),
    "fixed base": (
        {"algorithm": AdaptiveBaseClass(base_label=1, line_search=False)},
        reference.Algorithm("abc-mart", 1),
    ),
    "search": (
        {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1, line_search=False)},
        reference.Algorithm("abc-mart", reference.Search(2, 1)),
    ),
    "logitboost": ({"algorithm": "logitboost"}, reference.Algorithm("mart", None)),
    "abc-logitboost": ({"algorithm": "abc-logitboost"}, reference.Algorithm("abc-mart", "worst")),
}
every_variant = pytest.mark.parametrize(
    "parameters", [p for p, _ in VARIANTS.values()], ids=VARIANTS
)
SEPARABLE = np.repeat([0.0, 1.0, 2.0], 20)[:, None], np.repeat(["a", "b", "c"], 20)


def first_base_zero(n_classes: int) -> int:
    """Return a seed whose first base class is 0, as in the reference implementation."""
    X, y = np.arange(2.0 * n_classes)[:, None], np.arange(2 * n_classes) % n_classes
    fits = (small(max_iter=1, min_samples_leaf=1, random_state=s).fit(X, y) for s in range(1000))
    return next(model.random_state for model in fits if base_labels(model)[0] == 0)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", VARIANTS)
def test_training_matches_the_reference_implementation(name, n_classes):
    parameters, algorithm = VARIANTS[name]
    hessian_split = "logitboost" in name
    problem = random_problem(3, 300, 3, n_classes, hessian_split=hessian_split)
    trainer = core.trainer(problem)
    rounds = reference.boost(trainer, algorithm, n_classes, max_iter=8)
    model = small(
        **parameters,
        min_samples_leaf=problem.params["min_weight"],
        max_leaf_nodes=problem.params["max_leaf_nodes"],
        random_state=first_base_zero(n_classes),
    ).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.model_.ensemble.raw(problem.X, 1), trainer.raw().T)
    losses = [r.class_losses for r in rounds]
    np.testing.assert_array_equal(model.history_.class_losses[1:], losses)
    assert model.history_.train_loss[-1] == trainer.loss()


@pytest.mark.parametrize(
    ("given", "name", "choices"),
    [
        ("mart", "mart", (False, False, False)),
        ("abc-mart", "abc-mart", (True, False, False)),
        ("logitboost", "logitboost", (False, True, False)),
        ("abc-logitboost", "abc-logitboost", (True, True, False)),
        (
            AdaptiveBaseClass("logitboost", base_derivatives=False),
            "logitboost",
            (False, True, False),
        ),
        (MultiOutputTrees("mart"), "mart", (False, False, True)),
        ("multi-output", "logitboost", (False, True, True)),
        ("auto", "logitboost", (False, True, True)),
    ],
    ids=str,
)
def test_algorithm_name_equals_its_three_choices(given, name, choices):
    parameters = ABCBoostClassifier(given).get_params(deep=False)
    algorithm = Parameters.from_parameters(parameters).algorithm
    assert dataclasses.astuple(algorithm) == choices
    assert algorithm.name == name


# ------------------------------------------------------------------------------ the end of training


def test_training_ends_at_max_iter():
    model = small(max_iter=3).fit(*noisy_data())
    assert (model.n_iter_, model.stop_reason_) == (3, "max_iter")
    assert model.model_.ensemble.n_iter == 3


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])
def test_training_ends_at_machine_accuracy(algorithm):
    model = small(algorithm, learning_rate=1.0, max_iter=1000).fit(*SEPARABLE)
    assert model.stop_reason_ == "machine_accuracy"
    losses = model.history_.train_loss
    assert losses[-1] < MACHINE_ACCURACY <= losses[-2]
    assert model.model_.ensemble.n_iter == model.n_iter_ < 1000


@pytest.mark.parametrize("weight", [2.0**-60, 2.0**-10, 2.0**10])
def test_scale_of_the_weights_does_not_change_the_model(weight):
    X, y = noisy_data(n_rows=200)
    model = small(min_samples_leaf=0.05).fit(X, y, np.full(200, weight))  # ten rows
    unweighted = small().fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (8, "max_iter")
    np.testing.assert_array_equal(model.predict_proba(X), unweighted.predict_proba(X))


def test_rows_of_tiny_weight_are_fitted_to_machine_accuracy():
    X, y = SEPARABLE
    weights = np.full(len(y), 2.0**-60)
    parameters = {"learning_rate": 1.0, "max_iter": 1000}
    model = small(min_samples_leaf=10 * 2.0**-60, **parameters).fit(X, y, weights)
    assert model.stop_reason_ == "machine_accuracy"
    losses = model.history_.train_loss
    assert losses[-1] < min_loss(weights.sum()) <= losses[-2]


@every_variant
def test_training_ends_where_no_tree_splits(parameters):
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small(**parameters).fit(np.zeros((40, 2)), np.arange(40) % 4)
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    assert (len(model.train_loss_), len(base_labels(model))) == (1, 0)
    assert model.class_losses_.shape == (1, 4)
    assert model.history_.candidate_losses.shape == (0, 4)
    assert model.model_.ensemble.n_iter == 0


@every_variant
def test_iteration_without_progress_is_not_kept(parameters):
    with pytest.warns(UserWarning, match="every class has the same probability everywhere"):
        model = small(**parameters, learning_rate=1e-300).fit(*noisy_data())
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    assert model.model_.ensemble.n_iter == 0


# -------------------------------------------------------------------------------- kept base classes


def two_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return rows where feature 0 separates classes 0 and 1, and feature 1 classes 2 and 3.

    A split gains most where the base class and the other one are a pair: up to four times the gain
    of any other split, so min_gain can forbid the others.
    """
    rows = [
        (a, b, label)
        for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]
        for label in [a] * 47 + [1 - a] * 3 + [2 + b] * 45 + [3 - b] * 5
    ]
    table = np.array(rows, float)
    return table[:, :2], table[:, 2].astype(int)


GREEDY = {"learning_rate": 0.3, "max_iter": 40}


def test_kept_base_without_progress_triggers_a_new_search():
    X, y = two_pairs()
    model = small(AdaptiveBaseClass(n_candidates=4, gap=1000, min_gain=30), **GREEDY).fit(X, y)
    bases = base_labels(model)
    change = next(step for step, base in enumerate(bases) if base != bases[0])
    assert {bases[0] // 2, bases[change] // 2} == {0, 1}  # one pair, then the other
    searched = ~np.isnan(model.history_.candidate_losses).all(axis=1)
    assert np.flatnonzero(searched).tolist() == [0, change]
    fixed = small(AdaptiveBaseClass(base_label=bases[0], min_gain=30), **GREEDY).fit(X, y)
    # the kept base alone ends there
    assert (fixed.n_iter_, fixed.stop_reason_) == (change, "no_progress")
    assert model.stop_reason_ == "no_progress"


class StuckTrainer:
    """Makes progress only if one of the given classes is tried as base."""

    def __init__(self, *fruitful: int) -> None:
        self.fruitful, self.tried = set(fruitful), []

    def train_iteration(self, classes, bases, base_derivatives, leaf_scale, number):
        self.tried.append(bases)
        return SimpleNamespace(changed=bool(self.fruitful & {*bases}))


def train_stuck(trainer: StuckTrainer, policy: BasePolicy, bases: list[int | None]):
    settings = SimpleNamespace(
        algorithm=Algorithm(base_derivatives=True, hessian_split=False), sequential_residuals=False
    )
    resolved = SimpleNamespace(settings=settings, base_policy=policy, has_draws=False)
    losses = np.array([4.0, 3.0, 2.0, 1.0])
    records = [Record(10.0, losses, base, np.full(4, np.nan)) for base in [None, *bases]]
    return choose_and_train(BoostingState(trainer, None, records), resolved)


@pytest.mark.parametrize(
    ("fruitful", "tried"),
    [([3], [(3,)]), ([0], [(3,), (0, 1)]), ([2], [(3,), (0, 1)])],
    ids=["kept base makes progress", "new search makes progress", "no progress"],
)
def test_new_search_happens_only_after_a_kept_base_without_progress(fruitful, tried):
    trainer = StuckTrainer(*fruitful)
    last, parts = train_stuck(trainer, WorstBases(0, n_candidates=2, gap=5), [3, 3])
    assert trainer.tried == tried
    assert last == tried[-1]
    assert bool(parts) == bool({*fruitful} & {*last})


@pytest.mark.parametrize("n_steps_before", [0, 6])
def test_search_without_progress_is_not_repeated(n_steps_before):
    trainer = StuckTrainer()
    policy = WorstBases(0, n_candidates=2, gap=5)
    assert train_stuck(trainer, policy, [3] * n_steps_before) == ((0, 1), ())
    assert trainer.tried == [(0, 1)]


# ------------------------------------------------------------------------------------ progress line


def test_progress_line_shows_every_iteration(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "abcgbm.training.fit_run.ProgressLine.show", lambda _, *what: shown.append(what)
    )
    model = small(verbose=1).fit(*noisy_data())
    assert shown[0][0] == 0  # before the first iteration
    means = model.train_loss_[1:]
    bases = base_labels(model)
    steps = zip(range(1, len(means) + 1), means, bases, strict=True)
    assert shown[1:] == [(i, loss, None, "train", base) for i, loss, base in steps]


def test_error_while_showing_progress_propagates_and_fit_can_be_repeated(monkeypatch):
    def fail(_, n_iter, *losses):
        if n_iter > 0:
            raise RuntimeError(f"at iteration {n_iter}")

    with monkeypatch.context() as patched:
        patched.setattr("abcgbm.training.fit_run.ProgressLine.show", fail)
        with pytest.raises(RuntimeError, match="at iteration 1"):
            small(n_jobs=2, verbose=1).fit(*noisy_data())
    assert small(n_jobs=2).fit(*noisy_data()).stop_reason_ == "max_iter"


# ----------------------------------------------------------------------------- sequential residuals


def test_sequential_residuals_matter_with_many_classes_but_not_with_two():
    X, y = noisy_data(n_classes=4)
    by_step, by_class = (
        small(TreePerClass("mart", sequential_residuals=r)).fit(X, y) for r in (False, True)
    )
    assert by_step.predict_proba(X).tobytes() != by_class.predict_proba(X).tobytes()
    X, y = noisy_data(n_classes=2)
    assert_same_model(
        *(small(TreePerClass("mart", sequential_residuals=r)).fit(X, y) for r in (False, True))
    )


def test_first_tree_does_not_depend_on_sequential_residuals():
    X, y = noisy_data(n_classes=4)
    one, other = (
        small(TreePerClass("mart", sequential_residuals=r), max_iter=1).fit(X, y).model_.ensemble
        for r in (False, True)
    )
    end = one.tree_start[1]
    assert other.tree_start[1] == end
    np.testing.assert_array_equal(one.value[:end], other.value[:end])
    assert one.iteration_start.tolist() == other.iteration_start.tolist() == [0, 4]


# ---------------------------------------------------------------------------------------- the guard


def test_inactive_guard_leaves_full_steps():
    X, y = noisy_data(n_classes=4)
    reports = []
    model = small(callbacks=reports.append).fit(X, y)
    assert (model.model_.ensemble.tree_base_scale == 1).all()
    assert not any(report.was_scaled_back for report in reports)


def test_guard_shortens_steps_of_many_classes():
    X, y = noisy_data(n_rows=900, n_classes=60)
    reports = []
    model = small(max_iter=10, callbacks=reports.append).fit(X, y)
    scale = model.model_.ensemble.tree_base_scale[model.model_.ensemble.iteration_start[:-1]]
    assert (scale < 1).any()
    assert [report.was_scaled_back for report in reports] == (scale < 1).tolist()
    assert (np.diff(model.train_loss_) <= 0).all()


# -------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart", "logitboost"])
def test_row_subsampling_does_not_end_training(algorithm):
    """Progress is measured on the rows of the draw; the loss of other rows may increase."""
    X, y = load_iris(return_X_y=True)
    model = small(algorithm, max_iter=200, subsample=0.5).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (200, "max_iter")
    assert model.train_loss_[-1] < 1.0


def test_iteration_without_progress_is_retried_with_other_draws():
    """One of 8 features is informative, and one is drawn for each split."""
    X, y = noisy_data(n_features=1)
    model = small(max_iter=5, max_features=1).fit(np.column_stack([X, np.zeros((400, 7))]), y)
    assert model.n_iter_ == 5


def test_repeated_draws_without_progress_end_training():
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small(max_features=1).fit(np.zeros((400, 3)), noisy_data()[1])
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
