"""Tables of numbers by row and column as coloured squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from abcgbm.data.columns import Floats
from abcgbm.data.labels import short_label, shown_label
from abcgbm.evaluation.answers import Answers
from abcgbm.evaluation.confusion import Confusion
from abcgbm.report.formats import count, number, percent

_SMALL, _LARGE, _WIDE = 14, 40, 620  # of a square, and of all columns together
_MOST_WITH_NUMBERS = 12  # columns
_CHARACTER = 6.6  # its width in labels


def matrix(
    key: str, rows: Sequence[str], columns: Sequence[str], cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """Place squares; a cell has row `r`, column `c`, strength `s`, text `t` and `k`, its kind."""
    size = int(min(_LARGE, max(_SMALL, _WIDE / max(1, len(columns)))))
    left = int(max(len(short_label(name)) for name in rows) * _CHARACTER) + 14
    top = int(max(len(short_label(name)) for name in columns) * _CHARACTER * 0.82) + 18
    return {
        "key": key,
        "size": size,
        "left": left,
        "top": top,
        "width": left + size * len(columns) + top // 2 + 8,
        "height": top + size * len(rows) + 6,
        "rows": [short_label(name) for name in rows],
        "columns": [short_label(name) for name in columns],
        "cells": cells,
        "has_numbers": len(columns) <= _MOST_WITH_NUMBERS,
        "data": {"rows": [*rows], "columns": [*columns], "cells": cells, "orders": {}},
    }


def confusion_matrix(found: Confusion, answers: Answers) -> dict[str, Any]:
    """Draw which classes are taken for which; only squares that hold rows are there."""
    columns = [shown_label(label) for label in found.labels]
    rows = [*columns, "not in the model"] if found.has_unseen else columns
    shares, totals = found.row_shares, found.counts.sum(axis=1)
    strength = _strength(shares)
    cells = [
        {
            "r": r,
            "c": c,
            "k": "right" if r == c else "wrong",
            "s": round(float(strength[r, c]), 3),
            "n": count(found.counts[r, c]),
            "t": f"{count(found.counts[r, c])} of {count(totals[r])} rows "
            f"({percent(float(shares[r, c]))})",
        }
        for r, c in np.argwhere(found.counts > 0).tolist()
    ]
    drawn = matrix("confusion", rows, columns, cells)
    wrong = found.support - found.right
    drawn["data"]["orders"] = {
        "name": list(range(answers.n_classes)),
        "errors": np.argsort(-wrong, kind="stable").tolist(),
        "size": np.argsort(-found.support, kind="stable").tolist(),
    }
    return drawn


def _strength(shares: Floats) -> Floats:
    """Return how strong squares are; errors have a scale of their own, as they are small."""
    strength = shares.copy()
    np.fill_diagonal(strength, 0.0)
    strength /= max(float(strength.max()), np.finfo(np.float64).tiny)
    np.fill_diagonal(strength, shares.diagonal())
    return 0.12 + 0.88 * np.sqrt(strength)


def heat_map(key: str, features: Sequence[str], labels: Sequence[Any], values: Floats) -> Any:
    """Draw values of shape (n_features, n_classes), each as a part of the largest."""
    largest = float(values.max()) if values.size else 0.0
    cells = [
        {
            "r": r,
            "c": c,
            "k": "right",
            "s": round(float(values[r, c] / largest) ** 0.7, 3),
            "n": number(float(values[r, c]), 2),
            "t": number(float(values[r, c])),
        }
        for r, c in np.argwhere(values > 0).tolist()
    ]
    return matrix(key, features, [shown_label(label) for label in labels], cells)
