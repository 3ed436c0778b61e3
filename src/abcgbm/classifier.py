"""The scikit-learn estimator."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, cast

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from abcgbm.communication.collectives import raise_together
from abcgbm.communication.communicator import Communicator
from abcgbm.communication.shard import Shard, as_shard
from abcgbm.data.arrays import Floats
from abcgbm.data.files.large_table import is_large
from abcgbm.data.samples import AnyTable, read_like
from abcgbm.fitted import Truncation
from abcgbm.inspection import ModelInspection
from abcgbm.model.history import History
from abcgbm.model.losses import ScoringClassifier, SoftmaxLink
from abcgbm.model.model import Model
from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AlgorithmObject,
    Categorical,
    Checkpoint,
    DeclaredCallback,
    TimeLimit,
    named_algorithm,
)
from abcgbm.parameters.defaults import PAPER, paper_algorithm, too_few_iterations
from abcgbm.parameters.hints import attribute_hint, hint, with_hints
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.objects import callback_list
from abcgbm.parameters.parameters import Parameters
from abcgbm.persistence import Exports, ModelFiles
from abcgbm.prediction import BatchPrediction
from abcgbm.sklearn_callbacks import (
    FRAMES_AROUND_FIT,
    CallbackSupportMixin,
    FitTask,
    with_callbacks,
)
from abcgbm.training.callbacks import IterationReport
from abcgbm.training.checkpoint import FitState
from abcgbm.training.fit_run import FitArguments, FitRun, prepare
from abcgbm.training.training_run import TrainingResult
from abcgbm.training.warm_start import PreviousFit

Callback = Callable[[IterationReport], object] | DeclaredCallback


class ABCBoostClassifier(
    CallbackSupportMixin,
    ModelInspection,
    ModelFiles,
    Exports,
    Truncation,
    BatchPrediction,
    ScoringClassifier,
):
    """Gradient boosted trees for multi-class classification.

    Each iteration grows one tree whose leaves hold a value for each class or, with some algorithms, one
    tree per class. The same data, parameters and ``random_state`` give the same model, whatever the
    number of threads or the order of the rows. (With ``subsample`` or ``validation_fraction`` the order
    of the rows matters.)

    Parameters
    ----------
    algorithm : str, MultiOutputTrees, TreePerClass or AdaptiveBaseClass, default="auto"
        "auto", "multi-output", "mart", "logitboost", "abc-mart", "abc-logitboost", or an object with
        further parameters. "auto" is "multi-output": one tree per iteration for all classes. The others
        grow one tree per class: "mart" weights all rows equally when splits are scored, "logitboost" by
        their hessian. In the abc algorithms a base class has no tree; its score is minus the sum of the
        others.
    learning_rate : "auto" or float, default="auto"
        Shrinkage of each iteration, in (0, 1]. "auto": 0.04 with multi-output trees, 0.06 from 50,000
        rows on; 0.1 with one tree per class. ``fit`` warns if ``max_iter`` is too small for it.
    max_iter : "auto", int or None, default="auto"
        Maximum number of boosting iterations. "auto": until early stopping ends training; without it
        300 with multi-output trees, 200 from 50,000 rows on, and 100 with one tree per class. None:
        bounded by early stopping or ``TimeLimit`` only.
    max_leaf_nodes : "auto" or int, default="auto"
        Maximum number of leaves of a tree, 2 to 32768. "auto": for N rows N / 100 with multi-output
        trees, else N / 300; at most the square root of N, and from 12 to 1024.
    max_depth : int or None, default=None
        Maximum depth of a tree. None: not bounded.
    min_samples_leaf : float, default=10
        Minimum sum of sample weights in a leaf; without weights, the number of rows. Below 1 a fraction
        of the total weight. With ``class_weight`` it is multiplied by the mean factor of the rows.
    l2_regularization : "auto" or float, default="auto"
        L2 penalty on leaf values. "auto": 4 (K-1) / K^2 for K classes with multi-output trees, else 0.
    max_bins : int, default=255
        Maximum number of bins per numeric feature, without the one for missing values; 2 to 65534. A
        categorical feature may have 16 times as many.
    categorical_features : "auto", None, list, or Categorical, default="auto"
        Categorical columns: "auto" (by dtype), None, names, indices, a boolean mask, or
        ``Categorical(...)``, which also has parameters of their splits.
    max_features : "auto", None, "sqrt", int or float, default="auto"
        Features considered at each split, sampled for each node: None for all, "sqrt", an integer for a
        count, a float for a fraction. "auto": half of them with multi-output trees, else all.
    interaction_cst : None, "pairwise", "no_interactions" or list of lists, default=None
        Features that may occur together on a path of a tree: any two, none, or those of one group, by
        index or name. Features in no group form one of their own.
    subsample : float, default=1.0
        Fraction of rows sampled without replacement for each iteration.
    classes : array-like of shape (n_classes,) or None, default=None
        All labels that may occur, if ``y`` does not contain all of them.
    class_weight : dict, "balanced" or None, default=None
        Dict of label to weight, 1 for labels that are not in it. "balanced": factors that give all
        classes in ``y`` the same sum of weights, and keep the total. Weights apply to
        training, to the validation loss and to the score.
    early_stopping : {"auto", True, False}, default="auto"
        Stop after ``n_iter_no_change`` iterations without improvement, and keep the best iteration.
        "auto": if ``X_val`` is given. With False, ``X_val`` is scored only.
    validation_fraction : float, default=0.1
        Fraction of rows held out, stratified, if early stopping is on and ``X_val`` is not given.
    n_iter_no_change : int, default=20
        Iterations without improvement after which training stops.
    tol : float, default=1e-7
        Minimum improvement, absolute, in units of the score.
    scoring : str or callable, default="loss"
        Validation score, the larger the better: "loss" (minus the mean loss), "error" (minus the error
        rate), the name of a scikit-learn scorer of classification, or a callable
        ``scorer(estimator, X, y)`` that predicts the ``X`` it is given, unchanged. Anything but "loss"
        and "error" needs the validation rows in memory, in one process.
    refit : bool, default=False
        After early stopping, train again on all rows for ``best_iteration_`` iterations, those held out
        included. If a callback, time limit or Ctrl-C stops the second training, the validated model is
        kept.
    warm_start : bool, default=False
        Continue from the previous fit: ``max_iter`` is the total number of iterations, and with the
        same data the model is that of a single fit. Classes, baseline, categories and seed of the
        previous fit are kept, its learning rate if ``learning_rate`` is "auto". Another explicit
        baseline is an error; another ``random_state`` is ignored.
    callbacks : callable, TimeLimit, Checkpoint, KeepOnInterrupt, or list of these, default=None
        Callables are called with an ``IterationReport`` after every iteration; if one returns True,
        training stops. Clones share them; pickles of fitted models do not have them.
    n_jobs : int or None, default=None
        Number of threads. None: the CPUs that the process may use, but 1 in a joblib worker. -1: all
        CPUs, -2: all but one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random draws. None is 0.
    verbose : int, default=0
        1 shows progress on standard error, a number n above 1 a line every n iterations.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame whose column names are all strings.
    n_iter_ : int
        Number of iterations of the training.
    best_iteration_ : int
        Number of iterations of the model: with early stopping those up to the best validation score,
        the first among equals; else ``n_iter_``.
    best_score_ : float
        Validation score of ``best_iteration_``; an AttributeError without validation rows.
    train_loss_ : ndarray of shape (n_iter + 1,)
        Mean training loss (multinomial log loss, weighted) before the first iteration and after each.
    class_losses_ : ndarray of shape (n_iter + 1, n_classes)
        Contribution of each class to it; rows sum to ``train_loss_``.
    validation_loss_ : ndarray of shape (n_iter + 1,)
        Mean loss of the validation rows; empty without validation.
    validation_score_ : ndarray of shape (n_iter + 1,)
        Their score, the larger the better; empty without validation.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the gain of all splits.
    feature_importances_by_class_ : ndarray of shape (n_classes, n_features_in_)
        Share of each feature in the split gain of each class. A row sums to 1, or is 0 if the class has
        no gain, such as a base class without a tree of its own.
    baseline_ : ndarray of shape (n_classes,)
        Raw scores before the first iteration.
    resolved_params_ : dict
        Resolved values of the parameters that may be "auto": ``algorithm`` (an object), ``learning_rate``,
        ``max_iter`` (None: not bounded), ``max_leaf_nodes``, ``l2_regularization``, ``max_features``
        and ``early_stopping``.
    refit_params_ : dict
        Parameters of a second fit on all rows: ``resolved_params_`` with ``best_iteration_`` as
        ``max_iter``, and no early stopping. ``ABCBoostClassifier(**model.refit_params_)`` trains the
        model of ``refit=True``, unless ``random_state`` is a generator.
    stop_reason_ : str
        "max_iter", "early_stopping", "time_limit", "callback", "interrupted", "no_progress" (no split
        lowers the loss), or "machine_accuracy" (the loss is below 2e-14). After ``truncate``
        "truncated", and of a loaded checkpoint "checkpoint".
    model_ : Model
        The model for prediction: trees, encoding of tables, classes.
    history_ : History
        Record of the training; with ``refit`` of the validated one.
    refit_history_ : History or None
        Record of the second training, if the model is that of ``refit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from abcgbm import ABCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ABCBoostClassifier().fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    model_: Model
    history_: History
    refit_history_: History | None

    @with_hints
    def __init__(  # noqa: PLR0913
        self,
        algorithm: str | AlgorithmObject = "auto",
        *,
        learning_rate: float | str = "auto",
        max_iter: int | str | None = "auto",
        max_leaf_nodes: int | str = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float = 10,
        l2_regularization: float | str = "auto",
        max_bins: int = 255,
        categorical_features: Any = "auto",
        max_features: float | str | None = "auto",
        interaction_cst: str | Sequence[Iterable[Any]] | None = None,
        subsample: float = 1.0,
        classes: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: str | Callable[..., float] = "loss",
        refit: bool = False,
        warm_start: bool = False,
        callbacks: Callback | Sequence[Callback] | None = None,
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
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_features = max_features
        self.interaction_cst = interaction_cst
        self.subsample = subsample
        self.classes = classes
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.scoring = scoring
        self.refit = refit
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, algorithm: str | AlgorithmObject = "abc-mart", **others: Any) -> Self:
        """Return a classifier with the parameters of the paper, except those given.

        20 leaves, a learning rate of 0.1, 1,000 iterations, no L2 penalty, and all features. An
        algorithm given by name starts with raw scores of zero; its base class is the one with the
        largest loss and is updated as in Alg. 3, without a line search.
        """
        if isinstance(algorithm, str):
            algorithm = paper_algorithm(algorithm)
        return cls(algorithm, **(PAPER | others))

    @with_hints
    @with_callbacks
    def fit(  # noqa: PLR0913
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        resume_from: Any = None,
        communicator: Communicator | Shard | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            An array-like of numbers, a data frame (pandas, polars, Arrow and others), a sparse
            matrix, or a BinnedTable. NaN and null are missing values, infinities ordinary extremes. A
            table that is used for several fits can be binned once:
            ``BinMapper().fit(X).transform(X)``; its bins are then used as they are, and
            ``max_bins`` and ``categorical_features`` are not. A path, a glob pattern, a folder, a
            pyarrow data set or a LargeTable is read in batches, and need not fit into memory; ``y`` and
            ``sample_weight`` are then names of its columns.
        y : array-like of shape (n_rows,)
            Labels of one type: strings, integers, booleans, whole-number floats, or dates.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative weights. Weight 2 is equivalent to a repeated row and weight 0 to an omitted one;
            with multi-output trees the former requires whole-number weights, also after
            ``class_weight``.
        X_val : table of shape (n_validation_rows, n_features), optional
            Validation rows, never used for training. Columns of a data frame are matched by name.
        y_val : array-like of shape (n_validation_rows,), optional
            Their labels.
        sample_weight_val : array-like of shape (n_validation_rows,), optional
            Their weights.
        resume_from : path or file, optional
            A checkpoint to resume. The model is, byte for byte, that of an uninterrupted fit, so data
            and parameters must be those of that fit. Only ``max_iter`` (it may be larger),
            ``callbacks``, ``n_jobs``, ``verbose`` and ``warm_start`` may differ; any other difference
            is an error.
        communicator : Communicator or Shard, optional
            Communicator such as ``MPICommunicator(comm)``, if several processes call ``fit``
            together, each with its own rows. All ranks get the model that one process would train
            on all rows, byte for byte. Tables are in memory, and may have no rows; callbacks,
            progress, checkpoints and the random state are those of rank 0.

        Returns
        -------
        self
        """
        rows = (X, y, sample_weight, X_val, y_val, sample_weight_val)
        warning = self._fit(FitArguments(*rows, as_shard(communicator)), resume_from)
        if warning is not None:
            warnings.warn(warning, UserWarning, stacklevel=3 + FRAMES_AROUND_FIT)
        return self

    def _fit(
        self,
        given: FitArguments,
        resume_from: Any,
        on_start: Callable[[FitRun], object] | None = None,
        elapsed: float = 0.0,
    ) -> str | None:
        """Fit the model; return the text of a warning, or None.

        ``on_start`` is called with the run before it starts. ``elapsed`` is the number of seconds
        that the fit has taken so far.
        """
        started, shard = time.monotonic() - elapsed, given.shard
        settings = raise_together(shard, lambda: Parameters.from_parameters(self._parameters()))
        with self._being_fitted():
            previous, resumed = raise_together(
                shard, lambda: self._iterations_before(settings, resume_from)
            )
            run = prepare(settings, given, previous, resumed, started, type(self).__name__)
            if on_start is not None:
                on_start(run)
            task = self._begin_task(run.n_iter_left, given)
            result, refit_result = run.run(task, self._save_checkpoint)
            self._set_fitted(result, refit_result)
            task.end()
        if shard.communicator.rank > 0:
            return None
        is_whole = resumed is None or given.keeps_state
        return result.warning or (self._too_few_iterations(settings) if is_whole else None)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does.

        ``algorithm__gap=3`` sets a parameter of the algorithm, and ``categorical_features__penalty``
        one of ``Categorical``. A name or a list of columns is replaced by the object first. An
        unknown name raises a ValueError, which suggests the name here for one of another package.
        """
        known = self.get_params()
        parameters = self._get_param_names()
        params = self._with_groups(params)
        try:
            return cast(Self, super().set_params(**params))
        except ValueError as error:
            unknown = (name for name in params if name.partition("__")[0] not in known)
            hints = "".join(hint(name, known, parameters) for name in unknown)
            raise ValueError(str(error) + hints) from error

    def _with_groups(self, params: dict[str, Any]) -> dict[str, Any]:
        """Replace values by objects if nested parameters of them are to be set."""
        nested = {name.partition("__")[0] for name in params if "__" in name}
        algorithm = params.get("algorithm", self.algorithm)
        if "algorithm" in nested and algorithm in ("auto", *ALGORITHM_NAMES):
            params = params | {"algorithm": named_algorithm(algorithm)}
        columns = params.get("categorical_features", self.categorical_features)
        if "categorical_features" in nested and not isinstance(columns, Categorical):
            params = params | {"categorical_features": Categorical(columns)}
        return params

    @property
    def refit_params_(self) -> dict[str, Any]:
        """Parameters of a fit on all rows, with as many iterations as this model."""
        n_iter = self.best_iteration_
        if n_iter == 0:
            raise AttributeError(
                "refit_params_: the model has no iterations; expected at least one"
            )
        callbacks = [
            of for of in callback_list(self.callbacks) if not isinstance(of, TimeLimit | Checkpoint)
        ]
        only_once = {
            "early_stopping": False,
            "refit": False,
            "warm_start": False,
            "callbacks": callbacks or None,
        }
        return self._parameters() | self.resolved_params_ | only_once | {"max_iter": n_iter}

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield the predicted labels after each iteration."""
        for raw in self._staged_raw(X):
            yield self._outputs().labels(raw)

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield the predicted probabilities after each iteration."""
        for raw in self._staged_raw(X):
            yield self._outputs().probabilities(raw, self._n_threads())

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield the output of ``decision_function`` after each iteration."""
        for raw in self._staged_raw(X):
            yield self._outputs().reported(raw.copy())

    def __sklearn_tags__(self) -> Any:
        """Declare support of missing values, categorical features and sparse tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError that suggests our name for one of another package or version.

        Python also calls this if a property raises an AttributeError, which is then raised again.
        """
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)
        known = [of for of in dir(type(self)) if not of.startswith("_")]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}{attribute_hint(name, known)}"
        )

    def _iterations_before(
        self, settings: Parameters, resume_from: Any
    ) -> tuple[PreviousFit | None, FitState | None]:
        """Return the fit that a warm start continues, and the state that ``resume_from`` holds."""
        resumed = None if resume_from is None else FitState.load(resume_from)
        previous = self._previous_fit(settings)
        return (previous, None) if resumed is None else (resumed.previous, resumed)

    def _save_checkpoint(self, checkpoint: FitState, path: Path) -> None:
        checkpoint.save(path, self.get_params(deep=False))

    def _previous_fit(self, settings: Parameters) -> PreviousFit | None:
        """Return the fit that a warm start continues; without warm start delete the previous fit.

        So a failed or interrupted fit leaves no model, except the previous one with warm start.
        """
        if settings.warm_start and self.__sklearn_is_fitted__():
            return PreviousFit(self.model_, self.refit_history_ or self.history_)
        for name in ("model_", "history_", "refit_history_"):
            self.__dict__.pop(name, None)
        return None

    def _parameters(self) -> dict[str, Any]:
        """Return the given parameters, also of a subclass whose constructor has others."""
        return {name: getattr(self, name) for name in ABCBoostClassifier._get_param_names()}

    @contextmanager
    def _being_fitted(self) -> Iterator[None]:
        """Raise an error if ``fit`` is called while the same estimator is being fitted."""
        if "_is_being_fitted" in self.__dict__:
            raise RuntimeError(
                "fit was called while the same estimator is being fitted, by one of its callbacks "
                "or by another thread; expected a clone of it"
            )
        self._is_being_fitted = True
        try:
            yield
        finally:
            del self._is_being_fitted

    def __getstate__(self) -> dict[str, Any]:
        """Drop the flag of a running fit, since a callback may copy the estimator.

        A fitted estimator also drops its callbacks: many kinds cannot be pickled.
        """
        state: dict[str, Any] = super().__getstate__()
        state = {name: value for name, value in state.items() if name != "_is_being_fitted"}
        return state | {"callbacks": None} if "model_" in state else state

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, except that callbacks are shared, not copied.

        So a callback that collects reports remains the user's object.
        """
        without = copy.copy(self)
        without.callbacks = None
        clone: Self = super(ABCBoostClassifier, without).__sklearn_clone__()
        clone.callbacks = self.callbacks
        return clone

    def _begin_task(self, n_iter: int | None, given: FitArguments) -> FitTask:
        """Begin the task of scikit-learn's callbacks."""
        weight = given.sample_weight
        metadata = None if weight is None else {"sample_weight": weight}
        task = FitTask(self, n_iter, {"X": given.X, "y": given.y, "metadata": metadata})
        task.begin()
        return task

    def _set_fitted(self, result: TrainingResult, refit_result: TrainingResult | None) -> None:
        """Set the model and its histories."""
        self.model_ = result.model if refit_result is None else refit_result.model
        self.history_ = result.history
        self.refit_history_ = None if refit_result is None else refit_result.history

    def _too_few_iterations(self, settings: Parameters) -> str | None:
        """Return a warning if ``max_iter`` ended training too early for the learning rate."""
        if self.history_.stop_reason != "max_iter":
            return None
        return too_few_iterations(settings, self.resolved_params_["learning_rate"])

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # slow; here it always raises

    def _read(self, X: Any) -> AnyTable:
        """Convert a table for prediction."""
        self._check_fitted()
        return read_like(X, self.model_.encoding.schema, type(self).__name__)

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        if is_large(X):
            return self._raw_of_all(X, n_iter)
        table = self._read(X)
        return self.model_.raw_scores(table, self._n_threads(), n_iter)

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        table = self._read(X)
        return self.model_.staged_raw_scores(table, self._n_threads())

    def _outputs(self) -> SoftmaxLink:
        return self.model_.link

    def _n_threads(self) -> int:
        return effective_n_threads(self.n_jobs)
