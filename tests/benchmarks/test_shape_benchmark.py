"""The counts of `python -m benchmarks.shape` on a tiny package."""

import importlib
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks.shape import __main__ as shape
from benchmarks.shape import counts, times
from benchmarks.shape.trace import Trace, drawn

FILES = {
    "__init__.py": '"""The tiny package."""\n\nfrom tiny.face import run\n',
    "face.py": '''\
"""What users call."""

import dask

from tiny import low
from tiny.middle import Kind, called

# a comment
BIG = 1  # not a line of its own


def run(work):
    """Run it.

    In several lines.
    """
    made = [low.lowest(work) for _ in range(2)]
    return called(lambda: made)


def unused(): pass
''',
    "middle.py": '''\
from tiny.low import decorated, lowest


class Kind:
    size = 2

    def _once(self):
        return self._twice() + self._twice()

    def _twice(self):
        return self._once

    @decorated
    def method(self):
        """Only a docstring."""


def called(of):
    return of()


def _long():
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    return a


LONG = _long()
''',
    "low.py": '''\
def lowest(work):
    work()
    return """
no docstring
"""


def decorated(of):
    return of
''',
}


@pytest.fixture
def tiny(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def imported(tiny, monkeypatch):
    """The tiny package as a module; it needs no Dask."""
    monkeypatch.syspath_prepend(tiny.parent)
    monkeypatch.setitem(sys.modules, "dask", SimpleNamespace())
    yield importlib.import_module("tiny")
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny"]:
        del sys.modules[name]


# --------------------------------------------------------------------------------------------- files


def test_modules_have_their_dotted_names(tiny):
    modules = counts.modules_of(tiny)
    assert [*modules] == ["tiny", "tiny.face", "tiny.low", "tiny.middle"]
    assert [name for name, module in modules.items() if module.is_init] == ["tiny"]


def test_lines_of_code_exclude_blanks_comments_and_docstrings(tiny):
    modules = counts.modules_of(tiny)
    assert [counts.code_lines(of) for of in modules.values()] == [1, 8, 7, 19]
    assert [counts.comment_lines(of) for of in modules.values()] == [0, 1, 0, 0]


def test_functions_are_as_long_as_without_docstrings(tiny):
    modules = counts.modules_of(tiny)
    lines = {
        function.name: counts.function_lines(function)
        for module in modules.values()
        for function in counts.functions_of(module)
    }
    assert lines == {
        "run": 3,
        "unused": 1,
        "lowest": 5,
        "decorated": 2,
        "_once": 2,
        "_twice": 2,
        "method": 1,
        "called": 2,
        "_long": 7,
    }


def test_median_and_p90_of_lines():
    assert counts.median_and_p90([*range(1, 12)]) == (6, 10)


def test_small_helpers_are_private_short_and_used_once(tiny):
    module = counts.modules_of(tiny)["tiny.middle"]
    assert [of.name for of in counts.private_functions(module)] == ["_long", "_once", "_twice"]
    assert [of.name for of in counts.small_helpers(module)] == ["_once"]


def test_importers_are_those_of_the_module_and_not_of_its_package(tiny):
    modules = counts.modules_of(tiny)
    assert counts.importers(modules) == {
        "tiny": set(),
        "tiny.face": {"tiny"},
        "tiny.low": {"tiny.face", "tiny.middle"},
        "tiny.middle": {"tiny.face"},
    }
    assert counts.with_one_importer(modules) == {"tiny.face": "tiny", "tiny.middle": "tiny.face"}


def test_modules_that_import_a_package(tiny):
    modules = counts.modules_of(tiny)
    assert counts.importing(modules, {"dask"}) == ["tiny.face"]
    assert counts.importing(modules, {"distributed"}) == []


def test_pages_without_those_of_the_api_and_the_gallery(tmp_path):
    for page in ("README.md", "LOG.md", "docs/a.md", "docs/api/b.md", "docs/gallery/c.md"):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text("one\ntwo\n")
    pages = counts.pages_of(tmp_path)
    assert [page.name for page in pages] == ["LOG.md", "a.md"]
    assert counts.lines_of(*pages) == 4


def test_tree_drivers_are_classes_and_template_instances(tmp_path):
    (tmp_path / "cpp" / "boost").mkdir(parents=True)
    header, source = (tmp_path / "cpp" / "boost" / f"step.{of}" for of in ("hpp", "cpp"))
    header.write_text("template <int W>\nclass OneDriver {\n};\nclass TwoDriver final {\n};\n")
    source.write_text(
        "class ThreeDriver;\ntemplate class OneDriver<2>;\ntemplate class OneDriver<3>;\n"
    )
    classes, compiled = counts.tree_drivers(counts.cpp_files(tmp_path))
    assert classes == {"OneDriver", "TwoDriver"}
    assert compiled == {"TwoDriver", "OneDriver<2>", "OneDriver<3>"}


def test_rows_show_the_counts(tiny):
    rows = dict(shape.rows_of_python(tiny))
    assert rows["Python modules / lines / functions"] == "4 / 64 / 9"
    assert rows["private helpers of <= 6 lines, used once"] == "1 of 3"
    assert [*shape.names(tiny)] == [
        "one importer: tiny.face, by tiny",
        "one importer: tiny.middle, by tiny.face",
        "imports dask: tiny.face",
    ]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("tests/a.py::b\n\n12945 tests collected in 24.67s\n", ("12945", "24.67")),
        ("10/12 tests collected (2 deselected) in 0.50s\n", ("12", "0.50")),
    ],
)
def test_numbers_of_collected_tests(output, expected):
    assert shape.collected(output) == expected


