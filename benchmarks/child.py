"""Run a measurement in a child process, and read its last line."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

Result = dict[str, Any]


class ChildFailedError(Exception):
    """The process failed, or was killed after a timeout."""


def run(command: list[str], n_threads: int, give_up_seconds: float | None = None) -> Result:
    """Start the process; its last line is the result as JSON."""
    threads = {"OMP_NUM_THREADS": str(n_threads)}  # HistGradientBoosting has no parameter for it
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            timeout=give_up_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildFailedError(f"took more than {give_up_seconds:g} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ChildFailedError(last)
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result
