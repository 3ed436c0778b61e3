"""How Sphinx builds the site: `make docs` copies docs/ to build/docs/source and runs it there."""

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
exclude_patterns = ["_ext", "gallery"]  # the gallery's scripts; its pages are in examples/
nitpicky = True

# ------------------------------------------------------------------------------------------ pages
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
smartquotes = False  # code is copied
html_math_renderer = "mathml"  # no script, and none to load

# -------------------------------------------------------------------------------------- reference
# numpydoc marks the attributes of a class as names to look up; the list that it makes is where they are.
nitpick_ignore_regex = [("py:obj", r"\w+_?")]
autodoc_mock_imports = ["mpi4py"]  # which needs an MPI library
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

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
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # light or dark, as the system has it
html_theme_options = {
    "logo": {"text": "abcgbm"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_what_is_not_ours(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out methods of scikit-learn, and properties that the docstring lists as attributes."""
    if what == "class" and isinstance(member, property):
        return True
    function = getattr(member, "__func__", member)
    home = getattr(function, "__module__", None) or ""
    return None if home.partition(".")[0] == "abcgbm" else True


def escape_types(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Keep `(n_iter_ + 1,)` in the type of an attribute from being read as a link to `n_iter`."""
    for number, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and head.isidentifier():
            lines[number] = head + colon + re.sub(r"(?<=\w)_(?=\W|$)", r"\_", kind)


def setup(app: Any) -> None:
    """Let autodoc ask what to leave out, and escape types before numpydoc (500) reads them."""
    app.connect("autodoc-process-docstring", escape_types, priority=400)
    app.connect("autodoc-skip-member", skip_what_is_not_ours)
