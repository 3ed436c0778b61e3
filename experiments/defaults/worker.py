"""Worker processes, one for each Python; a timeout of a cell kills its process."""

import json
import os
import subprocess
from pathlib import Path
from threading import Timer
from typing import Self

from experiments.defaults.measure import Job, Line

ROOT = Path(__file__).parents[2]


class Workers:
    """Run jobs in processes that are started on demand and reused."""

    def __init__(self, give_up_seconds: float) -> None:
        self._give_up_seconds = give_up_seconds
        self._running: dict[str, subprocess.Popen[str]] = {}

    def ask(self, python: str, job: Job) -> Line:
        """Run a job in the process of a Python, with a timeout in seconds of wall time."""
        process = self._process(python)
        timer = Timer(self._give_up_seconds, process.kill)
        timer.start()
        try:
            print(json.dumps(job._asdict()), file=process.stdin, flush=True)
            answer = process.stdout.readline()  # type: ignore[union-attr]
        except BrokenPipeError:
            answer = ""
        finally:
            was_in_time = timer.is_alive()
            timer.cancel()
        if answer:
            return dict(json.loads(answer))
        return {"reason": self._ended(python, was_in_time=was_in_time)}

    def _process(self, python: str) -> subprocess.Popen[str]:
        if python not in self._running:
            self._running[python] = _start(python)
        return self._running[python]

    def _ended(self, python: str, *, was_in_time: bool) -> str:
        with self._running.pop(python) as process:
            process.kill()
        if was_in_time:
            return f"the process ended with code {process.returncode}"
        return f"took more than {self._give_up_seconds:g} s"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            with process:
                process.kill()


def _start(python: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-W", "ignore", "-m", "experiments.defaults.measure"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # HistGradientBoosting has no parameter for it
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
