"""The same model on several machines: Dask and MPI."""

from importlib import import_module
from typing import Any

_WHERE = {"DaskABCBoostClassifier": "dask_estimator", "MPICommunicator": "mpi"}
__all__ = ["DaskABCBoostClassifier", "MPICommunicator"]


def __getattr__(name: str) -> Any:
    """Import what is asked for alone: each has packages of its own that may be missing."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
