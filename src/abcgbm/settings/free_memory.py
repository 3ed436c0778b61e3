"""How much memory the machine has left for this process."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def shown_bytes(n_bytes: int) -> str:
    """Return a size as people read it."""
    size, unit = next((s, u) for s, u in _UNITS if n_bytes >= s or u == "KB")
    return f"{n_bytes / size:.1f} {unit}"


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return how much memory the process may still take, on Linux; None if nobody knows.

    What the system can give, swap included, and what the limits of the container and of the process
    itself leave.
    """
    known = [_system_bytes(root), _left_in_process(root), *map(_left_in_group, _groups(root))]
    return min((n for n in known if n is not None), default=None)


def _system_bytes(root: Path) -> int | None:
    fields = _fields(root / "proc/meminfo")
    if "MemAvailable:" not in fields:
        return None
    return 1024 * (fields["MemAvailable:"] + fields.get("SwapFree:", 0))


def _left_in_process(root: Path) -> int | None:
    """Return what the limit of addresses (`ulimit -v`) leaves; None without one."""
    if importlib.util.find_spec("resource") is None:  # as on Windows
        return None
    import resource  # noqa: PLC0415

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, limit - 1024 * _fields(root / "proc/self/status").get("VmSize:", 0))


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups that can bound this process's memory."""
    mounts = {"": root / "sys/fs/cgroup", "memory": root / "sys/fs/cgroup/memory"}
    found = list(mounts.values())
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for name in {"", "memory"} & {*controllers.split(",")}:
            own = mounts[name] / path.lstrip("/")
            found += [own, *(parent for parent in own.parents if mounts[name] in parent.parents)]
    return found


def _left_in_group(folder: Path) -> int | None:
    """Return the limit minus what is used, files in the cache not counted."""
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
    """Return the numbers of a file of lines such as `name 123`."""
    words = [line.split() for line in _lines(file)]
    return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdecimal()}


def _number(file: Path) -> int | None:
    words = " ".join(_lines(file)).split()
    return int(words[0]) if words and words[0].isdecimal() else None  # "max": no limit


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:  # another system, or not ours to read
        return []
