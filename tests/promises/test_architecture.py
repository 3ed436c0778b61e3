"""The folder listing is the architecture: which room may know which, and how large anything may be."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "abcgbm"
CPP = ROOT / "cpp"
if not (PACKAGE.is_dir() and CPP.is_dir()):
    pytest.skip("the sources are not here", allow_module_level=True)

# Each room may use those before it, and itself. Faces are what users meet.
ROOMS = ("_version", "errors", "communication", "parameters", "data", "model", "training", "faces")
FACES = (
    *("__init__", "__main__", "classifier", "prediction", "fitted", "inspection", "persistence"),
    *("sklearn_callbacks", "evaluation", "plotting", "report", "demo", "cli", "distributed"),
)
CPP_ROOMS = {
    "base": (),
    "data": ("base",),
    "loss": ("base", "data"),
    "tree": ("base", "data", "loss"),
    "grow": ("base", "data", "loss", "tree"),
    "boost": ("base", "data", "loss", "tree", "grow"),
    "predict": ("base",),
    "bindings": ("base", "data", "loss", "tree", "grow", "boost", "predict"),
    "bench": ("base", "data", "loss", "tree", "grow", "boost", "bindings"),
}
MODULES = sorted(PACKAGE.rglob("*.py"))
UNITS = sorted(CPP.rglob("*.[ch]pp"))
MAX_LINES, MAX_LINES_OF_A_FUNCTION, MAX_PARAMETERS, MAX_LINES_OF_FIT = 400, 40, 6, 15


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------------------------------- directions


def room_of(module: str) -> str:
    """The room of `data.tables`, or of a module on top."""
    first = module.split(".", maxsplit=1)[0]
    return first if first in ROOMS else "faces"


def modules_used(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports, without `abcgbm.` in front; `_core` is below all."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            if node.module == "abcgbm":
                yield from (alias.name for alias in node.names if alias.name != "_core")
            elif (node.module or "").startswith("abcgbm."):
                yield node.module.removeprefix("abcgbm.")
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            assert not any(name.split(".")[0] == "abcgbm" for name in names), "import abcgbm"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_room_knows_only_those_below_it(path):
    inside = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    own = ROOMS.index(room_of(inside))
    above = [used for used in modules_used(path) if ROOMS.index(room_of(used)) > own]
    assert above == []


def test_every_module_is_in_a_room_or_a_face():
    at_top = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}
    assert at_top == {*ROOMS[:-1], *FACES}


def test_modules_know_each_other_in_one_direction_only():
    inside = {
        path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path
        for path in MODULES
    }
    left = {name: {*modules_used(path)} & inside.keys() - {name} for name, path in inside.items()}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    assert left == {}, "these import each other in a circle"


@pytest.mark.parametrize("path", UNITS, ids=name_of)
def test_room_of_the_core_includes_only_those_below_it(path):
    room = path.relative_to(CPP).parts[0]
    included = re.findall(r'^#include "(\w+)/\w+\.hpp"', path.read_text(), re.MULTILINE)
    assert {*included} <= {room, *CPP_ROOMS[room]}


def test_every_include_of_ours_names_its_room():
    pattern = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
    included = {name for path in UNITS for name in pattern.findall(path.read_text())}
    assert all((CPP / name).is_file() for name in included)


# --------------------------------------------------------------------------------------------- sizes


def documented(tree: ast.AST) -> Iterator[ast.Expr]:
    """The docstrings in a piece of code."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            yield node.body[0]


def n_lines(node: ast.AST, first: int, last: int) -> int:
    return last - first + 1 - sum(d.end_lineno - d.lineno + 1 for d in documented(node))


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{name_of(path)}:{node.name}", node


def is_init_of_the_estimator(name: str) -> bool:
    return name == "src/abcgbm/classifier.py:__init__"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_is_long(path):
    text = path.read_text()
    assert n_lines(ast.parse(text), 1, len(text.splitlines())) <= MAX_LINES


@pytest.mark.parametrize("path", UNITS, ids=name_of)
def test_no_unit_of_the_core_is_long(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES


def long_functions(unit: Path) -> Iterator[str]:
    """Functions of a C++ file, as clang-format leaves them: from a line at its edge to the next `}`."""
    lines = unit.read_text().splitlines()
    starts = r"^(?!namespace|struct|class|enum|using|template|union)\w.*"
    begun = None
    for number, line in enumerate(lines):
        if begun is None and re.match(starts, line) and not line.endswith(";"):
            begun = number
        if begun is not None and (line == "}" or line.endswith("};")):
            if number - begun + 1 > MAX_LINES_OF_A_FUNCTION:
                yield f"{name_of(unit)}:{begun + 1}"
            begun = None


@pytest.mark.parametrize("path", UNITS, ids=name_of)
def test_no_function_of_the_core_is_long(path):
    """Methods, and the number of parameters, are looked at by clang-tidy, but for bindings."""
    assert list(long_functions(path)) == []


def test_no_function_is_long():
    lines = {name: n_lines(f, f.lineno, f.end_lineno) for name, f in functions()}
    long = {name: n for name, n in lines.items() if n > MAX_LINES_OF_A_FUNCTION}
    assert [name for name in long if not is_init_of_the_estimator(name)] == []


def test_no_function_has_many_parameters():
    def count(f: ast.FunctionDef) -> int:
        names = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        return len([name for name in names if name not in ("self", "cls")])

    many = [name for name, f in functions() if count(f) > MAX_PARAMETERS]
    of_users = [f"src/abcgbm/classifier.py:{name}" for name in ("__init__", "fit")]
    of_users.append("src/abcgbm/report/__init__.py:write_report")
    of_users.append("src/abcgbm/data/files/large_table.py:__init__")
    assert [name for name in many if name not in of_users] == []


def test_fit_is_a_table_of_contents():
    (fit,) = (f for name, f in functions() if name == "src/abcgbm/classifier.py:fit")
    assert n_lines(fit, fit.body[0].lineno, fit.end_lineno) <= MAX_LINES_OF_FIT
