"""The scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from abcgbm import _core, parameters
from abcgbm.algorithm import Algorithm
from abcgbm.base_class import resolve_base_class
from abcgbm.binning import BinMapper, BinnedTable
from abcgbm.boosting import BoostConfig, History, boost
from abcgbm.ensemble import EnsembleBuilder
from abcgbm.labels import as_labels, check_labels, encode_labels
from abcgbm.progress import ProgressLine
from abcgbm.threads import effective_n_threads
from abcgbm.weights import IntegerWeights, check_weights

Floats = NDArray[np.float64]


class _Training(NamedTuple):
    """Checked training data: rows of positive weight, labels as class numbers."""

    X: Floats | BinnedTable
    y: NDArray[np.int32]
    weight: Floats


class ABCBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms.

    The same data, parameters and ``random_state`` give the same model, whatever the number of
    threads or the order of the rows.

    Parameters
    ----------
    algorithm : {"abc-mart", "mart", "abc-logitboost", "logitboost"}, default="abc-mart"
        The abc algorithms boost K-1 classes against a base class (Alg. 3 of the paper), the plain
        ones all K (Alg. 2). In the split gain a row weighs 1 (mart) or its hessian (robust
        logitboost). The abc forms usually end with fewer errors; in the first hundred steps the
        plain ones can be ahead.
    learning_rate : float, default=0.1
        Shrinkage of each step, above 0 and at most 1.
    max_iter : int, default=100
        Number of boosting steps, at most. Each grows K trees, or K-1 with a base class.
    max_leaf_nodes : int, default=20
        Leaves of a tree, at most; 2 to 32768.
    max_depth : int or None, default=None
        Depth of a tree, at most; None for no bound.
    min_samples_leaf : float, default=10
        Least sum of sample weights in a leaf; without weights, least number of rows. Never a
        fraction of the rows.
    min_gain : float, default=0.0
        A node is split only if its best cut gains more than this.
    l2_regularization : float, default=0.0
        Added to the sum of hessians in a leaf's value and, for the logitboost algorithms, in the
        split gain.
    min_hessian_leaf : float, default=0.0
        Least sum of hessians in a leaf; for the logitboost algorithms only.
    max_bins : int, default=255
        Most bins for the values of a feature, 2 to 65534; missing values have one of their own.
    base_class : None, "worst", "exhaustive", BaseClassSearch, FixedBase or a label, default=None
        The base class of each step: that of largest training loss ("worst", the first one drawn at
        random), the best of all ("exhaustive": K(K-1)/2 trees a step instead of K-1) or of some
        (``BaseClassSearch``, at little cost), or always the same label. None means "worst" for the abc algorithms, no base class for the plain ones.
        ``FixedBase(label)`` is for a label that is itself spelled like a policy.
        ``algorithm="mart", base_class="worst"`` is the paper's "Mb".
    refresh : {"step", "class"}, default="step"
        When residuals are computed anew: once a step, or after each class's tree as Alg. 2 is
        printed; "class" is for the plain algorithms without a base class only.
    recenter : bool, default=False
        Report scores without their row mean. Probabilities stay the same.
    n_jobs : int or None, default=None
        Number of threads. None: the CPUs that the process may use, one inside a joblib worker.
    random_state : int, RandomState, Generator or None, default=None
        Draws the first base class. None means 0.
    verbose : int, default=0
        1 shows one live line of progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame with string column names.
    n_iter_ : int
        Number of steps taken.
    train_loss_ : ndarray of shape (n_iter_ + 1,)
        Training loss before the first step and after each: the sum over rows, not the mean, of
        weight times -log of the probability of the row's label.
    class_losses_ : ndarray of shape (n_iter_ + 1, n_classes)
        The part of each class in it.
    base_classes_ : ndarray of object of shape (n_iter_,)
        The base class of each step, as a label; None without one.
    search_losses_ : ndarray of shape (n_iter_, n_classes)
        The training loss after the step of each base class that a search tried; NaN where none was.
    stop_reason_ : str
        "max_iter"; "machine_accuracy" (the loss fell below 2e-14); or "no_progress" (no tree of a
        step could be split, or no shorter step lowers the loss).
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the gain of all splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from abcgbm import ABCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ABCBoostClassifier(max_iter=20).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(  # noqa: PLR0913
        self,
        algorithm: str = "abc-mart",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int = 20,
        max_depth: int | None = None,
        min_samples_leaf: float = 10,
        min_gain: float = 0.0,
        l2_regularization: float = 0.0,
        min_hessian_leaf: float = 0.0,
        max_bins: int = 255,
        base_class: object = None,
        refresh: str = "step",
        recenter: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.l2_regularization = l2_regularization
        self.min_hessian_leaf = min_hessian_leaf
        self.max_bins = max_bins
        self.base_class = base_class
        self.refresh = refresh
        self.recenter = recenter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike | BinnedTable, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or BinnedTable
            Numbers; NaN is missing. Infinities are ordinary extremes. A table that is used for
            several fits can be binned once: ``BinMapper().fit(X).transform(X)``; its bins are then
            used as they are, and ``max_bins`` is not.
        y : array-like of shape (n_rows,)
            Labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative. Weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        self._forget()
        parameters.check(self)
        data = self._check_training(X, y, sample_weight)
        config = self._config()
        table = self._bin(data)
        builder = EnsembleBuilder(table.shape[1], len(self.classes_))
        with ProgressLine(self.max_iter, enabled=bool(self.verbose)) as progress:
            history = boost(self._trainer(table, data, config), config, builder, progress.show)
            progress.finish(history.stop_reason)
        self._ensemble = builder.build(table.upper_value)
        self._set_history(history)
        self._warn_if_nothing_was_learned(data)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row."""
        return self._labels(self._raw(X))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes), columns as in ``classes_``."""
        return _core.softmax(self._raw(X), effective_n_threads(self.n_jobs))

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the logarithms of the class probabilities."""
        return _core.log_softmax(self._raw(X), effective_n_threads(self.n_jobs))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores F.

        Shape (n_rows, n_classes); with two classes shape (n_rows,), the score of the second class
        minus that of the first, so that its expit is ``predict_proba(X)[:, 1]``.
        """
        return self._reported(self._raw(X))

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield what ``predict`` would return after each step."""
        for raw in self._staged_raw(X):
            yield self._labels(raw)

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield what ``predict_proba`` would return after each step."""
        for raw in self._staged_raw(X):
            yield _core.softmax(raw, effective_n_threads(self.n_jobs))

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield what ``decision_function`` would return after each step."""
        for raw in self._staged_raw(X):
            yield self._reported(raw.copy())

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the gain of all splits; zeros if there is no split."""
        check_is_fitted(self)
        return self._ensemble.importances()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a model."""
        return hasattr(self, "_ensemble")

    def _check_training(
        self, X: ArrayLike | BinnedTable, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> _Training:
        """Check rows, labels and weights; drop rows of weight 0; number the classes."""
        rows = self._check_table(X)
        labels = as_labels(y, len(rows))
        weight = check_weights(sample_weight, len(labels))
        if not weight.all():
            kept = np.flatnonzero(weight)
            rows, labels, weight = rows[kept], labels[kept], weight[kept]
        self.classes_, class_of_row = encode_labels(check_labels(labels))
        return _Training(rows, class_of_row, weight)

    def _check_table(self, X: ArrayLike | BinnedTable) -> Floats | BinnedTable:
        if not isinstance(X, BinnedTable):
            rows: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
            return rows
        if len(X) == 0:
            raise ValueError("X has 0 rows; expected at least 1")
        self.n_features_in_ = X.shape[1]
        if X.feature_names is not None:
            self.feature_names_in_ = X.feature_names
        return X

    def _forget(self) -> None:
        """Drop an earlier fit, so that a fit which fails or is interrupted leaves no model."""
        for name in [name for name in vars(self) if name == "_ensemble" or name.endswith("_")]:
            delattr(self, name)

    def _bin(self, data: _Training) -> BinnedTable:
        if isinstance(data.X, BinnedTable):
            return data.X
        mapper = BinMapper(self.max_bins, self.n_jobs)
        return mapper.fit(data.X, sample_weight=data.weight).transform(data.X)

    def _config(self) -> BoostConfig:
        algorithm = Algorithm.from_name(self.algorithm)
        policy = resolve_base_class(
            self.base_class,
            base_derivatives=algorithm.base_derivatives,
            classes=self.classes_,
            rng=parameters.generator(self.random_state),
        )
        return BoostConfig(algorithm, policy, self.max_iter, self.refresh)

    def _trainer(self, table: BinnedTable, data: _Training, config: BoostConfig) -> _core.Trainer:
        weights = IntegerWeights.from_floats(data.weight, len(data.y))
        params = _core.TrainParams(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=min(self.max_depth or 0, self.max_leaf_nodes),
            min_weight=weights.units(self.min_samples_leaf),
            min_gain=self.min_gain,
            learning_rate=self.learning_rate,
            hessian_split=config.algorithm.hessian_split,
            l2_regularization=self.l2_regularization,
            min_hessian_leaf=self.min_hessian_leaf,
        )
        return _core.Trainer(
            table.codes,
            data.y,
            weights.weight,
            weights.unit,
            len(self.classes_),
            params,
            effective_n_threads(self.n_jobs),
        )

    def _set_history(self, history: History) -> None:
        self.n_iter_ = len(history.base_classes)
        self.train_loss_ = history.loss
        self.class_losses_ = history.class_losses
        self.search_losses_ = history.search_losses
        self.stop_reason_ = history.stop_reason
        labels = self.classes_.tolist()
        self.base_classes_ = np.empty(self.n_iter_, dtype=object)
        self.base_classes_[:] = [None if b is None else labels[b] for b in history.base_classes]

    def _warn_if_nothing_was_learned(self, data: _Training) -> None:
        if self.n_iter_ > 0:
            return
        total = float(data.weight.sum())
        bound = f"less than twice min_samples_leaf={self.min_samples_leaf!r}"
        why = f", {bound}" if total < 2 * self.min_samples_leaf else ""
        warnings.warn(
            f"no tree can be split, so every class has the same probability everywhere: "
            f"{len(data.y)} row(s) of total weight {total:g}{why}",
            UserWarning,
            stacklevel=3,
        )

    def _check_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        if isinstance(X, BinnedTable):
            raise TypeError("X is a BinnedTable; prediction expects the values themselves")
        rows: Floats = validate_data(
            self, X, reset=False, dtype=np.float64, order="C", ensure_all_finite=False
        )
        return rows

    def _raw(self, X: ArrayLike) -> Floats:
        rows = self._check_rows(X)
        return self._ensemble.raw(rows, effective_n_threads(self.n_jobs))

    def _staged_raw(self, X: ArrayLike) -> Iterator[Floats]:
        rows = self._check_rows(X)
        return self._ensemble.staged_raw(rows, effective_n_threads(self.n_jobs))

    def _labels(self, raw: Floats) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[raw.argmax(axis=1)]
        return labels

    def _reported(self, raw: Floats) -> Floats:
        if raw.shape[1] == 2:  # noqa: PLR2004
            return raw[:, 1] - raw[:, 0]
        # With a base class scores sum to zero, except for plain warm-up steps and the guard's mends.
        if self.recenter or (self._ensemble.tree_base >= 0).any():
            raw = raw - raw.mean(axis=1, keepdims=True)
        return raw
