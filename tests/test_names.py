"""Names that other packages have for our parameters."""

import inspect

import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from abcgbm import ABCBoostClassifier
from abcgbm.parameters import hints as names
from models import noisy_data, small

X, Y = noisy_data()
PARAMETERS = set(ABCBoostClassifier().get_params())
FIT = set(inspect.signature(ABCBoostClassifier.fit).parameters)
# What only one of the packages has, or what here is always so.
WITHOUT_COUNTERPART = {"loss", "criterion", "min_samples_split", "ccp_alpha"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("n_estimators", "max_iter"),
        ("num_iteration", "max_iter"),
        ("num_leaves", "max_leaf_nodes"),
        ("reg_lambda", "l2_regularization"),
        ("early_stopping_rounds", "n_iter_no_change"),
        ("eval_set", "X_val and y_val of fit"),
        ("X_val", "X_val of fit"),
        ("max_leaf_node", "max_leaf_nodes"),
    ],
)
def test_name_of_another_package_gets_a_hint(name, ours):
    expected = f"unexpected keyword argument '{name}'; did you mean {ours}\\?$"
    with pytest.raises(TypeError, match=expected):
        ABCBoostClassifier(**{name: 7})
    expected = f"(?s)Invalid parameter '{name}' for .* Valid .*; did you mean {ours}\\?$"
    with pytest.raises(ValueError, match=expected):
        small().set_params(**{name: 7})
    pipeline = make_pipeline(small())
    with pytest.raises(ValueError, match=expected):
        pipeline.set_params(**{f"abcboostclassifier__{name}": 7})


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("eval_set", "X_val and y_val"),
        ("sample_weights", "sample_weight"),
        ("early_stopping_rounds", "n_iter_no_change of the estimator itself"),
        ("verbose", "verbose of the estimator itself"),
        ("eval_sample_weight", "sample_weight_val"),
    ],
)
def test_argument_of_another_package_gets_a_hint(name, ours):
    expected = f"fit\\(\\) got an unexpected keyword argument '{name}'; did you mean {ours}\\?$"
    with pytest.raises(TypeError, match=expected):
        small().fit(X, Y, **{name: 7})


def test_name_that_nobody_has_gets_none():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zigzag'$"):
        ABCBoostClassifier(zigzag=1)
    with pytest.raises(ValueError, match=r"Valid parameters are: .*\]\.$"):
        small().set_params(zigzag=1)


def test_error_of_a_part_comes_through():
    with pytest.raises(AttributeError):
        small().set_params(base_class__gap=1)


def test_every_hint_names_a_parameter_of_ours_and_no_name_is_ours():
    ours = {name for names_ in names._ELSEWHERE for name in names_.split(" and ")}
    assert ours <= PARAMETERS | FIT
    assert not names._OURS.keys() & (PARAMETERS | FIT)
    said = [name for names_ in names._ELSEWHERE.values() for name in names_.split()]
    assert len(said) == len(set(said))


@pytest.mark.parametrize("other", [HistGradientBoostingClassifier, GradientBoostingClassifier])
def test_parameters_of_scikit_learn_are_known(other):
    theirs = set(other().get_params())
    assert theirs - PARAMETERS - names._OURS.keys() <= WITHOUT_COUNTERPART


@pytest.mark.parametrize(
    ("package", "name"), [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")]
)
def test_main_parameters_of_other_packages_are_known(package, name):
    other = getattr(pytest.importorskip(package), name)
    theirs = set(other().get_params())
    assert len(theirs & (PARAMETERS | names._OURS.keys())) >= 12


def test_signatures_are_those_that_were_written():
    """scikit-learn, and those who type, look at them."""
    assert set(inspect.signature(ABCBoostClassifier).parameters) == PARAMETERS
    assert set(inspect.signature(ABCBoostClassifier.__init__).parameters) == PARAMETERS | {"self"}
    assert {"X_val", "y_val", "sample_weight"} < FIT
    with pytest.raises(TypeError, match="multiple values for argument 'algorithm'"):
        ABCBoostClassifier("mart", algorithm="mart")
