"""The public names of the package and their documentation."""

import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import abcgbm
from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    BinnedTable,
    Categorical,
    Checkpoint,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from models import noisy_data, run_python, small

ROOT = Path(__file__).parents[2]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(abcgbm.__path__, "abcgbm.")
    if not module.name.startswith("abcgbm._")
]


def test_public_names_exist():
    expected = """ABCBoostClassifier MultiOutputTrees TreePerClass AdaptiveBaseClass Categorical
    TimeLimit Checkpoint KeepOnInterrupt IterationReport BinMapper BinnedTable LargeTable
    ModelFileError"""
    assert set(expected.split()) == set(abcgbm.__all__)
    assert all(hasattr(abcgbm, name) for name in abcgbm.__all__)


def test_dir_of_the_package_is_its_public_api():
    assert set(dir(abcgbm)) == {*abcgbm.__all__, "__version__"}


def test_version_has_a_single_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert abcgbm.__version__ == importlib.metadata.version("abcgbm") == project["version"]


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi"])
def test_package_is_typed(name):
    assert importlib.resources.files("abcgbm").joinpath(name).is_file()


def test_import_needs_no_optional_package_and_prints_nothing():
    code = "import sys, abcgbm; print(sorted({'matplotlib', 'lightgbm'} & {*sys.modules}))"
    assert run_python(code) == "[]\n"


def test_import_does_not_load_slow_scikit_learn_modules():
    code = "import sys, abcgbm; print([f'sklearn.{n}' in sys.modules for n in ('datasets', 'metrics')])"
    assert run_python(code) == "[False, False]\n"


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_estimator_shows_an_example():
    examples = doctest.DocTestFinder().find(ABCBoostClassifier, "ABCBoostClassifier")
    assert any(test.examples for test in examples)


def documented(section: str, of: type = ABCBoostClassifier) -> set[str]:
    """Return the names in a section of a class's docstring."""
    text = inspect.getdoc(of)
    body = text.split(f"{section}\n{'-' * len(section)}\n")[1].split("\n\n")[0]
    return set(re.findall(r"^(\w+) : ", body, re.MULTILINE))


@pytest.mark.parametrize(
    "of",
    [
        ABCBoostClassifier,
        AdaptiveBaseClass,
        BinMapper,
        Categorical,
        Checkpoint,
        MultiOutputTrees,
        TimeLimit,
        TreePerClass,
    ],
)
def test_every_parameter_is_documented(of):
    assert documented("Parameters", of) == inspect.signature(of).parameters.keys()


def test_every_attribute_of_a_binned_table_is_documented():
    assert documented("Attributes", BinnedTable) == inspect.signature(BinnedTable).parameters.keys()


def test_every_fitted_attribute_is_documented():
    model = small().fit(*noisy_data())
    fitted = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert fitted | {"feature_names_in_", "best_score_"} == documented("Attributes")


@pytest.mark.parametrize("of", [ABCBoostClassifier, BinMapper, BinnedTable])
def test_every_public_method_is_documented(of):
    own = [value for name, value in vars(of).items() if not name.startswith("_")]
    assert all(
        inspect.getdoc(value) for value in own if callable(value) or isinstance(value, property)
    )


def test_predictions_are_plain_numpy_arrays():
    X, y = noisy_data()
    model = small().fit(X, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        answer = getattr(model, method)(X)
        assert type(answer) is np.ndarray
        assert answer.flags.writeable
