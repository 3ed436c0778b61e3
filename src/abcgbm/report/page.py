"""Rendering of the report from its templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from abcgbm.data.labels import shown_label
from abcgbm.report import formats

_FILTERS = (
    *(formats.cell, formats.count, formats.number, formats.percent, formats.fraction),
    shown_label,
)


def render(content: Mapping[str, Any]) -> str:
    """Render the page; the templates escape all content."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError('reports require jinja2: pip install "abcgbm[report]"') from error
    loader = PackageLoader("abcgbm", "report/templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({function.__name__: function for function in _FILTERS})

    def source(name: str) -> Markup:
        """Return our own style sheet or script unescaped."""
        return Markup(loader.get_source(environment, name)[0])

    return environment.get_template("page.html.j2").render(content, source=source)
