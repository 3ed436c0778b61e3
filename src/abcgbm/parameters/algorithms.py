"""Public objects that are values of parameters: algorithms, `Categorical`, and declared callbacks.

By scikit-learn's conventions, arguments are stored unchanged, and `fit` validates them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class ParameterGroup(BaseEstimator):
    """Base class of parameter objects, with ``get_params`` and ``set_params``; compared by value."""

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_is_equal(value, theirs[name]) for name, value in mine.items())


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    return bool(one == other)


class MultiOutputTrees(ParameterGroup):
    """One tree per iteration, whose leaves hold a value for each class.

    Faster and smaller than one tree per class, the more so the more classes there are. This is the
    algorithm of ``algorithm="auto"`` and ``"multi-output"``.

    Parameters
    ----------
    criterion : {"logitboost", "mart"}, default="logitboost"
        Split gain: rows are weighted by their hessian (robust LogitBoost) or all equally (MART).
    n_projections : "auto", "all" or int, default="auto"
        Number of random projections of the gradients in which splits are searched, drawn for each
        iteration. "all": all classes, none drawn. "auto": at most 7.
    min_gain : float, default=0.0
        Minimum gain of a split.
    min_hessian_leaf : float, default=0.0
        Minimum sum of hessians in a leaf, over all classes. With ``criterion="logitboost"`` only.
    baseline : {"prior", "zero"}, default="prior"
        Raw scores before the first iteration: logarithms of the class frequencies, or 0. If all rows
        have the same class it is always "prior".
    """

    def __init__(
        self,
        criterion: str = "logitboost",
        *,
        n_projections: int | str = "auto",
        min_gain: float = 0.0,
        min_hessian_leaf: float = 0.0,
        baseline: str = "prior",
    ) -> None:
        self.criterion = criterion
        self.n_projections = n_projections
        self.min_gain = min_gain
        self.min_hessian_leaf = min_hessian_leaf
        self.baseline = baseline


class TreePerClass(ParameterGroup):
    """One tree per class in each iteration: MART, and robust LogitBoost (Alg. 2 of the paper).

    ``algorithm="mart"`` is ``TreePerClass("mart")``, and "logitboost" ``TreePerClass("logitboost")``.

    Parameters
    ----------
    criterion : {"logitboost", "mart"}, default="logitboost"
        Split gain: rows are weighted by their hessian (robust LogitBoost) or all equally (MART).
    sequential_residuals : bool, default=False
        Compute residuals after the tree of each class, as Alg. 2 is printed, instead of once per
        iteration.
    recenter : bool, default=False
        Subtract the row mean from the scores of ``decision_function``. With ``baseline="prior"`` this
        is always done. Probabilities do not change.
    min_gain : float, default=0.0
        Minimum gain of a split.
    min_hessian_leaf : float, default=0.0
        Minimum sum of hessians in a leaf. With ``criterion="logitboost"`` only.
    baseline : {"zero", "prior"}, default="zero"
        Raw scores before the first iteration: 0, or logarithms of the class frequencies. If all rows
        have the same class it is always "prior".
    """

    def __init__(
        self,
        criterion: str = "logitboost",
        *,
        sequential_residuals: bool = False,
        recenter: bool = False,
        min_gain: float = 0.0,
        min_hessian_leaf: float = 0.0,
        baseline: str = "zero",
    ) -> None:
        self.criterion = criterion
        self.sequential_residuals = sequential_residuals
        self.recenter = recenter
        self.min_gain = min_gain
        self.min_hessian_leaf = min_hessian_leaf
        self.baseline = baseline


class AdaptiveBaseClass(ParameterGroup):
    """One tree for each class except a base class, which is chosen during training (ABC boosting).

    ``algorithm="abc-mart"`` is ``AdaptiveBaseClass("mart")``, Alg. 3 of the paper, and
    "abc-logitboost" ``AdaptiveBaseClass("logitboost", n_candidates=2, gap=5)``.

    Parameters
    ----------
    criterion : {"mart", "logitboost"}, default="mart"
        Split gain: rows are weighted equally (MART) or by their hessian (robust LogitBoost).
    n_candidates : int or None, default=1
        Number of candidates for the base class: the classes with the largest training loss. The one
        with the smallest training loss after the iteration is chosen. A single candidate is used
        without a trial, and the first one is random. None, or a number above K: all classes,
        with K(K-1)/2 trees per iteration.
    gap : int, default=0
        Number of further iterations for which the base class is kept.
    warmup : int, default=0
        Number of iterations without a base class at the start.
    base_label : object, default=None
        A label that is the base class of all iterations. None: the base class is chosen.
    base_derivatives : bool, default=True
        Compute residuals and hessians with respect to the base class. False, which requires
        ``n_candidates=1``, is the paper's "Mb".
    line_search : bool, default=True
        Choose the step length of the base class by line search. False: the full step of Alg. 3,
        shortened only if the training loss would rise. Matters for about twenty classes or more.
    min_gain : float, default=0.0
        Minimum gain of a split.
    min_hessian_leaf : float, default=0.0
        Minimum sum of hessians in a leaf. With ``criterion="logitboost"`` only.
    baseline : {"zero", "prior"}, default="zero"
        Raw scores before the first iteration: 0, or logarithms of the class frequencies. If all rows
        have the same class it is always "prior".
    """

    def __init__(  # noqa: PLR0913
        self,
        criterion: str = "mart",
        *,
        n_candidates: int | None = 1,
        gap: int = 0,
        warmup: int = 0,
        base_label: Any = None,
        base_derivatives: bool = True,
        line_search: bool = True,
        min_gain: float = 0.0,
        min_hessian_leaf: float = 0.0,
        baseline: str = "zero",
    ) -> None:
        self.criterion = criterion
        self.n_candidates = n_candidates
        self.gap = gap
        self.warmup = warmup
        self.base_label = base_label
        self.base_derivatives = base_derivatives
        self.line_search = line_search
        self.min_gain = min_gain
        self.min_hessian_leaf = min_hessian_leaf
        self.baseline = baseline


AlgorithmObject = MultiOutputTrees | TreePerClass | AdaptiveBaseClass
ALGORITHM_NAMES = ("multi-output", "mart", "logitboost", "abc-mart", "abc-logitboost")


def named_algorithm(name: str) -> AlgorithmObject:
    """Return the object for a name in ``ALGORITHM_NAMES`` or "auto"."""
    if name in ("auto", "multi-output"):
        return MultiOutputTrees()
    if name == "abc-logitboost":
        return AdaptiveBaseClass("logitboost", n_candidates=2, gap=5)
    return AdaptiveBaseClass("mart") if name == "abc-mart" else TreePerClass(name)


def algorithm_name(algorithm: Any) -> str:
    """Return the name of an algorithm, given by name or as an object, for titles and messages."""
    if isinstance(algorithm, MultiOutputTrees):
        return "multi-output"
    if isinstance(algorithm, AdaptiveBaseClass):
        return f"abc-{algorithm.criterion}"
    return str(algorithm.criterion) if isinstance(algorithm, TreePerClass) else str(algorithm)


class Categorical(ParameterGroup):
    """Categorical columns, and parameters of their splits.

    Parameters
    ----------
    columns : "auto", None, or list of names, indices or booleans, default="auto"
        The categorical columns, as ``categorical_features`` takes them. "auto": those of strings,
        categories, enums and dictionaries in a data frame.
    smoothing : float, default=10.0
        Categories are sorted by their mean residual before they are split. Each mean is shrunk as if
        the category had this many more rows at the mean of the node. Categories with fewer than half as many rows in
        the node stay together.
    penalty : float, default=1.0
        Multiple of the gain that sorting the categories gives by chance. It is subtracted from the
        gain of a categorical split. 0 disables the penalty.
    handle_unknown : {"missing", "error"}, default="missing"
        How to treat a category that was not seen during ``fit``.
    """

    def __init__(
        self,
        columns: Any = "auto",
        *,
        smoothing: float = 10.0,
        penalty: float = 1.0,
        handle_unknown: str = "missing",
    ) -> None:
        self.columns = columns
        self.smoothing = smoothing
        self.penalty = penalty
        self.handle_unknown = handle_unknown


class TimeLimit(ParameterGroup):
    """Stop training after some seconds, and keep the model so far.

    Parameters
    ----------
    seconds : float
        No iteration begins later than this after the call of ``fit``.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Checkpoint(ParameterGroup):
    """Write checkpoints during training, from which ``fit(..., resume_from=path)`` resumes.

    A checkpoint is a model file. It replaces the previous one, and is always complete. The last one is
    written when training ends, also by Ctrl-C or an error. If a file cannot be written, ``fit`` warns
    and continues.

    Parameters
    ----------
    path : path
        The file. An existing one is replaced only if it is empty, a model file, or a checkpoint of the
        same training, and never if ``fit`` reads it. Otherwise ``fit`` raises a FileExistsError before
        training.
    every : int or None, default=None
        Iterations between two checkpoints. None: about a minute, or longer if writing takes more than
        a twentieth of the time.
    """

    def __init__(self, path: str | os.PathLike[str], every: int | None = None) -> None:
        self.path = path
        self.every = every


class KeepOnInterrupt(ParameterGroup):
    """Keep the model so far on Ctrl-C, instead of raising KeyboardInterrupt."""


DeclaredCallback = TimeLimit | Checkpoint | KeepOnInterrupt
