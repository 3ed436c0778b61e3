"""Trace the functions of the package that a call runs, and the stack depth at calls of the C++ core.

Each trace runs in its own process, `python -m benchmarks.shape.trace fit`, so that work done once in a process
is included. Code that runs during imports does not count, nor do comprehensions, which have their own frame in
Python 3.11 only. Methods of the core are wrapped, because the interpreter reports no calls of them;
constructors of the core cannot be wrapped.
"""

import functools
import importlib
import inspect
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Self

import numpy as np
import pandas as pd

import abcgbm
from abcgbm import _core

PACKAGE = Path(abcgbm.__file__).parent
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
N_ITERATIONS = 3
N_ROWS = 2000
N_ROWS_OUT_OF_CORE = 50_000
N_ROWS_TO_READ = 200_000  # 25 MB; the first block of a file, 16 MB, is read again
MEMORY = "1MB"
BYTES_READ = Path("/proc/self/io")


class Trace:
    """Record the functions of a package that run in a `with` block, also in threads started there."""

    def __init__(self, package: Path = PACKAGE, core: Any = _core) -> None:
        self._prefix = f"{package}{os.sep}"
        self._core = core
        self._unwrapped: list[tuple[Any, str, Any]] = []
        self.functions: set[tuple[str, int, str]] = set()
        self.depth = 0

    def __enter__(self) -> Self:
        self._wrap_core()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        for owner, name, member in self._unwrapped:
            setattr(owner, name, member)

    def found(self) -> dict[str, int]:
        """Return the numbers of functions and files, and the stack depth at the core."""
        files = {file for file, _, _ in self.functions}
        return {"functions": len(self.functions), "files": len(files), "depth": self.depth}

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        key = (code.co_filename, code.co_firstlineno, code.co_name)
        if event != "call" or key in self.functions or not self._counts(code):
            return
        if not self._is_importing(frame):
            self.functions.add(key)

    def _counts(self, code: CodeType) -> bool:
        """Return whether code is a function of the package; class bodies have no fast locals."""
        return (
            code.co_filename.startswith(self._prefix)
            and bool(code.co_flags & inspect.CO_OPTIMIZED)
            and code.co_name not in COMPREHENSIONS
        )

    def _is_importing(self, frame: FrameType | None) -> bool:
        while frame is not None:
            code = frame.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(self._prefix):
                return True
            frame = frame.f_back
        return False

    def _wrap_core(self) -> None:
        classes = [of for of in vars(self._core).values() if inspect.isclass(of)]
        for owner in (self._core, *classes):
            for name, member in list(vars(owner).items()):
                if not name.startswith("__") and inspect.isroutine(member):
                    self._unwrapped.append((owner, name, member))
                    setattr(owner, name, self._measuring_depth(member))

    def _measuring_depth(self, member: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(member)
        def measured(*args: Any, **kwargs: Any) -> Any:
            self.depth = max(self.depth, self._frames_above(sys._getframe(1)))
            return member(*args, **kwargs)

        return measured

    def _frames_above(self, frame: FrameType | None) -> int:
        """Count the functions of the package on the stack."""
        n_frames = 0
        while frame is not None:
            n_frames += self._counts(frame.f_code)
            frame = frame.f_back
        return n_frames


# --------------------------------------------------------------------------------------------- tables


def drawn(n_rows: int) -> pd.DataFrame:
    """Return six numeric columns with a thousand values, one of strings, and labels `y`."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(rng.normal(size=1000), (n_rows, 6)), columns=list("abcdef"))
    X["g"] = rng.choice(np.array(["u", "v", "w"], object), n_rows)
    X["y"] = np.where(X["a"] > 0, "yes", np.where(X["g"] == "u", "no", "perhaps"))
    return X


# ---------------------------------------------------------------------------------------------- jobs


def fit() -> dict[str, Any]:
    """Trace a fit of a pandas table in memory."""
    table = drawn(N_ROWS)
    model = abcgbm.ABCBoostClassifier(max_iter=N_ITERATIONS)
    with Trace() as trace:
        model.fit(table.drop(columns="y"), table["y"])
    return trace.found()


def train() -> dict[str, Any]:
    """Trace the command `train` on a CSV file that is read in batches."""
    with TemporaryDirectory(prefix="shape-") as folder, Trace() as trace:
        train_from_file(Path(folder), N_ROWS_OUT_OF_CORE)
    return trace.found()


def train_from_file(folder: Path, n_rows: int) -> int:
    """Train on a CSV file with a number of rows; return its size."""
    file = folder / f"{n_rows}.csv"
    drawn(n_rows).to_csv(file, index=False)
    words = ["train", file, "--label", "y", "--model", folder / f"{n_rows}.abc", "--quiet"]
    words += ["--memory", MEMORY, "--set", f"max_iter={N_ITERATIONS}"]
    code = importlib.import_module("abcgbm.__main__").main([*map(str, words)])
    if code:
        raise RuntimeError(f"abcgbm train ended with {code}")
    return file.stat().st_size


def reads() -> dict[str, Any]:
    """Return how often `train` reads each byte of a CSV file out of core.

    A file twice as long needs twice the reads; what is read once, such as modules, is not
    among them. Linux alone counts the bytes that a process reads.
    """
    n_bytes, sizes = [], []
    with TemporaryDirectory(prefix="shape-") as folder:
        train_from_file(Path(folder), N_ROWS)  # imports everything
        for n_rows in (N_ROWS_TO_READ, 2 * N_ROWS_TO_READ):
            before = bytes_read()
            sizes.append(train_from_file(Path(folder), n_rows))
            n_bytes.append(bytes_read() - before)
    return {"reads": (n_bytes[1] - n_bytes[0]) / (sizes[1] - sizes[0])}


def bytes_read() -> int:
    (found,) = re.findall(r"rchar: (\d+)", BYTES_READ.read_text())
    return int(found)


def dask() -> dict[str, Any]:
    """Trace a fit on a Dask cluster of two workers that are threads of this process."""
    frames, distributed = map(importlib.import_module, ("dask.dataframe", "distributed"))
    parallel = importlib.import_module("abcgbm.distributed")
    model = parallel.DaskABCBoostClassifier(max_iter=N_ITERATIONS)
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    cluster = functools.partial(distributed.LocalCluster, 2, 1, processes=False, **quiet)
    with Trace() as trace, cluster() as workers, distributed.Client(workers):
        table = frames.from_pandas(drawn(N_ROWS), npartitions=4)
        model.fit(table.drop(columns="y"), table["y"])
    return trace.found()


JOBS: dict[str, Callable[[], dict[str, Any]]] = {
    "fit": fit,
    "train": train,
    "dask": dask,
    "reads": reads,
}

if __name__ == "__main__":
    print("\n" + json.dumps(JOBS[sys.argv[1]]()))
