"""Content of the report, by section."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import sklearn

from abcgbm._version import VERSION
from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.data.labels import short_label, shown_label
from abcgbm.evaluation.class_metrics import Confusion, top_calibration
from abcgbm.evaluation.curves import StagedScores, base_class_runs, staged_scores
from abcgbm.evaluation.explanations import hardest_rows, shapley_summary
from abcgbm.evaluation.predictions import Predictions, largest
from abcgbm.model.history import History
from abcgbm.parameters.algorithms import algorithm_name
from abcgbm.parameters.objects import callback_list
from abcgbm.report import svg as charts
from abcgbm.report.formats import count, literal, shown
from abcgbm.report.svg import Chart, Series, confusion_matrix, heat_map

_CODE = """\
from abcgbm import {names}
from abcgbm.report import write_report

model = ABCBoostClassifier({given})
model.fit({data})
write_report(model, X_test, y_test, "report.html")"""


def parameters_of(model: ABCBoostClassifier) -> list[dict[str, Any]]:
    """Return each parameter: the given and the resolved value, and whether it is the default."""
    signature, resolved = inspect.signature(type(model)).parameters, model.resolved_params_
    return [
        {
            "name": name,
            "given": shown(value),
            "code": literal(value),
            "resolved": shown(resolved[name]) if name in resolved else "",
            "is_default": literal(value) == literal(signature[name].default),
        }
        for name, value in model.get_params(deep=False).items()
    ]


def code_of(model: ABCBoostClassifier, parameters: Sequence[dict[str, Any]]) -> str:
    """Return code that makes the model and the report, except for the data."""
    given = [f"\n    {p['name']}={p['code']}," for p in parameters if not p["is_default"]]
    names = ["ABCBoostClassifier", *_types_of_ours(model)]
    return _CODE.format(
        names=", ".join(names), given="".join(given) + "\n" if given else "", data=_data_of(model)
    )


def _data_of(model: ABCBoostClassifier) -> str:
    """Return the arguments of ``fit``."""
    if len(model.validation_loss_) == 0:
        return "X_train, y_train"
    if model.early_stopping is not True:
        return "X_train, y_train, X_val=X_val, y_val=y_val"
    # The model does not record whether its validation rows were given or held out.
    return "X_train, y_train\n    # and X_val=X_val, y_val=y_val, if validation rows were given\n"


def _types_of_ours(model: ABCBoostClassifier) -> list[str]:
    """Return the names of the types of this package among the parameters."""
    values = [*model.get_params(deep=False).values(), *callback_list(model.callbacks)]
    types = {type(value) for value in values}
    return sorted(of.__name__ for of in types if of.__module__.startswith("abcgbm."))


def versions() -> list[tuple[str, str]]:
    """Return the versions that the numbers of the report depend on."""
    return [
        ("abcgbm", VERSION),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("scikit-learn", sklearn.__version__),
    ]


def size_of(model: ABCBoostClassifier) -> dict[str, Any]:
    """Return the size of a model."""
    ensemble = model.model_.ensemble
    arrays = [np.asarray(getattr(ensemble, field.name)) for field in fields(ensemble)]
    return {
        "iterations": ensemble.n_iter,
        "trees": len(ensemble.tree_class),
        "leaves": int(np.count_nonzero(ensemble.feature < 0)),
        "megabytes": sum(array.nbytes for array in arrays) / 1e6,
    }


_MAX_FEATURES, _MAX_SWARMS, _MAX_PAIRS, _MAX_UNSEEN = 20, 10, 15, 10


def content_of(
    predictions: Predictions, title: str | None, command: str | Sequence[str] | None
) -> dict[str, Any]:
    """Return the content of the page by section."""
    model, parameters = predictions.model, parameters_of(predictions.model)
    commands = [command] if isinstance(command, str) else [*(command or ())]
    algorithm = algorithm_name(model.resolved_params_.get("algorithm", model.algorithm))
    return {
        "title": title
        or f"{algorithm}: {predictions.n_classes} classes, {count(len(predictions))} test rows",
        "algorithm": algorithm,
        "summary": _summary(predictions),
        "size": size_of(model),
        "curves": _curves(predictions),
        "bases": _bases(predictions),
        "classes": _classes(predictions),
        "importances": _importances(predictions),
        "shapley": _shapley(predictions),
        "calibration": _calibration(predictions),
        "hardest": hardest_rows(predictions),
        "parameters": parameters,
        "commands": commands,
        "code": code_of(model, parameters),
        "versions": versions(),
    }


def _summary(predictions: Predictions) -> dict[str, Any]:
    unseen = predictions.unseen
    return {
        "accuracy": predictions.accuracy,
        "errors": predictions.errors,
        "total": predictions.total,
        "log_loss": predictions.log_loss,
        "n_rows": len(predictions),
        "n_zero_weight": len(predictions.table) - len(predictions),
        "is_weighted": bool((predictions.weight != 1).any()),
        "n_classes": predictions.n_classes,
        "n_features": predictions.model.n_features_in_,
        "stop_reason": predictions.model.stop_reason_,
        "n_unseen": int(np.count_nonzero(~predictions.is_known)),
        "unseen": [shown_label(label) for label in unseen[:_MAX_UNSEEN]],
        "more_unseen": max(0, len(unseen) - _MAX_UNSEEN),
    }


# -------------------------------------------------------------------------------------- iterations


def _curves(predictions: Predictions) -> dict[str, Any]:
    staged, model = staged_scores(predictions), predictions.model
    rates = staged.errors / predictions.total
    first = min(1, len(rates) - 1)  # the error before the first iteration would dwarf all others
    error = Series("test error", staged.iteration[first:], rates[first:], rates[first:])
    return {
        "staged": staged,
        "loss": _loss_chart(staged, model.history_, model.refit_history_),
        "error": charts.curves(
            "Test error by iteration",
            "The error rate on the test rows after each iteration.",
            "error rate",
            [error],
            is_log=False,
        ),
        "readings": _readings(staged, predictions.total),
        "is_refit": model.refit_history_ is not None,
        "n_iter": model.n_iter_,
    }


def _loss_chart(staged: StagedScores, history: History, refitted: History | None) -> Chart:
    """Return a chart of losses relative to their first value, as they are means over different rows."""
    given = [("training loss", history.mean_train_loss())]
    if refitted is not None:
        given = [("training loss, refit", refitted.mean_train_loss()), *given]
    if len(history.validation_loss):
        given.append(("validation loss", history.mean_validation_loss()))
    series = [_relative(name, np.arange(len(loss)), loss) for name, loss in given]
    series.append(_relative("test loss", staged.iteration, staged.loss))
    text = "Losses by iteration, each divided by its value before the first iteration."
    return charts.curves(
        "Losses by iteration", text, "loss, relative to iteration 0", series, is_log=True
    )


def _relative(name: str, iteration: Any, loss: Floats) -> Series:
    return Series(name, iteration, loss / loss[0] if loss[0] > 0 else loss, loss)


def _readings(staged: StagedScores, total: float) -> list[dict[str, Any]]:
    """Return points of the test curve; the lowest ones are optimistic, as the test rows choose them."""
    last = len(staged.iteration) - 1
    points = [
        ("before the first iteration", 0, ""),
        ("last iteration: the model of this report", last, ""),
        ("fewest test errors", staged.lowest_errors, "chosen on the test rows"),
        ("lowest test loss", staged.lowest_loss, "chosen on the test rows"),
    ]
    return [
        {
            "name": name,
            "note": note,
            "iteration": int(staged.iteration[at]),
            "errors": float(staged.errors[at]),
            "rate": float(staged.errors[at]) / total,
            "loss": float(staged.loss[at]),
        }
        for name, at, note in points
    ]


def _bases(predictions: Predictions) -> dict[str, Any] | None:
    """Return the base class of each iteration, or None if there are none."""
    runs, n_iter = base_class_runs(predictions.model), predictions.model.model_.n_iter
    if not runs:
        return None
    labels = [shown_label(label) for label in predictions.labels]
    counts = [0] * len(labels)
    paths: list[list[str]] = [[] for _ in labels]
    for k, first, length in runs:
        counts[k] += length
        paths[k].append(f"M{first - 1} {k + 0.12:.2f}h{length}v.76h-{length}z")
    rows = [
        {"label": label, "path": "".join(path), "count": n}
        for label, path, n in zip(labels, paths, counts, strict=True)
    ]
    return {"n_iter": n_iter, "rows": rows, "shown": [short_label(label) for label in labels]}


# ----------------------------------------------------------------------------------------- classes


def _classes(predictions: Predictions) -> dict[str, Any]:
    found = Confusion.from_predictions(predictions)
    names = [*(shown_label(label) for label in found.labels), "not in the model"]
    columns = (found.support, found.predicted, found.precision, found.recall, found.f1)
    rows = zip(names, *(column.tolist() for column in columns), strict=False)
    fields = ("label", "support", "predicted", "precision", "recall", "f1")
    return {
        "matrix": confusion_matrix(found, predictions),
        "rows": [dict(zip(fields, row, strict=True)) for row in rows],
        "pairs": [
            {"label": names[r], "prediction": names[c], "count": float(found.counts[r, c])}
            for r, c in found.worst(_MAX_PAIRS)
        ],
    }


def _calibration(predictions: Predictions) -> dict[str, Any]:
    found = top_calibration(predictions)
    return {"expected_error": found.expected_error, **charts.reliability(found)}


# ---------------------------------------------------------------------------------------- features


def _bars(names: Sequence[str], values: Floats, features: Sequence[int]) -> list[dict[str, Any]]:
    top = float(values.max()) if len(features) else 1.0
    return [
        {"name": names[f], "value": float(values[f]), "part": round(values[f] / top, 4)}
        for f in features
    ]


def _importances(predictions: Predictions) -> dict[str, Any]:
    model, names = predictions.model, predictions.model.model_.feature_labels
    overall, by_class = model.feature_importances_, model.feature_importances_by_class_.T
    features = largest(overall, _MAX_FEATURES)
    shown = [names[f] for f in features]
    return {
        "bars": _bars(names, overall, features),
        "n_features": len(names),
        "matrix": heat_map("importances", shown, predictions.labels, by_class[features])
        if features
        else None,
    }


def _shapley(predictions: Predictions) -> dict[str, Any]:
    found = shapley_summary(predictions)
    names = found.explanation.feature_names
    features = largest(found.overall, _MAX_FEATURES)
    shown, by_class = [names[f] for f in features], found.by_class[features]
    swarmed = features[:_MAX_SWARMS]
    return {
        "n_rows": len(found.position),
        "is_sample": len(found.position) < len(predictions),
        "bars": _bars(names, found.overall, features),
        "matrix": heat_map("shapley", shown, predictions.labels, by_class) if features else None,
        "names": [names[f] for f in swarmed],
        "swarm": charts.swarm(found.of_prediction(predictions), found.explanation.data, swarmed),
    }
