"""The architecture: which package may import which, and the maximum size of files."""

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

# Each package may import those before it, and itself; user-facing modules may import all.
PACKAGES = (
    "_version",
    "errors",
    "communication",
    "parameters",
    "data",
    "model",
    "training",
    "user",
)
USER_FACING = (
    *("__init__", "__main__", "classifier", "prediction", "fitted", "inspection", "persistence"),
    *("sklearn_callbacks", "evaluation", "plotting", "report", "demo", "cli", "distributed"),
)
CPP_PACKAGES = {
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
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Return the dotted name of a module without the prefix `abcgbm.`."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")


# ------------------------------------------------------------------------------------------- imports


def level_of(module: str) -> int:
    """Return the position of a module's package in the order of imports."""
    first = module.split(".", maxsplit=1)[0]
    return PACKAGES.index(first if first in PACKAGES else "user")


def modules_used(path: Path) -> Iterator[str]:
    """Return the modules of the package that a file imports, without native ones."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            if node.module == "abcgbm":
                yield from (alias.name for alias in node.names if alias.name != "_core")
            elif (node.module or "").startswith("abcgbm."):
                yield node.module.removeprefix("abcgbm.")
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
            assert "abcgbm" not in names, f"{name_of(path)}: import abcgbm"


def test_packages_import_only_those_below_them():
    upwards = [
        f"{module_of(path)} -> {used}"
        for path in MODULES
        for used in modules_used(path)
        if level_of(used) > level_of(module_of(path))
    ]
    assert upwards == []


def test_every_module_is_in_a_package_or_public():
    at_top = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}
    assert at_top == {*PACKAGES[:-1], *USER_FACING}


def test_modules_do_not_import_each_other_in_a_cycle():
    inside = {module_of(path): path for path in MODULES}
    left = {name: {*modules_used(path)} & inside.keys() - {name} for name, path in inside.items()}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    assert left == {}


def test_packages_of_the_core_include_only_those_below_them():
    upwards = [
        f"{name_of(path)} -> {included}"
        for path in UNITS
        for included in INCLUDE.findall(path.read_text())
        for own in [path.relative_to(CPP).parts[0]]
        if included.split("/")[0] not in (own, *CPP_PACKAGES[own])
    ]
    assert upwards == []


def test_every_include_names_its_package():
    included = {name for path in UNITS for name in INCLUDE.findall(path.read_text())}
    assert [name for name in included if not (CPP / name).is_file()] == []


# --------------------------------------------------------------------------------------------- sizes


def documented(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield the docstring nodes."""
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


def test_no_module_is_long():
    texts = {name_of(path): path.read_text() for path in MODULES}
    lines = {
        name: n_lines(ast.parse(text), 1, len(text.splitlines())) for name, text in texts.items()
    }
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


def test_no_file_of_the_core_is_long():
    lines = {name_of(path): len(path.read_text().splitlines()) for path in UNITS}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


def long_functions(unit: Path) -> Iterator[str]:
    """Return long C++ functions: clang-format puts their first line and final `}` at column 0."""
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


def test_no_function_of_the_core_is_long():
    """clang-tidy checks methods and numbers of parameters, except in the bindings."""
    assert [function for path in UNITS for function in long_functions(path)] == []


def test_no_function_is_long():
    lines = {name: n_lines(f, f.lineno, f.end_lineno) for name, f in functions()}
    long = {name: n for name, n in lines.items() if n > MAX_LINES_OF_A_FUNCTION}
    assert [name for name in long if not is_init_of_the_estimator(name)] == []


def test_no_function_has_many_parameters():
    def count(f: ast.FunctionDef) -> int:
        names = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        return len([name for name in names if name not in ("self", "cls")])

    public = {
        "src/abcgbm/classifier.py:__init__",
        "src/abcgbm/classifier.py:fit",
        "src/abcgbm/parameters/algorithms.py:__init__",
        "src/abcgbm/report/__init__.py:write_report",
        "src/abcgbm/data/files/large_table.py:__init__",
    }
    many = {name for name, f in functions() if count(f) > MAX_PARAMETERS}
    assert many - public == set()


def test_fit_is_short():
    (fit,) = (f for name, f in functions() if name == "src/abcgbm/classifier.py:fit")
    assert n_lines(fit, fit.body[0].lineno, fit.end_lineno) <= MAX_LINES_OF_FIT
