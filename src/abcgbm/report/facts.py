"""What a model is, how it was asked for, and how to make it again."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import sklearn

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.report.formats import literal, shown
from abcgbm.settings.version import VERSION

_CODE = """\
from abcgbm import {names}
from abcgbm.report import write_report

model = ABCBoostClassifier({given})
model.fit({data})
write_report(model, X_test, y_test, "report.html")"""


def parameters_of(model: ABCBoostClassifier) -> list[dict[str, Any]]:
    """Return each parameter: what was given, what was chosen for it, whether it is the default."""
    signature, chosen = inspect.signature(type(model)).parameters, model.chosen_
    return [
        {
            "name": name,
            "given": shown(value),
            "code": literal(value),
            "chosen": shown(chosen[name]) if name in chosen else "",
            "is_default": literal(value) == literal(signature[name].default),
        }
        for name, value in model.get_params(deep=False).items()
    ]


def code_of(model: ABCBoostClassifier, parameters: Sequence[dict[str, Any]]) -> str:
    """Return code that makes the model and the report, but for the data."""
    given = [f"\n    {p['name']}={p['code']}," for p in parameters if not p["is_default"]]
    names = ["ABCBoostClassifier", *_types_of_ours(model)]
    return _CODE.format(
        names=", ".join(names), given="".join(given) + "\n" if given else "", data=_data_of(model)
    )


def _data_of(model: ABCBoostClassifier) -> str:
    """Return the data of ``fit``. A model does not know where its validation rows came from."""
    if len(model.validation_loss_) == 0:
        return "X_train, y_train"
    if model.early_stopping is not True:
        return "X_train, y_train, X_val=X_val, y_val=y_val"
    return "X_train, y_train\n    # and X_val=X_val, y_val=y_val, if validation rows were given\n"


def _types_of_ours(model: ABCBoostClassifier) -> list[str]:
    """Return the types of parameters that are neither Python's nor a stranger's."""
    types = {type(value) for value in model.get_params(deep=False).values()}
    return sorted(of.__name__ for of in types if of.__module__.startswith("abcgbm."))


def versions() -> list[tuple[str, str]]:
    """Return the versions of what the numbers depend on."""
    return [
        ("abcgbm", VERSION),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("scikit-learn", sklearn.__version__),
    ]


def size_of(model: ABCBoostClassifier) -> dict[str, Any]:
    """Return how large a model is."""
    ensemble = model.model_.ensemble
    arrays = [np.asarray(getattr(ensemble, field.name)) for field in fields(ensemble)]
    return {
        "steps": ensemble.n_steps,
        "trees": len(ensemble.tree_class),
        "leaves": int(np.count_nonzero(ensemble.feature < 0)),
        "megabytes": sum(array.nbytes for array in arrays) / 1e6,
    }