def test_collection_that_fails_is_an_error():
    with pytest.raises(ValueError, match="no number of tests"):
        shape.collected("1 error in 0.1s")


# --------------------------------------------------------------------------------------------- traces


class Core:
    """Stands for the C++ module."""

    class Trainer:
        def step(self):
            return "stepped"


def names_in(trace: Trace) -> set[str]:
    return {name for _, _, name in trace.functions}


def test_trace_finds_functions_files_and_the_depth_at_the_core(imported, tiny):
    core = SimpleNamespace(Trainer=Core.Trainer, count=lambda: None)
    original = Core.Trainer.step
    with Trace(tiny, core) as trace:
        assert imported.run(core.Trainer().step) == ["\nno docstring\n"] * 2
    assert names_in(trace) == {"run", "lowest", "called", "<lambda>"}
    assert trace.found() == {"functions": 4, "files": 3, "depth": 2}  # run and lowest
    assert Core.Trainer.step is original


def test_trace_counts_nothing_after_its_block(imported, tiny):
    with Trace(tiny, SimpleNamespace()) as trace:
        pass
    imported.run(lambda: None)
    assert trace.functions == set()
    assert sys.getprofile() is None


def test_trace_follows_threads(imported, tiny):
    with Trace(tiny, SimpleNamespace()) as trace:
        thread = threading.Thread(target=imported.run, args=[lambda: None])
        thread.start()
        thread.join()
    assert "lowest" in names_in(trace)


def test_trace_excludes_code_run_by_imports(imported, tiny):
    del sys.modules["tiny.middle"]
    with Trace(tiny, SimpleNamespace()) as trace:
        middle = importlib.import_module("tiny.middle")
        middle.called(middle.Kind().method)
    assert names_in(trace) == {"called", "method"}


@pytest.mark.parametrize(
    ("job", "found", "expected"),
    [
        ("fit", {"functions": 9, "files": 4, "depth": 3}, "9 / 4; 3"),
        ("reads", {"reads": 4.0000001}, "4.0"),
    ],
)
def test_trace_row_shows_the_result_of_its_process(job, found, expected, monkeypatch):
    monkeypatch.setattr(shape.child, "run", lambda command, *_, **__: found)
    assert shape.traced(job) == expected


def test_failed_trace_row_gives_the_reason(monkeypatch):
    def fail(*_, **__):
        raise shape.child.ChildFailedError("No module named 'dask'")

    monkeypatch.setattr(shape.child, "run", fail)
    assert shape.traced("dask") == "not measured: No module named 'dask'"


def test_table_to_trace_has_numbers_strings_and_three_classes():
    table = drawn(50)
    assert [*table.columns] == [*"abcdefgy"]
    assert table["y"].nunique() == 3


# ---------------------------------------------------------------------------------------------- times


def test_smallest_time_is_that_of_a_call():
    calls = []
    assert times.smallest_seconds(lambda: calls.append(0), 3) > 0
    assert len(calls) == 3 * times.N_REPEATS


def test_every_kind_of_column_is_binned():
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    found = [*times.cell_nanoseconds(60)]
    assert [name for name, _, _ in found] == [*times.columns(60)]
    assert all(fit > 0 and transform > 0 for _, fit, transform in found)


def test_one_row_is_predicted_from_every_kind_of_table(monkeypatch):
    monkeypatch.setattr(times, "ONE_ROW_CALLS", 1)
    found = dict(times.one_row_milliseconds())
    assert found.keys() == times.one_row_tables().keys()
    assert min(found.values()) > 0
