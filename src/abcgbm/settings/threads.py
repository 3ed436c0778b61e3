"""How many threads to use."""

import os
from functools import lru_cache

import joblib
from joblib.parallel import get_active_backend

from abcgbm.settings.checks import is_integer

_MOST = 1024  # threads; more than that is a slip


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs`` as scikit-learn means it.

    None: the CPUs this process may use (its affinity and the container's limit count), but one
    inside a joblib worker. Negative: counted back from all CPUs, -1 being all.
    """
    if n_jobs is None:
        return 1 if _in_joblib_worker() else _n_cpus()
    allowed = "expected None or an integer other than 0: so many threads, or -1 for all CPUs"
    if not is_integer(n_jobs):
        raise TypeError(f"n_jobs={n_jobs!r}; {allowed}")
    if n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}; {allowed}")
    if n_jobs < 0:
        return max(1, _n_cpus() + 1 + n_jobs)
    return min(int(n_jobs), _MOST)


def _n_cpus() -> int:
    """Return the CPUs this process may use; joblib is asked again if that may have changed.

    Its answer takes longer than the prediction of a row.
    """
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return _cpu_count(frozenset(affinity), os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache(maxsize=1)
def _cpu_count(_affinity: frozenset[int], _limit: str | None) -> int:
    return int(joblib.cpu_count())


def _in_joblib_worker() -> bool:
    backend, _ = get_active_backend()
    return bool(getattr(backend, "nesting_level", None))
