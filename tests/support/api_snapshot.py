"""The public names of the package and of the command, as text.

A test compares this text with `tests/stored/public_api.txt`. Run as a script, it writes that file, only for an
intended change of the public API, in the same commit.

Annotations are left out, because their text depends on the versions of Python and NumPy. Methods of
scikit-learn's base classes are left out as well.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpi4py
import typer

import abcgbm
from abcgbm.cli.app import app

FILE = Path(__file__).parents[1] / "stored" / "public_api.txt"
API_PAGES = Path(__file__).parents[2] / "docs" / "api"
WIDTH = 100
DIRECTIVE = re.compile(r"^\.\. auto(class|exception|function|module):: (abcgbm\S*)", re.MULTILINE)
ATTRIBUTES = re.compile(r"^Attributes\n-+\n(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


def snapshot() -> str:
    """Return the snapshot: Python first, then the command; long signatures take several lines."""
    return "\n".join([*python_lines(public_objects()), *command_lines(), ""])


# -------------------------------------------------------------------------------------------- Python


def public_objects() -> dict[str, Any]:
    """Return exported objects and those documented in docs/api/, by dotted name."""
    mpi4py.rc.initialize = False  # the class is inspected, not used
    objects = {f"abcgbm.{name}": getattr(abcgbm, name) for name in abcgbm.__all__}
    for kind, name in documented():
        objects |= of_module(name) if kind == "module" else {name: object_at(name)}
    return objects


def documented() -> list[tuple[str, str]]:
    """Return kind and dotted name of each directive on the API pages."""
    pages = sorted(API_PAGES.glob("*.md"))
    return [found for page in pages for found in DIRECTIVE.findall(page.read_text("utf-8"))]


def of_module(name: str) -> dict[str, Any]:
    module = importlib.import_module(name)
    return {f"{name}.{public}": getattr(module, public) for public in module.__all__}


def object_at(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def python_lines(objects: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each object and each member, without members inherited from public classes."""
    for name, value in sorted(objects.items()):
        if not inspect.isclass(value):
            yield line_of(name, value)
        elif issubclass(value, Exception):
            yield f"{name} is a {value.__base__.__name__}"
        else:
            yield line_of(name, value)
            inherited = [members_of(base) for base in objects.values() if base in value.__mro__[1:]]
            for member, of in sorted(members_of(value).items()):
                if not any(member in base and of is base[member] for base in inherited):
                    yield line_of(f"{name}.{member}", of)


def members_of(kind: type) -> dict[str, Any]:
    """Return the public members that abcgbm defines for a class; None for documented attributes."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.split(".")[0] == "abcgbm":
            found |= dict.fromkeys(documented_attributes(base))
            found |= {name: of for name, of in vars(base).items() if not name.startswith("_")}
    return {name: of for name, of in found.items() if not of_sklearn(of)}


def of_sklearn(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "sklearn"


def documented_attributes(kind: type) -> list[str]:
    section = ATTRIBUTES.search(inspect.cleandoc(vars(kind).get("__doc__") or ""))
    heads = re.findall(r"^(\w[\w, ]*) : ", section[1], re.MULTILINE) if section else []
    return [name for head in heads for name in head.split(", ")]


def line_of(name: str, of: Any) -> str:
    """Return a name with its signature; a long signature has a line for each parameter."""
    of = of.__func__ if isinstance(of, classmethod | staticmethod) else of
    if not inspect.isfunction(of) and not inspect.isclass(of):
        return name
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(of).parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    line = f"{name}{inspect.Signature(parameters)}"
    return (
        line if len(line) <= WIDTH else "\n    ".join([f"{name}(", *texts_of(parameters)]) + "\n)"
    )


def texts_of(parameters: list[inspect.Parameter]) -> list[str]:
    texts = [f"{parameter}," for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*,")
    return texts


# --------------------------------------------------------------------------------------- the command


def command_lines() -> Iterator[str]:
    """Yield a line for each argument and option of each command."""
    group = typer.main.get_command(app)
    own = [option for option in group.params if not option.name.endswith("_completion")]  # typer's
    yield from (f"abcgbm {option_line(option)}" for option in own)
    for name, command in group.commands.items():
        yield f"abcgbm {name}"
        yield from (f"abcgbm {name} {option_line(option)}" for option in command.params)


def option_line(option: Any) -> str:
    if not option.opts[0].startswith("-"):
        name = option.metavar or option.name.upper()
        return name if option.required else f"[{name}]"
    spellings = " / ".join([", ".join(option.opts), *option.secondary_opts])
    facts = ["required"] * option.required + ["repeatable"] * option.multiple
    if not option.required and option.default is not None:
        facts.append(f"default {option.default}")
    return f"{spellings} ({', '.join(facts)})" if facts else spellings


def main() -> None:
    FILE.write_text(snapshot(), "utf-8")


if __name__ == "__main__":
    main()
