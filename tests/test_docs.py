"""Examples in the README and in docs/ run, and print what the page shows.

A block of Python that is followed at once by a block of text prints that text.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def examples() -> list[object]:
    """Code and output of each example, or None where none is shown."""
    return [
        pytest.param(code, output or None, id=f"{page.name}-{number}")
        for page in PAGES
        for number, (code, output) in enumerate(EXAMPLE.findall(page.read_text("utf-8")), 1)
    ]


def links() -> list[object]:
    """Page, file and heading of each link within the project."""
    pages = [*PAGES, *ROOT.glob("*.md")]
    return [
        pytest.param(page, *link, id=f"{page.name}-{'#'.join(link)}")
        for page in dict.fromkeys(pages)
        for link in sorted(set(LINK.findall(page.read_text("utf-8"))))
    ]


def headings(page: Path) -> set[str]:
    """The headings of a page, as links spell them."""
    found = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def _needs(code: str) -> None:
    """Skip what asks for more than the oldest scikit-learn that is supported."""
    if 'method="temperature"' in code:
        pytest.importorskip("sklearn", minversion="1.8")


def test_pages_show_examples():
    assert {"README.md", "tables.md", "validation.md"} <= {
        page.name for page in PAGES if EXAMPLE.search(page.read_text("utf-8"))
    }


@pytest.mark.parametrize(("code", "output"), examples())
def test_example_prints_what_the_page_shows(code, output, capsys):
    _needs(code)
    exec(compile(code, "example", "exec"), {"__name__": "example"})  # noqa: S102
    printed = capsys.readouterr().out
    assert printed
    assert output in (None, printed)


@pytest.mark.parametrize(("page", "file", "heading"), links())
def test_link_leads_somewhere(page, file, heading):
    target = page.parent / file if file else page
    assert target.exists()
    assert not heading or heading in headings(target)
