"""The same model on several machines: Dask and MPI."""

from importlib import import_module
from typing import Any

from abcgbm.parameters.hints import export_hint

_WHERE = {"DaskABCBoostClassifier": "dask_estimator", "MPICommunicator": "mpi"}
__all__ = ["DaskABCBoostClassifier", "MPICommunicator"]


def __getattr__(name: str) -> Any:
    """Import what is asked for alone: each has packages of its own that may be missing."""
    if name not in _WHERE:
        said = export_hint(name)
        if said:  # an ImportError shows its text also in `from abcgbm.distributed import`
            raise ImportError(f"cannot import name {name!r} from 'abcgbm.distributed'{said}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
