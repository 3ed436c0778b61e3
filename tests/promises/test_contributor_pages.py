"""ARCHITECTURE.md and CONTRIBUTING.md name existing files, functions and tests."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import abcgbm
from abcgbm import ABCBoostClassifier

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]
if not all(page.is_file() for page in PAGES):
    pytest.skip("the sources are not here", allow_module_level=True)
FOLDERS = [ROOT, ROOT / "src" / "abcgbm", *(ROOT / name for name in ("cpp", "tests", "benchmarks"))]
PACKAGE = str(Path(abcgbm.__file__).parent)


def quoted(page: Path, pattern: str) -> list[str]:
    """Return the texts between backticks, outside code blocks, that match completely."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = (name for name in re.findall(r"`([^`\n]+)`", text) if re.fullmatch(pattern, name))
    return sorted(set(found))


def exists(name: str) -> bool:
    """Return whether a path exists below one of the folders; a bare name may be at any depth."""
    name = name.rstrip("/")
    places = (folder.glob(name) for folder in FOLDERS)
    anywhere = (folder.rglob(name) for folder in FOLDERS[1:])
    return any(any(found) for found in (*places, *anywhere))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page):
    names = quoted(page, r"[\w.*-]+(/[\w.*-]+)*(/|\.(py|cpp|hpp|md|toml|txt|pyi|\*))")
    ours = [name for name in names if not name.startswith(("build/", ".venv"))]
    assert len(ours) > 20
    assert [name for name in ours if not exists(name)] == []


def test_source_paths_on_all_pages_exist():
    """Pages name files of the sources by their whole paths."""
    pattern = r"(src|cpp|tests|benchmarks|experiments)/[\w./-]+\.(py|cpp|hpp|json|jsonl|toml|txt)"
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = [(page.name, name) for page in pages for name in quoted(page, pattern)]
    assert len(named) > 50
    missing = [
        (page, name)
        for page, name in named
        if page != "CHANGELOG.md" and not (ROOT / name).is_file()
    ]
    assert missing == []


def defined_tests() -> Iterator[str]:
    for file in (ROOT / "tests").rglob("test_*.py"):
        yield from re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_exist(page):
    names = quoted(page, r"test_\w+")
    assert names
    assert [*{*names}.difference(defined_tests())] == []


def test_functions_to_read_first_exist():
    text = PAGES[0].read_text("utf-8")
    named = re.findall(r"^\d+\. `([\w:.]+)` in `([\w/.]+)`", text, re.MULTILINE)
    assert len(named) == 10
    for function, file in named:
        name = re.split(r"\.|::", function)[-1]
        assert re.search(rf"\b{name}\(", (ROOT / file).read_text("utf-8")), function


def n_python_calls(n_rows: int, **parameters: int) -> int:
    """Return the number of calls of the package's Python functions during a fit."""
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    model = ABCBoostClassifier(learning_rate=0.1, n_jobs=1, **parameters)
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        model.fit(X, np.arange(n_rows) % 3)
    finally:
        sys.setprofile(before)
    return calls


def test_python_calls_depend_on_neither_rows_nor_leaves():
    n_python_calls(300, max_iter=2, max_leaf_nodes=4)  # exclude one-time computations
    few = n_python_calls(500, max_iter=3, max_leaf_nodes=4)
    assert n_python_calls(20_000, max_iter=3, max_leaf_nodes=64) == few
    longer = [n_python_calls(500, max_iter=n, max_leaf_nodes=4) for n in (6, 9)]
    assert longer[0] - few == longer[1] - longer[0] > 0
