"""One HTML file that shows how good a model is on a labelled test set (the extra `report`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.files.atomic import write_whole
from abcgbm.evaluation.predictions import answers_of
from abcgbm.report.content import content_of
from abcgbm.report.page import render

__all__ = ["report_html", "write_report"]


def report_html(
    model: ABCBoostClassifier,
    X: Any,
    y: ArrayLike,
    *,
    title: str | None = None,
    command: str | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
) -> str:
    """Return a report of a model as an HTML page that needs no other file and no network.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted classifier.
    X : table of shape (n_rows, n_features)
        Rows that it has not seen, as for ``predict``.
    y : array-like of shape (n_rows,)
        Their labels. Those that the model does not know count as errors.
    title : str, optional
        What the page is called.
    command : str or sequence of str, optional
        The command lines that made the report, to be shown under "How to reproduce"; by default
        Python code is shown.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows. Weight 2 is the row twice, weight 0 the row absent.

    Returns
    -------
    html : str
        The same for the same model, rows and versions of packages.
    """
    answers = answers_of(model, X, y, sample_weight)
    return render(content_of(answers, title, command))


def write_report(  # noqa: PLR0913
    model: ABCBoostClassifier,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
) -> None:
    """Write the page of ``report_html`` to a file.

    A file of that name is replaced at once or, if anything goes wrong, left as it was.

    Parameters
    ----------
    model, X, y, title, command, sample_weight
        As for ``report_html``.
    path : path
        Where to write it.
    """
    html = report_html(model, X, y, title=title, command=command, sample_weight=sample_weight)
    write_whole(path, html.encode("utf-8"))
