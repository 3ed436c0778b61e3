"""Other packages on files larger than memory, one module for each."""

import sys
import time

N_CLASSES, LEAVES, RATE, N_THREADS = 5, 64, 0.1, 2


class IterationTimes:
    """Times at which a training started its first iteration and finished each."""

    def __init__(self) -> None:
        self._began = self._now()
        self._at: list[tuple[float, float]] = []

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    def end_iteration(self) -> None:
        """Record the end of an iteration."""
        self._at.append(self._now())
        self.report(f"iteration {len(self._at)}")

    def report(self, what: str) -> None:
        """Print progress to standard error."""
        cpu, seconds = (now - began for now, began in zip(self._now(), self._began, strict=True))
        print(f"{what}: {cpu:.1f} s of CPU, {seconds:.1f} s", file=sys.stderr, flush=True)

    def summary(self) -> dict[str, float]:
        """Return CPU seconds and seconds of an iteration after the first, and of the preparation."""
        found: dict[str, float] = {}
        for unit, clock in (("cpu", 0), ("seconds", 1)):
            at = [of[clock] for of in self._at]
            step = (at[-1] - at[0]) / (len(at) - 1)
            found[f"step_{unit}"] = round(step, 1)
            found[f"before_{unit}"] = round(at[0] - self._began[clock] - step, 1)
        return found
