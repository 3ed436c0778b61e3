"""Counts of modules, lines, functions, imports and pages, without running the package."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

FEW_LINES = 6  # of a private helper that could be inlined
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A Python file of a package."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_init(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def n_lines(self) -> int:
        return len(self.text.splitlines())


def modules_of(package: Path) -> dict[str, Module]:
    """Return all modules of a package in a folder, by their dotted names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path)
    return found


# --------------------------------------------------------------------------------------------- lines


def docstrings(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the docstrings in a piece of code."""
    for node in ast.walk(tree):
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0]


def height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def tokens_of(module: Module) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(module.text).readline))


def code_lines(module: Module) -> int:
    """Count the lines other than blanks, comments and docstrings."""
    lines: set[int] = set()
    for token in tokens_of(module):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for docstring in docstrings(module.tree):
        lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def comment_lines(module: Module) -> int:
    """Count the lines with only a comment."""
    comments = [token for token in tokens_of(module) if token.type == tokenize.COMMENT]
    return sum(token.line.lstrip().startswith("#") for token in comments)


# ----------------------------------------------------------------------------------------- functions


def functions_of(module: Module) -> list[Definition]:
    return [node for node in ast.walk(module.tree) if isinstance(node, Definition)]


def function_lines(function: Definition) -> int:
    """Count the lines of a function from its `def` on, without docstrings."""
    return height(function) - sum(map(height, docstrings(function)))


def median_and_p90(lines: list[int]) -> tuple[float, float]:
    median, p90 = np.percentile(lines, [50, 90])
    return float(median), float(p90)


def private_functions(module: Module) -> list[Definition]:
    return [
        function
        for function in functions_of(module)
        if function.name.startswith("_") and not function.name.startswith("__")
    ]


def small_helpers(module: Module) -> list[Definition]:
    """Return short private functions with a single use in their module."""
    uses = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return [
        function
        for function in private_functions(module)
        if uses[function.name] == 1 and function_lines(function) <= FEW_LINES
    ]


# ------------------------------------------------------------------------------------------- imports


def imported_names(module: Module) -> Iterator[str]:
    """Yield every dotted name that a module may import by its absolute imports."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Return for each module those that import it; a package counts only where its names are used."""
    found: dict[str, set[str]] = {name: set() for name in modules}
    for name, module in modules.items():
        for imported in modules_imported(module, modules) - {name}:
            found[imported].add(name)
    return found


def modules_imported(module: Module, modules: dict[str, Module]) -> set[str]:
    """For `from package import module`, the module counts as imported, not the package."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in modules:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in modules else node.module for name in inner)
    return found


def with_one_importer(modules: dict[str, Module]) -> dict[str, str]:
    """Return modules with a single importer, and that importer; `__init__` files do not count."""
    return {
        name: next(iter(by))
        for name, by in importers(modules).items()
        if len(by) == 1 and not modules[name].is_init
    }


def importing(modules: dict[str, Module], packages: set[str]) -> list[str]:
    """Return the modules that import one of these packages."""
    return [
        name
        for name, module in modules.items()
        if packages & {imported.split(".")[0] for imported in imported_names(module)}
    ]


# -------------------------------------------------------------------------------------- other files


def pages_of(root: Path) -> list[Path]:
    """Return the pages of docs/ without those of the API and the gallery, and those of the root.

    The README is a row of its own.
    """
    docs = root / "docs"
    left_out = (docs / "api", docs / "gallery", root / "README.md")
    pages = sorted([*root.glob("*.md"), *docs.rglob("*.md")])
    return [page for page in pages if page.parent not in left_out and page not in left_out]


def lines_of(*files: Path) -> int:
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def cpp_files(root: Path) -> list[Path]:
    return sorted((root / "cpp").rglob("*.[ch]pp"))


def tree_drivers(files: list[Path]) -> tuple[set[str], set[str]]:
    """Return the C++ classes named ...Driver, with the instantiations of templates."""
    text = "\n".join(file.read_text("utf-8") for file in files)
    templates = set(re.findall(r"^template <.*>\nclass (\w+Driver) ", text, re.MULTILINE))
    classes = set(re.findall(r"^class (\w+Driver)\b[^;\n]*\{", text, re.MULTILINE))
    made = set(re.findall(r"^template class (\w+Driver<.*>);", text, re.MULTILINE))
    return classes, made | (classes - templates)
