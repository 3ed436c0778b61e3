"""`DaskABCBoostClassifier`."""

from __future__ import annotations

import copy
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any, Self

import dask
import dask.array
import numpy as np
from dask.utils import parse_timedelta
from distributed import Client

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.distributed.dask_partitions import Partitions, Rows, is_lazy
from abcgbm.distributed.recovery import ClientCallbacks, RetryingFit, check_running
from abcgbm.parameters.algorithms import AlgorithmObject, TimeLimit
from abcgbm.parameters.hints import with_prediction_hints
from abcgbm.parameters.parameters import Parameters, callback_list


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


try:
    import dask
    import dask.array
    import distributed
except ImportError as error:
    raise ImportError(
        f"DaskABCBoostClassifier needs dask and distributed: pip install 'abcgbm[dask]' ({error})"
    ) from error

_NO_WORKERS = 10.0  # seconds in which a worker must turn up
_HEARTBEAT_TIMEOUT = (
    "abcgbm.heartbeat_timeout"  # in dask's configuration: how long a rank may be silent
)
_FITTED = ("model_", "history_", "refit_history_")


def _with_client(init: Callable[..., None]) -> Callable[..., None]:
    """Let a constructor show the parameters of ABCBoostClassifier beside its own."""
    own = inspect.signature(init).parameters["client"]
    ours = inspect.signature(ABCBoostClassifier.__init__)
    init.__signature__ = ours.replace(  # type: ignore[attr-defined]
        parameters=[*ours.parameters.values(), own]
    )
    return init


