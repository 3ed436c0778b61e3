"""Attempts of a fit on workers: retries, callbacks and warnings on the client."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
from distributed import Client

from abcgbm.communication.communicator import RankLostError, RanksError
from abcgbm.distributed.dask_engine import LostWorkersError, WorkerGroup, forget_workers
from abcgbm.distributed.dask_partitions import Partitions, Placement
from abcgbm.distributed.shard_fit import (
    PartitionsMovedError,
    ShardTask,
    Step,
    Summary,
    checkpoint_of,
    model_of,
    read_model,
    summary_of,
)
from abcgbm.distributed.warned import CapturedWarning
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.callbacks import IterationReport, Means
from abcgbm.training.progress import ProgressLine


class ClientCallbacks:
    """Hears of the steps of a fit on a cluster.

    Parameters
    ----------
    settings : Parameters
        What to show, and whom to call.
    """

    def __init__(self, settings: Parameters) -> None:
        self.callbacks = settings.callbacks
        most = settings.max_iter if isinstance(settings.max_iter, int) else None
        self._line = ProgressLine(most, settings.verbose)

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

    def hear(self, report: IterationReport, means: Means) -> bool:
        """Hear of a step; return whether to stop."""
        if self._line.enabled:
            self._line.show(report.iteration, *means, report.phase, report.base_class)
        returned = [callback(report) for callback in self.callbacks]
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)


_SETTLING = 15.0  # seconds that ranks have to end once one has
_SENDING = 300.0  # seconds for a model or a checkpoint on its way
_BETWEEN = 0.05  # seconds between two questions, where no step waits for an answer
_MAX_IN_VAIN = 6  # attempts in a row that take no step


class RetryingFit:
    """Trains on the workers that hold the rows, until there is a model.

    Parameters
    ----------
    client : Client
        Of the cluster.
    params : dict
        Parameters of the estimator, as ranks have them.
    rows : Partitions
        What to learn from and to validate on.
    heartbeat_timeout : float
        Seconds after which a silent rank is taken to be lost.
    on_iteration : callable
        Is told of each step; returns whether to stop.
    waits : bool
        Whether the next step waits for what `on_step` says.
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
        self.attempts: list[str] = []  # why each but the last ended
        self.warned: dict[CapturedWarning, None] = {}  # what rank 0 would tell the user
        self._client, self._params, self._rows, self._heartbeat_timeout = (
            client,
            params,
            rows,
            heartbeat_timeout,
        )
        self._on_step, self._waits = on_iteration, waits
        self._was_interrupted = self._keeps_interrupted = False
        self._stopped: set[tuple[str, int]] = set()  # phases and steps where `on_step` said so
        self._began = time.monotonic()
        self._stops = False  # what it said to the last step
        self._n_heard = 0  # reports of the attempt
        self._heard: dict[str, int] = {}  # the last step of each phase

    def run(self, *, keeps_interrupted: bool) -> Any:
        """Return the fitted estimator; Ctrl-C stops training, or ends it with a model so far."""
        self._keeps_interrupted = keeps_interrupted
        in_vain = 0
        while True:
            check_running(self._client)
            placed = self._rows.place(is_again=bool(self.attempts))
            before = self.checkpoint
            try:
                return self._attempt(placed)
            except (LostWorkersError, PartitionsMovedError) as error:
                in_vain = in_vain + 1 if self.checkpoint == before else 0
                if in_vain == _MAX_IN_VAIN:
                    raise
                self.attempts.append(str(error))

    def _attempt(self, placed: list[Placement]) -> Any:
        addresses = [rank.address for rank in placed]
        self._n_heard, self._stops = 0, False
        ranks = WorkerGroup(self._client, addresses, self._heartbeat_timeout, waits=self._waits)
        works = [self._work(rank) for rank in placed]
        reason = "the client was interrupted"
        try:
            self._start(ranks, works)
            model = None
            while model is None:
                with ranks.kept():
                    self._follow(ranks)
                model = self._gathered(ranks)
            reason = "the client has what it needs"
        except LostWorkersError:
            forget_workers(self._client, ranks.silent)
            raise
        finally:
            ranks.end(reason)
        return model

    def _work(self, placed: Placement) -> ShardTask:
        stopped, elapsed = frozenset(self._stopped), time.monotonic() - self._began
        return ShardTask(self._params, placed, self._rows.form, self.checkpoint, stopped, elapsed)

    def _start(self, ranks: WorkerGroup, works: list[ShardTask]) -> None:
        try:
            ranks.start(works)
        except LostWorkersError:
            ranks.answering()
            raise

    # ------------------------------------------------------------------------------------- listening

    def _follow(self, ranks: WorkerGroup) -> None:
        """Hear of steps until rank 0 is done, or lost: then others know more."""
        is_over = False
        while not is_over:
            try:
                is_over = self._listen(ranks)
            except RanksError:
                return
            except KeyboardInterrupt:
                self._interrupt()

    def _listen(self, ranks: WorkerGroup) -> bool:
        """Hear of the steps that are new; return whether rank 0 is done."""
        news = ranks.ask(self._n_heard, asks_to_stop=self._stops or self._was_interrupted)
        for step in news.reports:
            self._n_heard += 1
            self._hear(step)
        if not self._waits and not news.is_done:
            time.sleep(_BETWEEN)
        return news.is_done

    def _hear(self, step: Step) -> None:
        """Tell of a step, once: what was broken off takes some a second time."""
        report = step.report
        if step.state is not None:
            self.checkpoint, self.n_iter = step.state, report.iteration
        place = (report.phase, report.iteration)
        if report.iteration > self._heard.get(report.phase, 0):
            self._heard[report.phase] = report.iteration
            if self._on_step(report, step.means):
                self._stopped.add(place)
        self._stops = place in self._stopped

    def _interrupt(self) -> None:
        """Stop after the step under way, if there is a model to keep and Ctrl-C is the first one."""
        if self._was_interrupted or not self._keeps_interrupted or not self._heard:
            raise KeyboardInterrupt
        self._was_interrupted = True

    def has_interrupted(self, stop_reason: str) -> bool:
        """Tell whether Ctrl-C, and no callback, ended the training that stopped for some reason."""
        by_callback = any(phase != "refit" for phase, _ in self._stopped)
        return self._was_interrupted and stop_reason == "callback" and not by_callback

    # ------------------------------------------------------------------------------ what has come of it

    def _gathered(self, ranks: WorkerGroup) -> Any:
        """Return the model, or keep the best state that a rank has and raise what went wrong.

        None if nothing did: all ranks answer, and none has ended.
        """
        answering = ranks.answering()
        answers = ranks.collect(summary_of, answering, _SETTLING)
        summaries: dict[int, Summary] = {
            rank: summary for rank, summary in answers.given.items() if summary is not None
        }
        if 0 in summaries:
            self.warned |= dict.fromkeys(summaries[0].warned)
        with_model = [rank for rank, summary in summaries.items() if summary.has_model]
        if with_model:
            return read_model(self._fetched(ranks, model_of, with_model))
        if not summaries and not answers.errors and len(answering) == len(ranks.addresses):
            return None
        self._keep_best(ranks, summaries)
        for summary in summaries.values():
            if isinstance(summary.error, PartitionsMovedError) or not isinstance(
                summary.error, RanksError
            ):
                raise summary.error or RuntimeError("a rank ended without a model")
        errors = {rank: s.error for rank, s in summaries.items() if s.error is not None}
        gone = set(range(len(ranks.addresses))) - {*answering}
        raise ranks.error_of(answers.errors | {rank: _lost(ranks, rank) for rank in gone} | errors)

    def _keep_best(self, ranks: WorkerGroup, summaries: dict[int, Summary]) -> None:
        """Keep the state after the most steps; all ranks began where the last attempt ended."""
        with_state = {rank: s.n_iter for rank, s in summaries.items() if s.has_checkpoint}
        if with_state:
            self.n_iter = max(with_state.values())
            best = [rank for rank, n_iter in with_state.items() if n_iter == self.n_iter]
            self.checkpoint = self._fetched(ranks, checkpoint_of, best)

    def _fetched(self, ranks: WorkerGroup, view: Callable[..., bytes], holders: list[int]) -> bytes:
        """Return something that several ranks have, of the first that answers."""
        errors: dict[int, BaseException] = {}
        for rank in holders:
            answers = ranks.collect(view, [rank], _SENDING)
            if answers.given:
                return answers.given[rank]  # type: ignore[no-any-return]
            errors |= answers.errors
        raise ranks.error_of(errors)


def check_running(client: Client) -> None:
    """Raise RuntimeError if the client is not connected with its scheduler."""
    if client.status != "running":
        raise RuntimeError(
            f"the client is {client.status}: it was closed during fit, or its cluster has gone; "
            "expected both to stay until fit returns"
        )


def _lost(ranks: WorkerGroup, rank: int) -> RankLostError:
    return RankLostError(f"worker {ranks.addresses[rank]} (rank {rank}) does not answer", rank)
