"""Configuration of Sphinx: `make docs` copies docs/ to build/docs/source and builds the site there."""

import re
import sys
from pathlib import Path
from typing import Any

from abcgbm import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "abcgbm"
author = "The abcgbm developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository_links",
]
exclude_patterns = ["_ext", "_templates", "gallery"]  # the gallery's pages are in examples/
templates_path = ["_templates"]
nitpicky = True

# ------------------------------------------------------------------------------------------ pages
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
smartquotes = False  # code is copied
html_math_renderer = "mathml"  # no script, and none to load

# -------------------------------------------------------------------------------------- reference
# numpydoc marks the attributes of a class as references; they are defined by the list that it makes.
nitpick_ignore_regex = [("py:obj", r"\w+_?")]
autodoc_mock_imports = ["mpi4py"]  # it needs an MPI library
autodoc_typehints = "none"  # the docstrings name the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"  # fit() instead of ABCBoostClassifier.fit()

# ---------------------------------------------------------------------------------------- gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times differ from build to build; the pages do not
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (480, 336),
}

# ------------------------------------------------------------------------------------------- theme
html_theme = "pydata_sphinx_theme"
html_title = "abcgbm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "**": ["site-navigation"]}
html_context = {"default_mode": "auto"}  # light or dark, as set in the system
html_theme_options = {
    "logo": {"text": "abcgbm"},
    "navbar_center": [],  # the pages are in the sidebar
    "navigation_depth": 2,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_inherited(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out scikit-learn's methods, and properties, which the docstring lists as attributes."""
    if what == "class" and isinstance(member, property):
        return True
    function = getattr(member, "__func__", member)
    home = getattr(function, "__module__", None) or ""
    return None if home.partition(".")[0] == "abcgbm" else True


def escape_types(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Escape the underscore of `(n_iter_ + 1,)` in a type, which docutils would read as a link."""
    for number, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and head.isidentifier():
            lines[number] = head + colon + re.sub(r"(?<=\w)_(?=\W|$)", r"\_", kind)


def setup(app: Any) -> None:
    """Register the hooks; types are escaped before numpydoc (priority 500) reads them."""
    app.connect("autodoc-process-docstring", escape_types, priority=400)
    app.connect("autodoc-skip-member", skip_inherited)