class DaskABCBoostClassifier(ABCBoostClassifier):
    """``ABCBoostClassifier`` on a Dask cluster: the same model, from rows that stay on its workers.

    All parameters are those of ``ABCBoostClassifier``. ``callbacks`` are called where ``fit`` was,
    and each step waits for what they say, which takes a few hundredths of a second. ``n_jobs`` is the
    number of threads on each worker; None: as many as Dask has there. ``warm_start`` and
    ``Checkpoint`` are not supported: a fit resumes by itself where workers were lost.

    Parameters
    ----------
    algorithm, ... : as those of ABCBoostClassifier
        The first may be given by position, all others by name.
    client : distributed.Client, optional
        Of the cluster; the default is the client that was made last.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from abcgbm.distributed import DaskABCBoostClassifier
    >>> client = Client()  # doctest: +SKIP
    >>> model = DaskABCBoostClassifier().fit(X, y)  # doctest: +SKIP
    >>> model.predict(X).compute()  # doctest: +SKIP
    """

    @_with_client
    def __init__(
        self,
        algorithm: str | AlgorithmObject = "auto",
        *,
        client: Client | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(algorithm, **parameters)
        self.client = client

    # -------------------------------------------------------------------------------------- training

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model.

        Partitions of X, y and weights belong together one by one. What is lazy is computed, and
        kept on its workers during the fit.

        Parameters
        ----------
        X : dask DataFrame or Array, or list of futures or delayed objects
            The table, by partitions of rows. In a list each is a table of any kind that
            ``ABCBoostClassifier`` takes and that lies in memory.
        y : dask Series or Array, or list of futures or delayed objects
            Labels.
        sample_weight : dask Series or Array, or list of futures or delayed objects, optional
            Weights.
        X_val, y_val, sample_weight_val : as the first three, optional
            Rows to validate on.

        Returns
        -------
        self
        """
        settings = self._settings()
        client = self._ready_client()
        learned = Rows(X, y, sample_weight)
        validated = None if X_val is None else Rows(X_val, y_val, sample_weight_val, "_val")
        with self._being_fitted(), _connected(client):
            for name in _FITTED:
                self.__dict__.pop(name, None)
            heartbeat_timeout = parse_timedelta(dask.config.get(_HEARTBEAT_TIMEOUT, "6s"))
            rows = Partitions(client, learned, validated, heartbeat_timeout)
            self._train(
                client,
                rows,
                ClientCallbacks(settings),
                heartbeat_timeout,
                settings.keep_on_interrupt,
            )
        return self

    def _train(
        self,
        client: Client,
        rows: Partitions,
        watching: ClientCallbacks,
        heartbeat_timeout: float,
        keep_on_interrupt: bool,
    ) -> None:
        driver = RetryingFit(
            client,
            self._parameters_of_ranks(),
            rows,
            heartbeat_timeout,
            watching.hear,
            waits=bool(watching.callbacks),
        )
        try:
            self._drive(driver, watching, keep_on_interrupt)
        finally:
            for warned in driver.warned:
                warnings.warn(*warned, stacklevel=3)

    def _drive(
        self, driver: RetryingFit, watching: ClientCallbacks, keep_on_interrupt: bool
    ) -> None:
        try:
            with watching:
                fitted = driver.run(keeps_interrupted=keep_on_interrupt)
        except BaseException:
            self._keep_so_far(driver.checkpoint)
            raise
        self._take(fitted)
        if driver.has_interrupted(self.history_.stop_reason):
            self.history_ = replace(self.history_, stop_reason="interrupted")

    def _take(self, fitted: ABCBoostClassifier) -> Self:
        for name in _FITTED:
            setattr(self, name, getattr(fitted, name))
        return self

    def _keep_so_far(self, checkpoint: bytes | None) -> None:
        """Keep what there is of a model whose training cannot go on."""
        if checkpoint is not None:
            self._take(ABCBoostClassifier.load_model(io.BytesIO(checkpoint)))

    def _settings(self) -> Parameters:
        """Check the parameters, those too that mean nothing here."""
        settings = Parameters.from_parameters(self._parameters())
        given = {
            "warm_start=True": settings.warm_start,
            "callbacks with a Checkpoint": settings.checkpoint is not None,
        }
        for what, is_given in given.items():
            if is_given:
                raise ValueError(
                    f"{what}; expected none with DaskABCBoostClassifier: a fit resumes by itself where "
                    "workers were lost"
                )
        if settings.scoring.scorer is not None:
            raise ValueError(
                f"scoring={self.scoring!r}; expected 'loss' or 'error' with DaskABCBoostClassifier: no "
                "worker has all rows that a scorer would see"
            )
        return settings

    def _parameters_of_ranks(self) -> dict[str, Any]:
        """Return the parameters of a worker: of the callbacks it knows the time limit only."""
        limits = [of for of in callback_list(self.callbacks) if isinstance(of, TimeLimit)]
        return self._parameters() | {"callbacks": limits or None, "verbose": 0}

    def _ready_client(self) -> Client:
        """Return a client that is connected to a cluster with workers."""
        client = _any_client() if self.client is None else self.client
        if not isinstance(client, Client):
            raise TypeError(
                f"client={client!r} is a {type(client).__name__}; expected a distributed.Client"
            )
        if client.status != "running" or client.asynchronous:
            kind = "asynchronous" if client.asynchronous else client.status
            raise ValueError(
                f"the client is {kind}; expected one that is connected, not asynchronous"
            )
        if not client.nthreads():
            _wait_for_workers(client)
        return client

    # ------------------------------------------------------------------------------------ predicting

    @with_prediction_hints
    def predict(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return the most probable label of each row: of a collection lazily, else at once."""
        return self._of(X, "predict", n_iter)

    @with_prediction_hints
    def predict_proba(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return class probabilities: of a collection lazily, else at once."""
        return self._of(X, "predict_proba", n_iter)

    @with_prediction_hints
    def predict_log_proba(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return the logarithms of class probabilities: of a collection lazily, else at once."""
        return self._of(X, "predict_log_proba", n_iter)

    @with_prediction_hints
    def decision_function(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return the scores F: of a collection lazily, else at once."""
        return self._of(X, "decision_function", n_iter)

    def _of(self, X: Any, method: str, n_iter: int | None) -> Any:
        self._check_fitted()
        if not is_lazy(X):
            return getattr(super(), method)(X, n_iter=n_iter)
        local = self.to_local()
        if n_iter is not None:
            local = local.truncate(n_iter)
        local.n_jobs = 1  # Dask has a task for each of its threads
        return predict_lazily(local, method, X, self._client_or_none())

    def _client_or_none(self) -> Client | None:
        """Return the client that the model can be sent with, if there is one."""
        try:
            client = _any_client() if self.client is None else self.client
        except ValueError:
            return None
        return client if client.status == "running" and not client.asynchronous else None

    def _read(self, X: Any) -> Any:
        if is_lazy(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__qualname__}; expected a table that is not lazy, "
                "but for predict, predict_proba, predict_log_proba and decision_function"
            )
        return super()._read(X)

    # ------------------------------------------------------------------------------ being something else

    def to_local(self) -> ABCBoostClassifier:
        """Return an ordinary estimator with the same parameters and, if it is fitted, the same model."""
        local = ABCBoostClassifier(**self._parameters())
        for name in _FITTED:
            if name in self.__dict__:
                setattr(local, name, getattr(self, name))
        return local

    def save_model(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the model to a file, as the ordinary estimator does."""
        self._check_fitted()
        self.to_local().save_model(file)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client out, which belongs to this process."""
        return super().__getstate__() | {"client": None}

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, with the same client."""
        without = copy.copy(self)
        without.client = None
        clone: Self = super(DaskABCBoostClassifier, without).__sklearn_clone__()
        clone.client = self.client
        return clone


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Say that the client has lost its cluster, where that is why something fails."""
    try:
        yield
    except Exception as error:
        try:
            check_running(client)
        except RuntimeError as gone:
            raise gone from error
        raise


def _any_client() -> Client:
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "client=None, and there is no client; expected one: client = dask.distributed.Client(...)"
        ) from error


def _wait_for_workers(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=_NO_WORKERS)
    except TimeoutError as error:
        raise ValueError(
            f"the cluster of {client!r} has no workers, and none came within {_NO_WORKERS:g} s; "
            "expected at least 1"
        ) from error
