"""Retries of a fit on workers, with callbacks, progress and warnings on the client."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
from distributed import Client

from abcgbm.communication.communicator import RankLostError, RanksError
from abcgbm.distributed.captured_warnings import CapturedWarning
from abcgbm.distributed.dask_engine import LostWorkersError, WorkerGroup, forget_workers
from abcgbm.distributed.dask_partitions import Partitions, Placement
from abcgbm.distributed.shard_fit import (
    PartitionsMovedError,
    ShardReport,
    ShardTask,
    Summary,
    checkpoint_of,
    model_of,
    read_model,
    summary_of,
)
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.callbacks import IterationReport, Means
from abcgbm.training.progress import ProgressLine


class ClientCallbacks:
    """Progress line and callbacks of a fit on a cluster.

    Parameters
    ----------
    settings : Parameters
        Parameters of the fit.
    """

    def __init__(self, settings: Parameters) -> None:
        self.callbacks = settings.callbacks
        max_iter = settings.max_iter if isinstance(settings.max_iter, int) else None
        self._line = ProgressLine(max_iter, settings.verbose)

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.__exit__(kind, error, trace)

    def on_iteration(self, report: IterationReport, means: Means) -> bool:
        """Show an iteration and call the callbacks; return whether to stop."""
        if self._line.enabled:
            self._line.show(report.iteration, *means, report.phase, report.base_class)
        returned = [callback(report) for callback in self.callbacks]
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)


_END_TIMEOUT = 15.0  # seconds for all ranks to end once one has ended
_TRANSFER_TIMEOUT = 300.0  # seconds to send a model or a checkpoint
_POLL_INTERVAL = 0.05  # seconds between two polls, unless each iteration waits for an answer
_MAX_FAILED_ATTEMPTS = 6  # in a row, without an iteration


class RetryingFit:
    """A fit on the workers that hold the rows, retried until there is a model.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    params : dict
        Parameters of the estimators on the workers.
    rows : Partitions
        Training and validation rows.
    heartbeat_timeout : float
        Seconds without a message after which a rank is considered lost.
    on_iteration : callable
        Called after each iteration; returns whether to stop.
    waits : bool
        Whether the next iteration waits for the answer of ``on_iteration``.

    Attributes
    ----------
    checkpoint : bytes or None
        The last known state of the fit, from which the next attempt resumes.
    n_iter : int
        Number of iterations of the checkpoint.
    warnings : dict of CapturedWarning
        Warnings of rank 0 for the user, in order.
    """

    def __init__(
        self,
        client: Client,
        params: dict[str, Any],
        rows: Partitions,
        heartbeat_timeout: float,
        on_iteration: Callable[[IterationReport, Means], bool],
        *,
        waits: bool,
    ) -> None:
        self.checkpoint: bytes | None = None
        self.n_iter = 0
        self.warnings: dict[CapturedWarning, None] = {}
        self._client, self._params, self._rows = client, params, rows
        self._heartbeat_timeout = heartbeat_timeout
        self._on_iteration, self._waits = on_iteration, waits
        self._began = time.monotonic()
        self._was_interrupted = self._keeps_interrupted = False
        self._stopped: set[tuple[str, int]] = set()  # phases and iterations with a request to stop
        self._last_iteration: dict[str, int] = {}  # of each phase
        # Of the current attempt:
        self._stop_requested = False  # at the last iteration
        self._n_reports = 0

    def run(self, *, keeps_interrupted: bool) -> Any:
        """Return the fitted estimator.

        Ctrl-C raises KeyboardInterrupt or, with ``keeps_interrupted``, ends training with the model so
        far.
        """
        self._keeps_interrupted = keeps_interrupted
        n_failed, is_retry = 0, False
        while True:
            check_running(self._client)
            placements = self._rows.place(is_retry=is_retry)
            before = self.checkpoint
            try:
                return self._attempt(placements)
            except (LostWorkersError, PartitionsMovedError):
                n_failed = n_failed + 1 if self.checkpoint == before else 0
                if n_failed == _MAX_FAILED_ATTEMPTS:
                    raise
                is_retry = True

    def _attempt(self, placements: list[Placement]) -> Any:
        self._n_reports, self._stop_requested = 0, False
        addresses = [placement.address for placement in placements]
        group = WorkerGroup(self._client, addresses, self._heartbeat_timeout, waits=self._waits)
        reason = "the client was interrupted"
        try:
            self._start(group, placements)
            model = None
            while model is None:
                with group.kept_alive():
                    self._follow(group)
                model = self._collect(group)
            reason = "the client has the model"
        except LostWorkersError:
            forget_workers(self._client, group.silent)
            raise
        finally:
            group.end(reason)
        return model

    def _start(self, group: WorkerGroup, placements: list[Placement]) -> None:
        stopped, elapsed = frozenset(self._stopped), time.monotonic() - self._began
        tasks = [
            ShardTask(self._params, of_rank, self._rows.kind, self.checkpoint, stopped, elapsed)
            for of_rank in placements
        ]
        try:
            group.start(tasks)
        except LostWorkersError:
            group.alive()  # finds the silent workers
            raise

    # ------------------------------------------------------------------------------------- iterations

    def _follow(self, group: WorkerGroup) -> None:
        """Handle reports until rank 0 is done, or lost."""
        is_done = False
        while not is_done:
            try:
                is_done = self._poll(group)
            except RanksError:
                return  # other ranks may know more
            except KeyboardInterrupt:
                self._interrupt()

    def _poll(self, group: WorkerGroup) -> bool:
        """Handle new reports; return whether rank 0 is done."""
        stop_requested = self._stop_requested or self._was_interrupted
        update = group.poll(self._n_reports, stop_requested=stop_requested)
        for report in update.reports:
            self._n_reports += 1
            self._handle(report)
        if not self._waits and not update.is_done:
            time.sleep(_POLL_INTERVAL)
        return update.is_done

    def _handle(self, sent: ShardReport) -> None:
        report = sent.report
        if sent.state is not None:
            self.checkpoint, self.n_iter = sent.state, report.iteration
        # A retry repeats the iterations after its checkpoint, but callbacks are called once for each.
        if report.iteration > self._last_iteration.get(report.phase, 0):
            self._last_iteration[report.phase] = report.iteration
            if self._on_iteration(report, sent.means):
                self._stopped.add((report.phase, report.iteration))
        self._stop_requested = (report.phase, report.iteration) in self._stopped

    def _interrupt(self) -> None:
        """Stop after the current iteration, if there is a model to keep and this is the first Ctrl-C."""
        if self._was_interrupted or not self._keeps_interrupted or not self._last_iteration:
            raise KeyboardInterrupt
        self._was_interrupted = True

    def was_interrupted(self, stop_reason: str) -> bool:
        """Return whether Ctrl-C, and not a callback, stopped training for this reason."""
        by_callback = any(phase != "refit" for phase, _ in self._stopped)
        return self._was_interrupted and stop_reason == "callback" and not by_callback

    # ---------------------------------------------------------------------------------------- results

    def _collect(self, group: WorkerGroup) -> Any:
        """Return the model; if there is none, keep the best checkpoint and raise the error.

        None if all ranks answer and none has ended: then the fit is followed again.
        """
        alive = group.alive()
        answers = group.collect(summary_of, alive, _END_TIMEOUT)
        summaries: dict[int, Summary] = {
            rank: summary for rank, summary in answers.given.items() if summary is not None
        }
        if 0 in summaries:
            self.warnings |= dict.fromkeys(summaries[0].warnings)
        with_model = [rank for rank, summary in summaries.items() if summary.has_model]
        if with_model:
            return read_model(self._fetch(group, model_of, with_model))
        if not summaries and not answers.errors and len(alive) == len(group.addresses):
            return None
        self._keep_best_checkpoint(group, summaries)
        for summary in summaries.values():
            is_lost = isinstance(summary.error, RanksError)
            if not is_lost or isinstance(summary.error, PartitionsMovedError):
                raise summary.error or RuntimeError("a rank ended without a model")
        lost = {
            rank: RankLostError(f"worker {address} (rank {rank}) does not answer", rank)
            for rank, address in enumerate(group.addresses)
            if rank not in alive
        }
        errors = {rank: s.error for rank, s in summaries.items() if s.error is not None}
        raise group.merge_errors(answers.errors | lost | errors)

    def _keep_best_checkpoint(self, group: WorkerGroup, summaries: dict[int, Summary]) -> None:
        n_iter = {rank: s.n_iter for rank, s in summaries.items() if s.has_checkpoint}
        if n_iter:
            self.n_iter = max(n_iter.values())
            best = [rank for rank, n in n_iter.items() if n == self.n_iter]
            self.checkpoint = self._fetch(group, checkpoint_of, best)

    def _fetch(self, group: WorkerGroup, view: Callable[..., bytes], holders: list[int]) -> bytes:
        """Return a view of the result of the first of several ranks that answers."""
        errors: dict[int, BaseException] = {}
        for rank in holders:
            answers = group.collect(view, [rank], _TRANSFER_TIMEOUT)
            if answers.given:
                return answers.given[rank]  # type: ignore[no-any-return]
            errors |= answers.errors
        raise group.merge_errors(errors)


def check_running(client: Client) -> None:
    """Raise RuntimeError if the client is not connected with its scheduler."""
    if client.status != "running":
        raise RuntimeError(
            f"the client is {client.status}: it was closed during fit, or its cluster has gone; "
            "expected both to stay until fit returns"
        )
