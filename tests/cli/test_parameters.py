"""Parameters on the command line: options, objects as text, and precedence."""

import inspect
from pathlib import Path

import pytest

pytest.importorskip("typer")

import typer

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
from abcgbm.cli.app import app
from abcgbm.cli.console import Misuse
from abcgbm.cli.parameters import (
    ParameterOptions,
    callbacks_of,
    given_parameters,
    value_of,
    with_object,
)


def given(*assigned, params=None, **options):
    return given_parameters(ParameterOptions(**options), params, assigned)


def test_every_parameter_has_an_option_with_help():
    train = typer.main.get_command(app).commands["train"]
    options = {option.opts[0]: option for option in train.params}
    elsewhere = {"warm_start", "callbacks", "verbose"}
    for name in inspect.signature(ABCBoostClassifier).parameters.keys() - elsewhere:
        assert options[f"--{name.replace('_', '-')}"].help


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("True", True),
        ("None", None),
        ("auto", "auto"),
        ("abc-mart", "abc-mart"),
        ('"mart"', "mart"),
        ('["a", "b"]', ["a", "b"]),
        ("{a = 2.0}", {"a": 2.0}),
        ("AdaptiveBaseClass('mart', gap=5)", AdaptiveBaseClass("mart", gap=5)),
        ('"TreePerClass(min_gain=0.5)"', TreePerClass(min_gain=0.5)),
        ("MultiOutputTrees()", MultiOutputTrees()),
        ("Categorical(['soil', 2], penalty=0.0)", Categorical(["soil", 2], penalty=0.0)),
        ("print(1)", "print(1)"),
        ("TimeLimit(3)", "TimeLimit(3)"),
    ],
)
def test_value_is_parsed_as_toml_or_as_an_object(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "AdaptiveBaseClass(gap=__import__('os'))",
        "AdaptiveBaseClass(gap=1+x)",
        "AdaptiveBaseClass(*[1])",
        "AdaptiveBaseClass(**{'gap': 1})",
        "AdaptiveBaseClass(gap=1).fit",
        "AdaptiveBaseClass(gap=1",
        "AdaptiveBaseClass()()",
        "AdaptiveBaseClass(gap=" + "(" * 5000,
    ],
    ids=lambda text: text[:40],
)
def test_expression_other_than_a_call_with_literals_is_refused_and_not_run(text):
    with pytest.raises(
        ValueError, match=r"expected a call with literal arguments, such as AdaptiveBaseClass"
    ):
        with_object(text)


def test_unknown_parameter_of_an_object_is_named():
    with pytest.raises(TypeError, match="unexpected keyword argument 'gapp'"):
        value_of("AdaptiveBaseClass(gapp=1)")


def test_option_takes_precedence_over_set_and_set_over_a_file(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text('max_iter = 1\nmax_depth = 1\nalgorithm = "TreePerClass(min_gain=1.0)"\n')
    found = given("max_iter=2", "max_depth=2", params=file, max_iter="3")
    assert found == {"max_iter": 3, "max_depth": 2, "algorithm": TreePerClass(min_gain=1.0)}


def test_patience_option_enables_early_stopping():
    assert given(n_iter_no_change="5") == {"early_stopping": True, "n_iter_no_change": 5}
    kept = given(n_iter_no_change="5", early_stopping="false")
    assert kept == {"early_stopping": False, "n_iter_no_change": 5}
    assert given("early_stopping=auto", n_iter_no_change="5")["early_stopping"] == "auto"


def test_number_for_early_stopping_is_answered():
    with pytest.raises(Misuse, match="did you mean --n-iter-no-change 20"):
        given(early_stopping="20")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("max_time", "expected --time-limit"),
        ("checkpoint", "expected --checkpoint"),
        ("checkpoint_every", "expected --checkpoint-every"),
        ("on_interrupt", "expected --keep-on-interrupt"),
        ("callbacks", "expected --time-limit, --checkpoint or --keep-on-interrupt"),
        ("num_leaves", "did you mean max_leaf_nodes"),
        ("base_class", "did you mean algorithm=AdaptiveBaseClass"),
        ("max_leaf_node", "did you mean max_leaf_nodes"),
        ("zigzag", "expected one of"),
    ],
)
def test_unknown_parameter_is_answered(name, said):
    with pytest.raises(ValueError, match=f"no parameter '{name}'; {said}"):
        given(f"{name}=3")


def test_parameters_of_an_object_can_be_set_by_name():
    found = given("algorithm=abc-mart", "algorithm__gap=2", "categorical_features__penalty=0.5")
    model = ABCBoostClassifier().set_params(**found)
    assert model.algorithm == AdaptiveBaseClass("mart", gap=2)
    assert model.categorical_features == Categorical(penalty=0.5)


def test_callbacks_come_from_options():
    assert callbacks_of(None, None, None, False) is None
    path = Path("c.abcgbm")
    expected = [TimeLimit(3.0), Checkpoint(path, 5), KeepOnInterrupt()]
    assert callbacks_of(3.0, path, 5, True) == expected
    with pytest.raises(Misuse, match="--checkpoint-every without --checkpoint"):
        callbacks_of(None, None, 5, False)
