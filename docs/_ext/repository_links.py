"""Rewrite links between files of the repository to links between pages of the site.

`make docs` copies the pages of the root (ARCHITECTURE.md, ...) to project/, with lower-case names. Links to them are
redirected there, links to README.md to the landing page, their own links into docs/ back to it, and links to a script of
the gallery to its page.
"""

import re
from typing import Any

LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
IN_ROOT, GALLERY = "project/", "gallery/"


def on_site(target: str, page: str) -> str:
    """Return the target of a link on the site, relative to its page.

    >>> on_site("../ARCHITECTURE.md", "models")
    'project/architecture.md'
    >>> on_site("docs/models.md", "project/changelog")
    '../models.md'
    >>> on_site("tables.md", "models")
    'tables.md'
    """
    if page.startswith(IN_ROOT):
        if target.startswith("docs/"):
            return "../" + target.removeprefix("docs/")
        return "../index.md" if target == "README.md" else _small(target)
    name = target.removeprefix("../")
    if target.startswith(GALLERY):
        page_of = target.removeprefix(GALLERY).removesuffix(".py") or "index"
        return f"examples/{page_of}.rst"
    if "/" in page or "/" in name or name == target:
        return target
    return "index.md" if name == "README.md" else IN_ROOT + _small(name)


def _small(name: str) -> str:
    return name.lower() if name.endswith(".md") else name


def rewrite(app: Any, docname: str, source: list[str]) -> None:
    """Rewrite the links of a page before it is parsed."""
    if docname.startswith("examples/"):
        return
    source[0] = LINK.sub(lambda match: on_site(match[1], docname), source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the hook."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
