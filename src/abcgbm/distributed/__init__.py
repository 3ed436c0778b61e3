"""Training on several machines, with Dask or MPI."""

from importlib import import_module
from typing import Any

from abcgbm.parameters.hints import export_hint

_MODULES = {"DaskABCBoostClassifier": "dask_estimator", "MPICommunicator": "mpi"}
__all__ = ["DaskABCBoostClassifier", "MPICommunicator"]


def __getattr__(name: str) -> Any:
    """Import a class on first use: dask or mpi4py may be missing."""
    if name not in _MODULES:
        hint = export_hint(name)
        if hint:  # an ImportError shows its text also in `from abcgbm.distributed import`
            raise ImportError(f"cannot import name {name!r} from 'abcgbm.distributed'{hint}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
