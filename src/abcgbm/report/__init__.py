"""HTML report of a model on a labelled test set (extra `report`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.files.atomic import write_whole
from abcgbm.evaluation.predictions import predictions_of
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
    """Return a report of a model as one self-contained HTML page.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted classifier.
    X : table of shape (n_rows, n_features)
        Test rows, as for ``predict``.
    y : array-like of shape (n_rows,)
        Labels of the test rows. Labels that are not classes of the model count as errors.
    title : str, optional
        Title of the page.
    command : str or sequence of str, optional
        Command lines that made the report, shown under "How to reproduce" beside Python code.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows. A row of weight 2 counts twice, one of weight 0 not at all.

    Returns
    -------
    html : str
        The same for the same model, rows and versions of packages.
    """
    predictions = predictions_of(model, X, y, sample_weight)
    return render(content_of(predictions, title, command))


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
    """Write the page of ``report_html`` to a file, which is replaced atomically.

    Parameters
    ----------
    model, X, y, title, command, sample_weight
        As for ``report_html``.
    path : path
        Destination.
    """
    html = report_html(model, X, y, title=title, command=command, sample_weight=sample_weight)
    write_whole(path, html.encode("utf-8"))
