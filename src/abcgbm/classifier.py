"""The scikit-learn estimator."""

from __future__ import annotations

import copy
import os
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
from abcgbm.parameters.defaults import PAPER, too_few_iterations
from abcgbm.parameters.hints import hint, with_hints
from abcgbm.parameters.machine import effective_n_threads
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


class ABCBoostClassifier(
    CallbackSupportMixin,
    ModelInspection,
    ModelFiles,
    Exports,
    Truncation,
    BatchPrediction,
    ScoringClassifier,
):
    """Boosted trees for multi-class classification: MART, LogitBoost and their ABC forms.

    A step grows a tree for each class, or one that all classes share (``trees="shared"``). The same
    data, parameters and ``random_state`` give the same model, whatever the number of threads or the
    order of the rows. (With ``subsample`` or ``validation_fraction`` the order of
    the rows matters.)

    Parameters
    ----------
    algorithm : {"auto", "abc-mart", "mart", "abc-logitboost", "logitboost"}, default="auto"
        The abc algorithms boost K-1 classes against a base class (Alg. 3 of the paper), the plain
        ones all K (Alg. 2). In the split gain a row weighs 1 (mart) or its hessian (robust
        logitboost). "auto" is "logitboost" with shared trees, for which there are the plain ones
        alone, and "abc-mart" otherwise.
    trees : {"auto", "per-class", "shared"}, default="auto"
        A tree for each class in every step, or one for all, whose leaves hold a value for each
        class: faster and smaller the more classes there are. There is no base class then. "auto":
        shared, unless ``algorithm``, ``base_class`` or ``refresh`` is given.
    learning_rate : "auto" or float, default="auto"
        Shrinkage of each step, above 0 and at most 1. "auto": 0.1; with shared trees 0.04, from
        50,000 rows on 0.06, whatever ``max_iter`` is. ``fit`` warns if ``max_iter`` is given and too
        small for this rate: their product is below 3.
    max_iter : "auto", int or None, default="auto"
        Number of boosting steps, at most. Each grows K trees, K-1 with a base class, or one that is
        shared. "auto": 300 with shared trees, from 50,000 rows on 200, else 100; but with early
        stopping as many as validation wants. None: no bound but early stopping or ``max_time``.
    max_leaf_nodes : "auto" or int, default="auto"
        Leaves of a tree, at most; 2 to 32768. "auto": a hundredth of the rows with shared
        trees, else a three-hundredth, but at most their square root; 12 to 1,024.
    max_depth : int or None, default=None
        Depth of a tree, at most; None for no bound.
    min_samples_leaf : float, default=10
        Least sum of sample weights in a leaf; without weights, least number of rows. With
        ``class_weight`` it is multiplied by the rows' mean factor. Below 1 it is a share of the sum
        of all weights, as in scikit-learn: 0.01 for a hundredth of the rows. 1 and 1.0 are the same,
        one row of weight 1.
    min_gain : float, default=0.0
        A node is split only if its best cut gains more than this.
    l2_regularization : "auto" or float, default="auto"
        Added to the sum of hessians in a leaf's value and, for the logitboost algorithms, in the
        split gain. "auto": with shared trees 4 (K-1) / K^2, as much as four rows of
        which nothing is known, else 0.
    min_hessian_leaf : float, default=0.0
        Least sum of hessians in a leaf, in a shared tree over all classes; for the logitboost
        algorithms only.
    max_bins : int, default=255
        Most bins for the values of a feature, 2 to 65534; missing values have one of their own.
    categorical_features : "auto", None, or list of names, indices or truth values, default="auto"
        Which columns are categories, split by sets of levels. "auto": those of strings, categories,
        enums and dictionaries in a data frame. With more levels than 16 times ``max_bins`` the
        lightest ones share a bin.
    categorical_smoothing : float, default=10.0
        Levels are sorted by their mean residual before they are cut; each counts as if it had so
        many more rows at the mean of its node. Levels with fewer than half as many rows in the
        node are not told apart.
    categorical_penalty : float, default=1.0
        A split on a category must gain so many times what sorting its levels gains by chance, and
        counts by what it gains beyond. So many levels that say nothing are left alone. 0: none.
    handle_unknown : {"missing", "error"}, default="missing"
        What a level is that was not seen during fit.
    subsample : float, default=1.0
        Share of the rows that the trees of a step are grown on, drawn anew for each step; above 0
        and at most 1.
    max_features : "auto", None, "sqrt", int or float, default="auto"
        Features that are drawn for each split: so many, or a share of them; None for all. "auto":
        half of them with shared trees, else all.
    interaction_cst : None, "pairwise", "no_interactions" or list of lists, default=None
        Which features may meet on a path from the root of a tree to a leaf: two at most, never two,
        or those of one of the given groups, by number or name. Features in no group make one of
        their own.
    monotonic_cst : None
        There to say that monotone constraints are not supported: with three or more classes scores
        compete, so that one that rises does not make its probability rise.
    base_class : "auto", None, "worst", "exhaustive", BaseClassSearch, FixedBase or a label, default="auto"
        The base class of each step: that of largest training loss ("worst", the first one drawn at
        random), the best of all ("exhaustive": K(K-1)/2 trees a step instead of K-1) or of some
        (``BaseClassSearch``, at little cost), or always the same label. "auto": no base class for
        the plain algorithms, "worst" for "abc-mart", ``BaseClassSearch(2, 5)`` for "abc-logitboost".
        None: the same, but "worst" for both.
        ``FixedBase(label)`` is for a label that is itself spelled like a policy.
        ``algorithm="mart", base_class="worst"`` is the paper's "Mb".
    base_step : {"search", "full"}, default="search"
        How far a step moves the base class, whose score K-1 trees lower at once: as far as the
        training loss falls most, or all the way as Alg. 3 of the paper is printed, less only where
        that would raise the training loss. It matters from some twenty classes on.
    refresh : {"step", "class"}, default="step"
        When residuals are computed anew: once a step, or after each class's tree as Alg. 2 is
        printed; "class" is for the plain algorithms without a base class, and trees per class, only.
    gain_directions : "auto", "all" or int, default="auto"
        What the cuts of a shared tree are measured in: all classes, or so many random sums and
        differences of classes, drawn anew for each step, which takes less time with many classes.
        Leaves hold values of all classes in any case. "auto": all up to 7 classes, 7 drawn ones if
        there are more. Trees per class have no use for it.
    init : {"auto", "zero", "prior"}, default="auto"
        The scores before the first step: zero as in the paper, or the logarithms of the weighted
        class frequencies. "auto" is "prior" with shared trees, else "zero". With "prior" a class
        without rows counts as half an average row. Where
        ``y`` has rows of one class alone, the start is always "prior".
    classes : array-like of shape (n_classes,) or None, default=None
        The labels that can occur; those in ``y`` by default. A class without rows has its column in
        ``predict_proba`` all the same. ``classes_`` is sorted, whatever their order here.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights: from label to factor, 1 for labels that are not named, or
        "balanced", which gives all classes the same sum of weights. They hold for training and
        for the validation loss and score. Probabilities are then those of the weighted classes.
        A row of weight 2 is the row twice: with trees per class for whole sample weights and any
        factors, with shared trees for whole factors only.
    warm_start : bool, default=False
        Go on from the model of the last fit: ``max_iter`` is the total number of steps, and with
        the same data the model is the one of a single fit, bit for bit. If early stopping had cut
        the model, training goes on from its best step. Draws go on with the seed of the first fit,
        whatever ``random_state`` is now. A fit that fails keeps the earlier model.
    early_stopping : {"auto", True, False}, default="auto"
        Stop when the validation score has not become better for ``n_iter_no_change`` steps, and
        keep the best step's model. "auto": if ``X_val`` is given. With False, ``X_val`` is only
        watched.
    scoring : str or callable, default="loss"
        The validation score: "loss" (minus the mean loss), "error" (minus the error rate), the name
        of a scikit-learn scorer of classification, or a callable ``scorer(estimator, X, y)`` whose estimator can
        predict the very X that it is handed: ``X_val`` as it was given or, if rows were held out
        or have no weight, a ``Table`` of those that count. Larger is better.
    validation_fraction : float, default=0.1
        Share of the rows of each class that is held out for validation, if early stopping is on
        and there is no ``X_val``.
    n_iter_no_change : int, default=20
        Steps without a better score after which early stopping stops.
    refit : bool, default=False
        After early stopping, train once more: on all rows of ``X``, those held out included, for the
        ``best_iter_`` steps that validation chose. ``X_val`` is not learned from; with it no row of
        ``X`` was held out, so the model stays as it is. A second training that ``max_time``, a
        callback or Ctrl-C ends leaves the validated model.
    tol : float, default=1e-7
        A score is better only if it is larger by more than this.
    max_time : float or None, default=None
        Seconds after which no further step begins, counted from the call of ``fit``; the model so
        far is kept.
    callbacks : callable, list of callables or None, default=None
        Called after every step with a ``IterationReport`` (step, train_loss, class_losses, base_class,
        is_mended, validation_loss, validation_score, phase); one that returns True stops training.
        Clones call the very same ones; the pickle of a fitted model leaves them out.
    checkpoint : path or None, default=None
        A model file that is written during training, each time in the place of the last one and
        always whole: every ``checkpoint_every`` steps, and when training ends or Ctrl-C or an error
        ends it. ``fit(..., resume_from=path)`` goes on from it. An existing file is replaced only if
        it is empty, a model file, or a checkpoint of the same training, and never if ``fit`` reads it;
        else a FileExistsError is raised before training. A file that cannot be written is warned of,
        and training goes on.
    checkpoint_every : int or None, default=None
        Steps from one checkpoint to the next. None: about a minute, or longer if writing takes
        more than a twentieth of the time.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt, or keep the model of the steps taken so far.
    recenter : bool, default=False
        Report scores without their row mean. Where there is a base class, or scores do not start
        at zero (``init="prior"``), this is done in any case. Probabilities stay the same.
    n_jobs : int or None, default=None
        Number of threads. None: the CPUs that the process may use, one inside a joblib worker.
    random_state : int, RandomState, Generator or None, default=None
        Draws the first base class, the directions of ``gain_directions``, and the rows and features
        of ``subsample``, ``max_features`` and ``validation_fraction``. None means 0.
    verbose : int, default=0
        1 shows progress on standard error: one live line in a terminal, else a line every ten seconds.
        A larger number n shows a line after every n-th step. Losses are means over rows. So it shows
        how many rows were read of a table that is read in parts.

    Attributes
    ----------
    model_ : Model
        All that prediction needs: trees, encoding of tables, classes.
    history_ : History
        The record of the training; with ``refit`` of the one that was validated. The attributes
        below are views of these two.
    refit_history_ : History or None
        The record of the second training, if the model is that of ``refit``.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    init_ : ndarray of shape (n_classes,)
        Scores before the first step.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame with string column names.
    n_iter_ : int
        Number of steps taken.
    best_iter_ : int
        Number of steps of the model: that of the largest validation score with early stopping, the
        first among equals; else ``n_iter_``.
    train_loss_ : ndarray of shape (n_iter_ + 1,)
        Training loss before the first step and after each: the sum over rows, not the mean, of
        weight times -log of the probability of the row's label. Fractional weights count as they
        were rounded, so it may be off by 1e-8 to 1e-6 of itself.
    class_losses_ : ndarray of shape (n_iter_ + 1, n_classes)
        The part of each class in it.
    base_classes_ : ndarray of object of shape (n_iter_,)
        The base class of each step, as a label; None without one.
    search_losses_ : ndarray of shape (n_iter_, n_classes)
        The training loss after the step of each base class that a search tried; NaN where none was.
    validation_loss_ : ndarray of shape (n_iter_ + 1,)
        The loss of the validation rows, summed like ``train_loss_``; empty without validation.
    validation_score_ : ndarray of shape (n_iter_ + 1,)
        Their score, the larger the better; empty without validation.
    chosen_ : dict
        What the parameters became that may be left open, by name: ``algorithm``, ``trees``,
        ``learning_rate``, ``max_iter`` (None: no bound), ``max_leaf_nodes``, ``l2_regularization``,
        ``max_features``, ``init``, ``early_stopping``, and ``gain_directions`` or ``base_class``.
    refit_params_ : dict
        Parameters of a second fit, on all rows: those of this estimator, with the values in
        ``chosen_``, ``best_iter_`` as ``max_iter``, and no early stopping. Trained on the same
        rows, ``ABCBoostClassifier(**model.refit_params_)`` is the model that ``refit=True`` gives.
        A ``random_state`` that is a generator is the exception: it has moved on.
    stop_reason_ : str
        "max_iter"; "machine_accuracy" (nothing is left to fit: the loss fell below 2e-14, or
        that times the sum of all weights if they sum to less than 1); "no_progress" (no tree of a
        step could be split, or no shorter step lowers the loss); "early_stopping"; "max_time";
        "callback"; or "interrupted". Of a model that was cut "truncated", of one that was loaded
        from a checkpoint "checkpoint".
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the gain of all splits.
    class_importances_ : ndarray of shape (n_classes, n_features_in_)
        Share of each feature in what a class gains by splits: in the trees of the class, or in its
        part of shared trees. A row sums to 1, or is 0 where the class gained nothing or, as a base
        class, had no tree of its own.

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
    def __init__(  # noqa: PLR0913, PLR0915
        self,
        algorithm: str = "auto",
        *,
        trees: str = "auto",
        learning_rate: float | str = "auto",
        max_iter: int | str | None = "auto",
        max_leaf_nodes: int | str = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float = 10,
        min_gain: float = 0.0,
        l2_regularization: float | str = "auto",
        min_hessian_leaf: float = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "auto",
        categorical_smoothing: float = 10.0,
        categorical_penalty: float = 1.0,
        handle_unknown: str = "missing",
        subsample: float = 1.0,
        max_features: float | str | None = "auto",
        interaction_cst: str | Sequence[Iterable[Any]] | None = None,
        monotonic_cst: None = None,
        base_class: object = "auto",
        base_step: str = "search",
        refresh: str = "step",
        gain_directions: int | str = "auto",
        init: str = "auto",
        classes: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        early_stopping: bool | str = "auto",
        scoring: str | Callable[..., float] = "loss",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        refit: bool = False,
        tol: float = 1e-7,
        max_time: float | None = None,
        callbacks: Callable[[IterationReport], object]
        | Sequence[Callable[[IterationReport], object]]
        | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        on_interrupt: str = "raise",
        recenter: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.trees = trees
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.l2_regularization = l2_regularization
        self.min_hessian_leaf = min_hessian_leaf
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_smoothing = categorical_smoothing
        self.categorical_penalty = categorical_penalty
        self.handle_unknown = handle_unknown
        self.subsample = subsample
        self.max_features = max_features
        self.interaction_cst = interaction_cst
        self.monotonic_cst = monotonic_cst
        self.base_class = base_class
        self.base_step = base_step
        self.refresh = refresh
        self.gain_directions = gain_directions
        self.init = init
        self.classes = classes
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.refit = refit
        self.tol = tol
        self.max_time = max_time
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.on_interrupt = on_interrupt
        self.recenter = recenter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, algorithm: str = "abc-mart", **others: Any) -> Self:
        """Return a classifier with the settings of the paper, but for those that are given.

        20 leaves, a learning rate of 0.1, 1,000 steps that begin at zero, leaves without a ridge,
        and a base class that moves as Alg. 3 is printed.
        """
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
            matrix, or a BinnedTable. NaN and null are missing, infinities ordinary extremes. A
            table that is used for several fits can be binned once:
            ``BinMapper().fit(X).transform(X)``; its bins are then used as they are, and
            ``max_bins``, ``categorical_features`` and ``handle_unknown`` are not. A path, a pattern, a
            folder, a data set of pyarrow or a LargeTable is read in parts, and need not fit into
            memory; ``y`` and ``sample_weight`` are then the names of its columns.
        y : array-like of shape (n_rows,)
            Labels of one type: strings, integers, truth values, floats that are whole numbers, dates.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative. Weight 2 is the row twice, weight 0 the row absent; with shared
            trees the former holds for whole weights, those with ``class_weight`` included.
        X_val : table of shape (n_validation_rows, n_features), optional
            Rows to validate on; never learned from. Columns of a data frame are found by name.
        y_val : array-like of shape (n_validation_rows,), optional
            Their labels.
        sample_weight_val : array-like of shape (n_validation_rows,), optional
            Their weights.
        resume_from : path or file, optional
            A checkpoint to go on from. The model is, byte for byte, that of a fit which nobody broke
            off, so data and parameters must be those of that fit, but for ``max_iter``, which may be
            larger, ``max_time``, ``callbacks``, ``checkpoint``, ``checkpoint_every``,
            ``on_interrupt``, ``n_jobs``, ``verbose`` and ``warm_start``. Anything else that differs
            is an error that names it.
        communicator : Communicator or Shard, optional
            Where several processes call ``fit`` together, each with rows of its own: the rank of this
            one, such as ``MPICommunicator(comm)``. The model is, byte for byte, that of all rows in one
            process; all ranks have it. Tables are in memory, and may have no rows; callbacks,
            progress, checkpoints and the random state are those of rank 0.

        Returns
        -------
        self
        """
        rows = (X, y, sample_weight, X_val, y_val, sample_weight_val)
        remark = self._fit(FitArguments(*rows, as_shard(communicator)), resume_from)
        if remark is not None:
            warnings.warn(remark, UserWarning, stacklevel=3 + FRAMES_AROUND_FIT)
        return self

    def _fit(
        self,
        given: FitArguments,
        resume_from: Any,
        told: Callable[[FitRun], object] | None = None,
        elapsed: float = 0.0,
    ) -> str | None:
        """Fit the model; return a remark for the user.

        ``told`` hears of the course before it runs; so many seconds of the fit are over already.
        """
        began, shard = time.monotonic() - elapsed, given.shard
        settings = raise_together(shard, lambda: Parameters.from_parameters(self._parameters()))
        with self._being_fitted():
            earlier, resumed = raise_together(
                shard, lambda: self._iterations_before(settings, resume_from)
            )
            course = prepare(settings, given, earlier, resumed, began, type(self).__name__)
            if told is not None:
                told(course)
            task = self._begin_task(course.n_iter_left, given)
            trained, refitted = course.run(task, self._save_checkpoint)
            self._keep(trained, refitted)
            task.end()
        if shard.communicator.rank > 0:
            return None
        is_whole = resumed is None or given.keeps_state
        return trained.warning or (self._too_few_iterations(settings) if is_whole else None)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; a name of another package gets a hint."""
        known = self.get_params()
        try:
            return cast(Self, super().set_params(**params))
        except ValueError as error:
            unknown = (name for name in params if name.partition("__")[0] not in known)
            raise ValueError(str(error) + "".join(hint(name, known) for name in unknown)) from error

    @property
    def refit_params_(self) -> dict[str, Any]:
        """Parameters of a fit on all rows, with as many steps as this model has."""
        n_iter = self.best_iter_
        if n_iter == 0:
            raise AttributeError("refit_params_: the model has no step, and max_iter is at least 1")
        only_once = {
            "early_stopping": False,
            "refit": False,
            "warm_start": False,
            "max_time": None,
            "checkpoint": None,
        }
        return self._parameters() | self.chosen_ | only_once | {"max_iter": n_iter}

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield what ``predict`` would return after each step: nothing if the model has none."""
        for raw in self._staged_raw(X):
            yield self._outputs().labels(raw)

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield what ``predict_proba`` would return after each step: nothing if there is none."""
        for raw in self._staged_raw(X):
            yield self._outputs().probabilities(raw, self._n_threads())

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield what ``decision_function`` would return after each step: nothing if there is none."""
        for raw in self._staged_raw(X):
            yield self._outputs().reported(raw.copy())

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values, categories and sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def _iterations_before(
        self, settings: Parameters, resume_from: Any
    ) -> tuple[PreviousFit | None, FitState | None]:
        """Return what a warm start goes on from, and where a fit was broken off, if it was."""
        resumed = None if resume_from is None else FitState.load(resume_from)
        earlier = self._previous_fit(settings)
        return (earlier, None) if resumed is None else (resumed.previous, resumed)

    def _save_checkpoint(self, checkpoint: FitState, path: Path) -> None:
        checkpoint.save(path, self.get_params(deep=False))

    def _previous_fit(self, settings: Parameters) -> PreviousFit | None:
        """Return what a warm start goes on from; without one drop an earlier fit.

        So a fit which fails or is interrupted leaves no model, but for a warm start the earlier one.
        """
        if settings.warm_start and self.__sklearn_is_fitted__():
            return PreviousFit(self.model_, self.refit_history_ or self.history_)
        for name in ("model_", "history_", "refit_history_"):
            self.__dict__.pop(name, None)
        return None

    def _parameters(self) -> dict[str, Any]:
        """Return what was given, of a subclass too that names fewer or more parameters."""
        return {name: getattr(self, name) for name in ABCBoostClassifier._get_param_names()}

    @contextmanager
    def _being_fitted(self) -> Iterator[None]:
        """Refuse a second fit of the same estimator before the first has ended."""
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
        """Leave out that a fit is under way: a callback may copy the estimator.

        A fitted estimator leaves out its callbacks, too, which many kinds of cannot be pickled.
        """
        state: dict[str, Any] = super().__getstate__()
        state = {name: value for name, value in state.items() if name != "_is_being_fitted"}
        return state | {"callbacks": None} if "model_" in state else state

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, but for callbacks: they are handed on, not copied.

        So an object that gathers what it hears is the one that the user holds.
        """
        silent = copy.copy(self)
        silent.callbacks = None
        clone: Self = super(ABCBoostClassifier, silent).__sklearn_clone__()
        clone.callbacks = self.callbacks
        return clone

    def _begin_task(self, n_iter: int | None, given: FitArguments) -> FitTask:
        """Begin the fit as scikit-learn's callbacks see it."""
        weight = given.sample_weight
        metadata = None if weight is None else {"sample_weight": weight}
        task = FitTask(self, n_iter, {"X": given.X, "y": given.y, "metadata": metadata})
        task.begin()
        return task

    def _keep(self, trained: TrainingResult, refitted: TrainingResult | None) -> None:
        """Keep the model, and how it came about."""
        self.model_ = trained.model if refitted is None else refitted.model
        self.history_ = trained.history
        self.refit_history_ = None if refitted is None else refitted.history

    def _too_few_iterations(self, settings: Parameters) -> str | None:
        """Return a remark if all steps that were asked for are too few."""
        if self.history_.stop_reason != "max_iter":
            return None
        return too_few_iterations(settings, self.chosen_["learning_rate"])

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes its time, and raises

    def _read(self, X: Any) -> AnyTable:
        """Read a table to predict on."""
        self._check_fitted()
        return read_like(X, self.model_.encoding.schema, type(self).__name__)

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        if is_large(X):
            return self._raw_of_all(X, n_iter)
        table = self._read(X)
        return self.model_.raw(table, self._n_threads(), n_iter)

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        table = self._read(X)
        return self.model_.staged_raw(table, self._n_threads())

    def _outputs(self) -> SoftmaxLink:
        return self.model_.outputs

    def _n_threads(self) -> int:
        return effective_n_threads(self.n_jobs)
