"""Predictions of Dask's collections, each partition where it lies, when they are asked for."""

from __future__ import annotations

import sys
from typing import Any

import dask
import dask.array
import numpy as np
from distributed import Client

from abcgbm.classifier import ABCBoostClassifier


def predict_lazily(model: ABCBoostClassifier, method: str, X: Any, client: Client | None) -> Any:
    """Return what a method of a fitted estimator gives of a collection, as a collection.

    A dask Array gives an array, a data frame of labels a series, of probabilities and scores a frame
    with a column for each class.
    """
    sent = (
        dask.delayed(model) if client is None else client.scatter(model, broadcast=True, hash=False)
    )
    if isinstance(X, dask.array.Array):
        return _of_array(model, sent, method, X)
    if hasattr(X, "map_partitions") and hasattr(X, "divisions"):
        return X.map_partitions(
            _of_frame, sent, method, meta=_of_frame_without_rows(model, method, X)
        )
    raise TypeError(
        f"X is a {type(X).__module__}.{type(X).__qualname__}; expected a dask DataFrame or Array, or a "
        "table that is not lazy"
    )


def _of_array(model: ABCBoostClassifier, sent: Any, method: str, X: Any) -> Any:
    if X.ndim != 2:  # noqa: PLR2004
        raise ValueError(f"X has {X.ndim} dimensions; expected 2")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    like = _like(model, method)
    shape = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
    return X.map_blocks(_of_block, sent, method, dtype=like.dtype, meta=like, **shape)


def _like(model: ABCBoostClassifier, method: str) -> Any:
    """What a method returns of no rows."""
    n_classes = len(model.classes_)
    if method == "predict":
        return model.classes_[:0]
    is_of_one = method == "decision_function" and n_classes == 2  # noqa: PLR2004
    return np.zeros(0) if is_of_one else np.zeros((0, n_classes))


def _of_block(block: Any, model: ABCBoostClassifier, method: str) -> Any:
    if not block.shape[0]:
        return _like(model, method)
    return getattr(model, method)(block)


def _of_frame(frame: Any, model: ABCBoostClassifier, method: str) -> Any:
    pandas: Any = sys.modules["pandas"]  # which the frame is of
    values = _of_block(frame, model, method)
    if values.ndim == 1:
        return pandas.Series(values, index=frame.index, name=method)
    return pandas.DataFrame(values, index=frame.index, columns=model.classes_.tolist())


def _of_frame_without_rows(model: ABCBoostClassifier, method: str, X: Any) -> Any:
    return _of_frame(X._meta.iloc[:0], model, method)
