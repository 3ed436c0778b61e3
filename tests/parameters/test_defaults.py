"""Defaults: the rules behind "auto", and tables on which earlier defaults failed."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, Checkpoint, MultiOutputTrees, TreePerClass
from abcgbm.parameters.defaults import Size, resolve_defaults
from abcgbm.parameters.parameters import Parameters
from models import assert_same_model, noisy_data

X, Y = noisy_data(n_rows=1500, n_classes=4)
SHARED = {
    "algorithm": MultiOutputTrees(n_projections=4, baseline="prior"),
    "learning_rate": 0.04,
    "max_leaf_nodes": 15,
    "l2_regularization": 0.75,
    "max_features": 0.5,
}
PAPER = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 12,
    "l2_regularization": 0.0,
    "max_features": None,
}


# ----------------------------------------------------------------------------------------- the rules


def test_defaults_match_the_docstring():
    model = ABCBoostClassifier().fit(X, Y)
    assert_same_model(model, ABCBoostClassifier(max_iter=300, **SHARED).fit(X, Y))
    expected = SHARED | {"max_iter": 300, "early_stopping": False}
    assert model.resolved_params_ == expected


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("mart", TreePerClass("mart", baseline="zero")),
        ("abc-mart", AdaptiveBaseClass("mart", n_candidates=1, gap=0, line_search=True)),
        ("logitboost", TreePerClass("logitboost", baseline="zero")),
        ("abc-logitboost", AdaptiveBaseClass("logitboost", n_candidates=2, gap=5)),
    ],
)
def test_named_algorithm_has_one_tree_per_class(name, algorithm):
    model = ABCBoostClassifier(name, max_iter=30).fit(X, Y)
    assert_same_model(model, ABCBoostClassifier(algorithm, max_iter=30, **PAPER).fit(X, Y))
    assert model.resolved_params_["algorithm"] == algorithm


@pytest.mark.parametrize(
    ("n_rows", "leaves"), [(50, 12), (1299, 12), (1300, 13), (9_999, 99), (40_000, 200)]
)
def test_default_number_of_leaves_depends_on_the_rows(n_rows, leaves):
    rows = np.arange(n_rows) % 2
    model = ABCBoostClassifier(max_iter=1, learning_rate=0.1).fit(rows[:, None], rows)
    assert model.resolved_params_["max_leaf_nodes"] == leaves


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ({}, 0.04),
        ({"max_iter": 300}, 0.04),
        ({"max_iter": 1000}, 0.04),
        ({"max_iter": 127}, 0.04),
        ({"max_iter": 1}, 0.04),
        ({"max_iter": None}, 0.04),
        ({"max_iter": 100, "warm_start": True}, 0.04),
        ({"max_iter": 100, "early_stopping": True}, 0.04),
        ({"max_iter": 10, "algorithm": "mart"}, 0.1),
        ({"max_iter": 10, "learning_rate": 0.5}, 0.5),
    ],
    ids=str,
)
def test_learning_rate_does_not_depend_on_max_iter(given, rate):
    settings = Parameters.from_parameters(ABCBoostClassifier(**given).get_params())
    chosen = resolve_defaults(settings, Size(1000, 3), has_validation=False)
    assert chosen.learning_rate == rate


def warnings_of(model, **data) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(**({"X": X, "y": Y} | data))
    return [str(warning.message) for warning in caught]


TOO_FEW = [
    ({"max_iter": 74}, "max_iter=74 with the default learning rate of 0.04 .* Give max_iter=75 or"),
    ({"algorithm": "mart", "max_iter": 29}, "rate of 0.1 .*: their product is 2.9, .*max_iter=30 "),
    ({"max_iter": 3, "early_stopping": True}, "their product is 0.12, below 3"),
    ({"max_iter": 3, "early_stopping": True, "refit": True}, "their product is 0.12, below 3"),
]


@pytest.mark.parametrize(("given", "message"), TOO_FEW, ids=str)
def test_too_few_iterations_for_the_default_rate_warn_once(given, message):
    (warning,) = warnings_of(ABCBoostClassifier(**given))
    assert re.search(message, warning)


def stops_at_two(report):
    return report.iteration == 2


ENOUGH = [
    {"max_iter": 75},
    {"algorithm": "mart", "max_iter": 30},
    {"max_iter": 3, "learning_rate": 0.04},
    {"max_iter": 3, "warm_start": True},
    {"max_iter": 3, "callbacks": stops_at_two},
    {"max_iter": 70, "early_stopping": True, "n_iter_no_change": 1, "tol": 1.0, "scoring": "error"},
]


@pytest.mark.parametrize("given", ENOUGH, ids=" ".join)
def test_sufficient_iterations_do_not_warn(given):
    found = warnings_of(ABCBoostClassifier(**given))
    assert not any("default learning rate" in message for message in found)


def test_resumed_fit_does_not_warn_again(tmp_path):
    path = tmp_path / "checkpoint"
    ABCBoostClassifier(max_iter=3, callbacks=[lambda r: r.iteration == 2, Checkpoint(path)]).fit(
        X, Y
    )
    assert warnings_of(ABCBoostClassifier(max_iter=3), resume_from=path) == []


@pytest.mark.parametrize(("n_rows", "n_iter", "rate"), [(49_999, 300, 0.04), (50_000, 200, 0.06)])
@pytest.mark.parametrize("has_validation", [False, True])
def test_many_rows_take_fewer_iterations(n_rows, n_iter, rate, has_validation):
    settings = Parameters.from_parameters(ABCBoostClassifier().get_params())
    chosen = resolve_defaults(settings, Size(n_rows, 3), has_validation=has_validation)
    assert chosen.learning_rate == rate
    assert chosen.max_iter == (None if has_validation else n_iter)


def test_there_are_no_more_than_1024_leaves():
    settings = Parameters.from_parameters(ABCBoostClassifier().get_params())
    chosen = resolve_defaults(settings, Size(10**8, 3), has_validation=False)
    assert chosen.max_leaf_nodes == 1024


def test_zero_weight_rows_do_not_count():
    weight = np.r_[np.ones(1000), np.zeros(500)]
    model = ABCBoostClassifier(max_iter=3, learning_rate=0.1).fit(X, Y, weight)
    assert model.resolved_params_["max_leaf_nodes"] == 12
    few = ABCBoostClassifier(max_iter=3, learning_rate=0.1)
    assert_same_model(model, few.fit(X[:1000], Y[:1000]))


def test_given_values_take_precedence():
    given = {"learning_rate": 0.3, "max_leaf_nodes": 5, "l2_regularization": 2.0, "max_iter": 4}
    assert ABCBoostClassifier(**given).fit(X, Y).resolved_params_.items() >= given.items()


def test_warm_start_keeps_resolved_defaults():
    model = ABCBoostClassifier(max_iter=50, learning_rate=0.15).fit(X, Y)
    model.set_params(warm_start=True, max_iter=60, learning_rate="auto").fit(X, Y)
    assert model.resolved_params_["learning_rate"] == 0.15
    assert_same_model(model, ABCBoostClassifier(max_iter=60, learning_rate=0.15).fit(X, Y))
    many = ABCBoostClassifier(learning_rate=0.3, max_iter=310, warm_start=True).fit(X, Y)
    assert many.set_params(max_iter="auto").fit(X, Y).n_iter_ == 310


def test_paper_settings_are_one_call():
    paper = ABCBoostClassifier.paper("abc-mart", max_iter=5)
    spelled_out = ABCBoostClassifier(
        AdaptiveBaseClass(line_search=False), **PAPER | {"max_leaf_nodes": 20}, max_iter=5
    )
    assert_same_model(paper.fit(X, Y), spelled_out.fit(X, Y))
    assert ABCBoostClassifier.paper().get_params()["max_iter"] == 1000


# ----------------------------------------------------------------------- tables of earlier failures


def classes(n_classes: int, n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n_rows,
        n_features=20,
        n_informative=15,
        n_classes=n_classes,
        n_clusters_per_class=1,
        random_state=seed,
    )


@pytest.mark.parametrize(("n_classes", "n_rows"), [(3, 600), (30, 2000), (100, 5000), (300, 6000)])
def test_first_iterations_lower_the_validation_loss(n_classes, n_rows):
    table, labels = classes(n_classes, n_rows)
    n_train = 4 * n_rows // 5
    model = ABCBoostClassifier(max_iter=10, learning_rate=0.15, early_stopping=False).fit(
        table[:n_train],
        labels[:n_train],
        X_val=table[n_train:],
        y_val=labels[n_train:],
    )
    assert model.validation_loss_[-1] < model.validation_loss_[0]


def test_hundred_classes_are_learned_with_validation():
    table, labels = classes(100, 5000)
    model = ABCBoostClassifier().fit(
        table[:4000], labels[:4000], X_val=table[4000:], y_val=labels[4000:]
    )
    assert model.best_iteration_ > 0
    assert model.score(table[4000:], labels[4000:]) > 0.3


def test_high_cardinality_noise_costs_little_accuracy():
    table, labels = make_classification(
        3000, n_features=12, n_informative=12, n_redundant=0, n_classes=6, random_state=3
    )
    noise = np.random.default_rng(0).integers(200, size=len(labels)).astype(str)
    frame = pd.DataFrame(table).rename(columns=str)
    scores = [
        ABCBoostClassifier().fit(X[:1500], labels[:1500]).score(X[1500:], labels[1500:])
        for X in (frame, frame.assign(noise=noise))
    ]
    assert scores[1] > scores[0] - 0.03
