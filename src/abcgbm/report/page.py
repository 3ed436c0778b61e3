"""The page: templates, filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from abcgbm.data.labels import shown_label
from abcgbm.report import formats

_FILTERS = (
    *(formats.cell, formats.count, formats.number, formats.percent, formats.share),
    shown_label,
)


def render(content: Mapping[str, Any]) -> str:
    """Fill in the page; whatever comes from the user is escaped by the templates."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError('reports need jinja2: pip install "abcgbm[report]"') from error
    loader = PackageLoader("abcgbm", "report/templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({of.__name__: of for of in _FILTERS})

    def source(name: str) -> Markup:
        """Our own style and script, which are no templates, as they are."""
        return Markup(loader.get_source(environment, name)[0])

    return environment.get_template("page.html.j2").render(content, source=source)
