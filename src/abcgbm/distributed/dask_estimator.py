"""`DaskABCBoostClassifier`, the estimator on a Dask cluster."""

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

import numpy as np

try:
    import dask
    import dask.array
    import distributed
    from dask.utils import parse_timedelta
    from distributed import Client
except ImportError as error:
    raise ImportError(
        f"DaskABCBoostClassifier needs dask and distributed: pip install 'abcgbm[dask]' ({error})"
    ) from error

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.distributed.dask_partitions import PartitionedRows, Partitions, is_lazy
from abcgbm.distributed.recovery import ClientCallbacks, RetryingFit, check_running
from abcgbm.parameters.algorithms import AlgorithmObject, TimeLimit
from abcgbm.parameters.hints import with_prediction_hints
from abcgbm.parameters.objects import callback_list
from abcgbm.parameters.parameters import Parameters

_WORKERS_TIMEOUT = 10.0  # seconds to wait for the first worker
# In Dask's configuration: seconds without a message after which a rank is considered lost.
_HEARTBEAT_TIMEOUT = "abcgbm.heartbeat_timeout"
_FITTED = ("model_", "history_", "refit_history_")


def _with_client(init: Callable[..., None]) -> Callable[..., None]:
    """Give a constructor the signature of ABCBoostClassifier, with the client."""
    client = inspect.signature(init).parameters["client"]
    signature = inspect.signature(ABCBoostClassifier.__init__)
    init.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), client]
    )
    return init


