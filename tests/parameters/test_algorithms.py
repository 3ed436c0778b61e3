"""The objects that parameters take follow scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    Checkpoint,
    KeepOnInterrupt,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.parameters.algorithms import ALGORITHM_NAMES, named_algorithm
from models import assert_same_model, noisy_data, small

OBJECTS = [
    MultiOutputTrees(n_projections=3, baseline="zero"),
    TreePerClass("mart", sequential_residuals=True),
    AdaptiveBaseClass("logitboost", n_candidates=None, gap=2, warmup=1, line_search=False),
    AdaptiveBaseClass(base_label="elm"),
    Categorical(["soil", 2], smoothing=0.5, penalty=0.0, handle_unknown="error"),
    Categorical(np.array([True, False])),
    TimeLimit(60),
    Checkpoint("model.abcgbm", every=10),
    KeepOnInterrupt(),
]


@pytest.mark.parametrize("given", OBJECTS, ids=repr)
def test_object_is_cloned_pickled_and_compared_by_value(given):
    for copy in (clone(given), pickle.loads(pickle.dumps(given))):
        assert copy == given
        assert copy is not given
    rebuilt = type(given)(**given.get_params())
    assert rebuilt == given
    assert type(given)(**given.get_params()).set_params(**given.get_params()) == given
    assert all(other != given for other in OBJECTS if other is not given)
    with pytest.raises(TypeError, match="unhashable"):
        hash(given)


@pytest.mark.parametrize("given", [of for of in OBJECTS if type(of).__name__ != "Categorical"])
def test_repr_is_the_constructor_call(given):
    names = {type(of).__name__: type(of) for of in OBJECTS}
    assert eval(repr(given), {}, names) == given


def test_objects_with_different_values_are_not_equal():
    assert AdaptiveBaseClass(gap=1) != AdaptiveBaseClass(gap=2)
    assert MultiOutputTrees() != TreePerClass()
    assert Categorical([1, 2]) != Categorical(np.array([1, 2]))
    assert TimeLimit(60) != 60


def test_arguments_are_stored_unchanged_and_validated_in_fit():
    X, y = noisy_data()
    wrong = AdaptiveBaseClass(gap=-1)
    assert wrong.gap == -1
    with pytest.raises(
        ValueError, match="AdaptiveBaseClass: gap=-1; expected an integer of at least 0"
    ):
        small(wrong).fit(X, y)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (MultiOutputTrees("gini"), "MultiOutputTrees: criterion='gini'; expected"),
        (
            MultiOutputTrees(n_projections=0),
            "n_projections=0; expected 'auto', 'all' or an integer",
        ),
        (MultiOutputTrees(baseline="mean"), "baseline='mean'; .*did you mean 'prior'"),
        (MultiOutputTrees(min_gain=-1), "min_gain=-1; expected a number of at least 0"),
        (TreePerClass(sequential_residuals="class"), "sequential_residuals='class'; expected True"),
        (TreePerClass(recenter=1), "recenter=1; expected True or False"),
        (TreePerClass("mart", min_hessian_leaf=1.0), "min_hessian_leaf=1.0 with .*'mart'"),
        (
            AdaptiveBaseClass(n_candidates=0),
            "n_candidates=0; expected None or an integer of at least 1",
        ),
        (AdaptiveBaseClass(warmup=-2), "warmup=-2; expected an integer of at least 0"),
        (AdaptiveBaseClass(base_label=0, gap=2), "base_label=0 with gap=2"),
        (AdaptiveBaseClass(base_label="yew"), "base_label='yew'; expected one of the labels"),
        (AdaptiveBaseClass(n_candidates=2, base_derivatives=False), "base_derivatives=False with"),
        (AdaptiveBaseClass(line_search="full"), "line_search='full'; expected True or False"),
    ],
    ids=repr,
)
def test_error_names_the_object_and_its_parameter(algorithm, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small(algorithm).fit(*noisy_data())


def test_class_instead_of_an_object_is_an_error():
    with pytest.raises(TypeError, match=r"expected an object: AdaptiveBaseClass\(\)"):
        small(AdaptiveBaseClass).fit(*noisy_data())


def test_integral_floats_are_accepted():
    X, y = noisy_data()
    floats = small(AdaptiveBaseClass(n_candidates=2.0, gap=1.0), max_iter=4.0, max_leaf_nodes=5.0)
    whole = small(AdaptiveBaseClass(n_candidates=2, gap=1), max_iter=4, max_leaf_nodes=5)
    assert_same_model(floats.fit(X, y), whole.fit(X, y))


@pytest.mark.parametrize("name", ALGORITHM_NAMES)
def test_name_is_equivalent_to_its_object(name):
    X, y = noisy_data()
    given = {"max_iter": 8, "max_leaf_nodes": 6, "learning_rate": 0.5}
    named = ABCBoostClassifier(name, **given).fit(X, y)
    assert_same_model(named, ABCBoostClassifier(named_algorithm(name), **given).fit(X, y))
    assert type(named.resolved_params_["algorithm"]) is type(named_algorithm(name))


def test_grid_search_reaches_the_parameters_of_an_algorithm():
    X, y = noisy_data()
    search = GridSearchCV(
        small(AdaptiveBaseClass()),
        {"algorithm__gap": [0, 3], "algorithm__n_candidates": [1, None]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert set(search.best_params_) == {"algorithm__gap", "algorithm__n_candidates"}
    assert search.best_estimator_.algorithm.gap == search.best_params_["algorithm__gap"]


def test_parameters_of_an_algorithm_name_are_set_through_its_object():
    model = ABCBoostClassifier("abc-mart").set_params(algorithm__gap=3)
    assert model.algorithm == AdaptiveBaseClass("mart", gap=3)
    model = ABCBoostClassifier().set_params(
        algorithm="logitboost", algorithm__min_gain=0.5, categorical_features__penalty=2.0
    )
    assert model.algorithm == TreePerClass("logitboost", min_gain=0.5)
    assert model.categorical_features == Categorical(penalty=2.0)
    model = ABCBoostClassifier(categorical_features=[1]).set_params(
        categorical_features__smoothing=1
    )
    assert model.categorical_features == Categorical([1], smoothing=1)


def test_categorical_without_arguments_is_the_default():
    X, y = noisy_data()
    plain, wrapped = small(categorical_features=[0]), small(categorical_features=Categorical([0]))
    X = np.floor(np.nan_to_num(X) * 3)
    assert_same_model(plain.fit(X, y), wrapped.fit(X, y))
