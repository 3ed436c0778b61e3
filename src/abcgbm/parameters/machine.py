"""CPUs and free memory of this machine."""

from __future__ import annotations

import importlib.util
import os
from functools import lru_cache
from pathlib import Path

import joblib
from joblib.parallel import get_active_backend

from abcgbm.parameters.validators import is_integer

_MAX_THREADS = 1024  # a larger number is a mistake


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, with scikit-learn's meaning.

    None: the CPUs this process may use, by its affinity and the container's limit, but one in a
    joblib worker. Negative: counted back from all CPUs, where -1 is all.
    """
    if n_jobs is None:
        return 1 if _in_joblib_worker() else _n_cpus()
    allowed = "expected None or an integer other than 0: a number of threads, or -1 for all CPUs"
    if not is_integer(n_jobs):
        raise TypeError(f"n_jobs={n_jobs!r}; {allowed}")
    if n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}; {allowed}")
    if n_jobs < 0:
        return max(1, _n_cpus() + 1 + n_jobs)
    return min(int(n_jobs), _MAX_THREADS)


def _n_cpus() -> int:
    """Return the number of CPUs this process may use.

    joblib's answer is cached until affinity or environment change, since it takes longer than the
    prediction of a row.
    """
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return _cpu_count(frozenset(affinity), os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache(maxsize=1)
def _cpu_count(_affinity: frozenset[int], _limit: str | None) -> int:
    return int(joblib.cpu_count())


def _in_joblib_worker() -> bool:
    backend, _ = get_active_backend()
    return bool(getattr(backend, "nesting_level", None))


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that the process can still allocate; None if unknown (not Linux).

    This is the smallest of three: free memory and swap of the system, and what the limits of the
    container and of the process leave.
    """
    known = [
        _system_bytes(root),
        _left_in_process(root),
        *map(_left_in_group, _control_groups(root)),
    ]
    return min((n for n in known if n is not None), default=None)


def _system_bytes(root: Path) -> int | None:
    fields = _fields(root / "proc/meminfo")
    if "MemAvailable:" not in fields:
        return None
    return 1024 * (fields["MemAvailable:"] + fields.get("SwapFree:", 0))


def _left_in_process(root: Path) -> int | None:
    """Return what the limit on the address space (`ulimit -v`) leaves; None without one."""
    if importlib.util.find_spec("resource") is None:  # as on Windows
        return None
    import resource  # noqa: PLC0415

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, limit - 1024 * _fields(root / "proc/self/status").get("VmSize:", 0))


def _control_groups(root: Path) -> list[Path]:
    """Return the folders of the control groups that may limit this process's memory."""
    mounts = {"": root / "sys/fs/cgroup", "memory": root / "sys/fs/cgroup/memory"}
    found = list(mounts.values())
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for name in {"", "memory"} & {*controllers.split(",")}:
            group = mounts[name] / path.lstrip("/")
            found += [group, *(p for p in group.parents if mounts[name] in p.parents)]
    return found


def _left_in_group(folder: Path) -> int | None:
    """Return the limit minus the memory in use, except cached files."""
    stat = _fields(folder / "memory.stat")
    cache = stat.get("inactive_file", 0) + stat.get("active_file", 0)
    for limit_name, used_name in [
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ]:
        limit, used = _number(folder / limit_name), _number(folder / used_name)
        if limit is not None and used is not None:
            return max(0, limit - used + cache)
    return None


def _fields(file: Path) -> dict[str, int]:
    """Return the numbers in a file with lines such as `name 123`."""
    words = [line.split() for line in _lines(file)]
    return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdecimal()}


def _number(file: Path) -> int | None:
    words = " ".join(_lines(file)).split()
    return int(words[0]) if words and words[0].isdecimal() else None  # "max": no limit


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:  # not Linux, or no permission
        return []