class DaskABCBoostClassifier(ABCBoostClassifier):
    """``ABCBoostClassifier`` on a Dask cluster: the same model, from rows that stay on its workers.

    All parameters are those of ``ABCBoostClassifier``. ``callbacks`` are called in the client's
    process; each iteration waits for their return, which takes a few hundredths of a second.
    ``n_jobs`` is the number of threads on each worker; None: as many as Dask has there.
    ``warm_start`` and ``Checkpoint`` are not supported: a fit resumes by itself when workers are
    lost.

    Parameters
    ----------
    algorithm, ... : as those of ABCBoostClassifier
        ``algorithm`` may be given by position, all others by name.
    client : distributed.Client, optional
        Client of the cluster; by default the one created last.

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

        The partitions of X, y and weights correspond one to one. Lazy collections are computed, and
        stay on their workers during the fit.

        Parameters
        ----------
        X : dask DataFrame or Array, or list of futures or delayed objects
            The table, in partitions of rows. The partitions in a list are tables in memory of any type
            that ``ABCBoostClassifier`` accepts.
        y : dask Series or Array, or list of futures or delayed objects
            Labels.
        sample_weight : dask Series or Array, or list of futures or delayed objects, optional
            Weights.
        X_val, y_val, sample_weight_val : as the first three, optional
            Validation rows.

        Returns
        -------
        self
        """
        settings = self._settings()
        client = self._ready_client()
        train, validation = PartitionedRows(X, y, sample_weight), None
        if X_val is not None:
            validation = PartitionedRows(X_val, y_val, sample_weight_val, "_val")
        with self._being_fitted(), _connected(client):
            for name in _FITTED:
                self.__dict__.pop(name, None)
            heartbeat_timeout = parse_timedelta(dask.config.get(_HEARTBEAT_TIMEOUT, "6s"))
            rows = Partitions(client, train, validation, heartbeat_timeout)
            callbacks = ClientCallbacks(settings)
            fit = RetryingFit(
                client,
                self._worker_parameters(),
                rows,
                heartbeat_timeout,
                callbacks.on_iteration,
                waits=bool(callbacks.callbacks),
            )
            self._run(fit, callbacks, keeps_interrupted=settings.keep_on_interrupt)
        return self

    def _run(
        self, fit: RetryingFit, callbacks: ClientCallbacks, *, keeps_interrupted: bool
    ) -> None:
        try:
            with callbacks:
                fitted = fit.run(keeps_interrupted=keeps_interrupted)
            self._copy_fitted(fitted)
            if fit.was_interrupted(self.history_.stop_reason):
                self.history_ = replace(self.history_, stop_reason="interrupted")
        except BaseException:
            if fit.checkpoint is not None:  # the model so far
                self._copy_fitted(ABCBoostClassifier.load_model(io.BytesIO(fit.checkpoint)))
            raise
        finally:
            for warning in fit.warnings:
                warnings.warn(*warning, stacklevel=3)

    def _copy_fitted(self, fitted: ABCBoostClassifier) -> Self:
        for name in _FITTED:
            setattr(self, name, getattr(fitted, name))
        return self

    def _settings(self) -> Parameters:
        """Return the parameters, after checking that they are supported on a cluster."""
        settings = Parameters.from_parameters(self._parameters())
        unsupported = {
            "warm_start=True": settings.warm_start,
            "callbacks with a Checkpoint": settings.checkpoint is not None,
        }
        for what, is_given in unsupported.items():
            if is_given:
                raise ValueError(
                    f"{what}; expected none with DaskABCBoostClassifier: a fit resumes by itself when "
                    "workers are lost"
                )
        if settings.scoring.scorer is not None:
            raise ValueError(
                f"scoring={self.scoring!r}; expected 'loss' or 'error' with DaskABCBoostClassifier: no "
                "worker has all rows, which a scorer needs"
            )
        return settings

    def _worker_parameters(self) -> dict[str, Any]:
        """Return the parameters on workers: the only callback there is the time limit."""
        limits = [c for c in callback_list(self.callbacks) if isinstance(c, TimeLimit)]
        return self._parameters() | {"callbacks": limits or None, "verbose": 0}

    def _ready_client(self) -> Client:
        """Return the client, after checking that it is connected and that there are workers."""
        client = _any_client() if self.client is None else self.client
        if not isinstance(client, Client):
            raise TypeError(
                f"client={client!r} is a {type(client).__name__}; expected a distributed.Client"
            )
        if client.status != "running" or client.asynchronous:
            kind = "asynchronous" if client.asynchronous else client.status
            raise ValueError(
                f"the client is {kind}; expected one that is connected and not asynchronous"
            )
        if not client.nthreads():
            _wait_for_workers(client)
        return client

    # ------------------------------------------------------------------------------------ prediction

    @with_prediction_hints
    def predict(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return the most probable label of each row; lazily for a Dask collection."""
        return self._predict(X, "predict", n_iter)

    @with_prediction_hints
    def predict_proba(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return class probabilities; lazily for a Dask collection."""
        return self._predict(X, "predict_proba", n_iter)

    @with_prediction_hints
    def predict_log_proba(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return logarithms of class probabilities; lazily for a Dask collection."""
        return self._predict(X, "predict_log_proba", n_iter)

    @with_prediction_hints
    def decision_function(self, X: Any, *, n_iter: int | None = None) -> Any:
        """Return raw scores; lazily for a Dask collection."""
        return self._predict(X, "decision_function", n_iter)

    def _predict(self, X: Any, method: str, n_iter: int | None) -> Any:
        self._check_fitted()
        if not is_lazy(X):
            return getattr(super(), method)(X, n_iter=n_iter)
        local = self.to_local()
        if n_iter is not None:
            local = local.truncate(n_iter)
        local.n_jobs = 1  # Dask runs one task per thread
        return predict_lazily(local, method, X, self._client_or_none())

    def _client_or_none(self) -> Client | None:
        """Return a client that can send the model, if there is one."""
        try:
            client = _any_client() if self.client is None else self.client
        except ValueError:
            return None
        return client if client.status == "running" and not client.asynchronous else None

    def _read(self, X: Any) -> Any:
        if is_lazy(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__qualname__}; expected a table that is not lazy; "
                "only predict, predict_proba, predict_log_proba and decision_function take lazy ones"
            )
        return super()._read(X)

    # ------------------------------------------------------------------------------------ conversion

    def to_local(self) -> ABCBoostClassifier:
        """Return an ``ABCBoostClassifier`` with the same parameters and, if fitted, the same model."""
        local = ABCBoostClassifier(**self._parameters())
        for name in _FITTED:
            if name in self.__dict__:
                setattr(local, name, getattr(self, name))
        return local

    def save_model(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the model to a file, as that of an ``ABCBoostClassifier``."""
        self._check_fitted()
        self.to_local().save_model(file)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the client, which belongs to this process."""
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
    """Raise that the client has lost its cluster, if this is why a fit failed."""
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
            "client=None, and there is no default client; expected one, such as dask.distributed.Client(...)"
        ) from error


def _wait_for_workers(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=_WORKERS_TIMEOUT)
    except TimeoutError as error:
        raise ValueError(
            f"the cluster of {client!r} has no workers, and none came within {_WORKERS_TIMEOUT:g} s; "
            "expected at least 1"
        ) from error


# ------------------------------------------------------------------------------------ lazy prediction


def predict_lazily(model: ABCBoostClassifier, method: str, X: Any, client: Client | None) -> Any:
    """Return the result of a prediction method for a Dask collection, as a Dask collection.

    The result for an Array is an Array. For a data frame labels are a Series, probabilities and scores
    a data frame with one column per class.
    """
    sent = (
        dask.delayed(model) if client is None else client.scatter(model, broadcast=True, hash=False)
    )
    if isinstance(X, dask.array.Array):
        return _predict_array(model, sent, method, X)
    if hasattr(X, "map_partitions") and hasattr(X, "divisions"):
        meta = _predict_frame(X._meta.iloc[:0], model, method)
        return X.map_partitions(_predict_frame, sent, method, meta=meta)
    raise TypeError(
        f"X is a {type(X).__module__}.{type(X).__qualname__}; expected a dask DataFrame or Array, or a "
        "table that is not lazy"
    )


def _predict_array(model: ABCBoostClassifier, sent: Any, method: str, X: Any) -> Any:
    if X.ndim != 2:  # noqa: PLR2004
        raise ValueError(f"X has {X.ndim} dimensions; expected 2")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    meta = _empty_result(model, method)
    shape = {"drop_axis": 1} if meta.ndim == 1 else {"chunks": (X.chunks[0], (meta.shape[1],))}
    return X.map_blocks(_predict_block, sent, method, dtype=meta.dtype, meta=meta, **shape)


def _empty_result(model: ABCBoostClassifier, method: str) -> Any:
    n_classes = len(model.classes_)
    if method == "predict":
        return model.classes_[:0]
    has_one_score = method == "decision_function" and n_classes == 2  # noqa: PLR2004
    return np.zeros(0) if has_one_score else np.zeros((0, n_classes))


def _predict_block(block: Any, model: ABCBoostClassifier, method: str) -> Any:
    if not block.shape[0]:
        return _empty_result(model, method)
    return getattr(model, method)(block)


def _predict_frame(frame: Any, model: ABCBoostClassifier, method: str) -> Any:
    pandas: Any = sys.modules["pandas"]  # imported already: the frame is one of its
    values = _predict_block(frame, model, method)
    if values.ndim == 1:
        return pandas.Series(values, index=frame.index, name=method)
    return pandas.DataFrame(values, index=frame.index, columns=model.classes_.tolist())
