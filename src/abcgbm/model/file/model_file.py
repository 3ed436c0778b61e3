"""Reading and writing of model files."""

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from abcgbm._version import VERSION
from abcgbm.data.files.atomic import write_whole
from abcgbm.errors import ModelFileError, as_model_file_errors
from abcgbm.model.array_checks import Shape, check_range, check_starts
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble
from abcgbm.model.ensemble_checks import LEAF, leaves_with_value, set_words
from abcgbm.model.file.archive import (
    DOCUMENT,
    Archive,
    Members,
    archive_of,
    digest_of_member,
    npy_of,
)
from abcgbm.model.file.document import (
    FORMAT,
    NEEDS,
    check_parameters,
    check_parameters_of_format_1,
    document_of,
    encoding_of_json,
    entry,
    history_of_format_1,
    history_of_json,
    json_of_encoding,
    json_of_history,
    text_of,
)
from abcgbm.model.file.format_1 import parameters_from_format_1
from abcgbm.model.file.json_values import JsonReader, to_json
from abcgbm.model.history import History
from abcgbm.model.model import Model

Arrays = dict[str, NDArray[Any]]
ReadArray = Callable[[str, DTypeLike, Shape], NDArray[Any]]

# Fields of `Ensemble` and the names of their arrays in a model file. The names on the right are part of
# the format and never change when a field is renamed. `left_set_size`, `n_features` and `n_classes`
# follow from other arrays and are not stored.
STORED_NAMES = {
    "feature": "feature",
    "weight": "weight",
    "left_set": "left_set",
    "leaf_value": "leaf_value",
    "gain_feature": "gain_feature",
    "class_gain": "class_gain",
    "gain_start": "gain_start",
    "tree_start": "tree_start",
    "tree_class": "tree_class",
    "tree_base": "tree_base",
    "tree_base_scale": "tree_base_scale",
    "iteration_start": "step_start",
    "init": "init",
    "threshold": "threshold",
    "left": "left",
    "missing_left": "missing_left",
    "gain": "gain",
    "value": "value",
}
_OF_SPLITS = {
    "threshold": np.float64,
    "left": np.int32,
    "missing_left": np.uint8,
    "gain": np.float64,
}


def arrays_of_trees(ensemble: Ensemble) -> Arrays:
    """Return the arrays to store: fields of splits for splits only, and values for leaves only."""
    arrays = {field: getattr(ensemble, field) for field in STORED_NAMES}
    is_split = ensemble.feature >= 0
    arrays |= {field: arrays[field][is_split] for field in _OF_SPLITS}
    arrays["value"] = ensemble.value[leaves_with_value(ensemble)]
    return {stored: arrays[field] for field, stored in STORED_NAMES.items()}


def trees_of_arrays(read_stored: ReadArray, n_codes: NDArray[np.int64], n_classes: int) -> Ensemble:
    """Return the trees, given ``read_stored(name, dtype, shape)``, which returns a checked array.

    ``n_codes`` is the number of codes of each feature: 0 for numeric ones.
    """

    def read(field: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        return read_stored(STORED_NAMES[field], dtype, shape)

    feature = read("feature", np.int32, (None,))
    check_range("feature", feature, -1, len(n_codes))
    by_node = _split_arrays(read, feature) | _set_arrays(read, feature, n_codes)
    by_node["weight"] = read("weight", np.float64, (len(feature),))
    by_tree = _tree_arrays(read, len(feature))
    is_multi_output = np.repeat(
        by_tree["tree_class"] == ALL_CLASSES, np.diff(by_tree["tree_start"])
    )
    iteration_start = read("iteration_start", np.int64, (None,))
    gain_feature = read("gain_feature", np.int32, (None,))
    return Ensemble(
        feature=feature,
        **by_node,
        **by_tree,
        **_leaf_arrays(read, feature < 0, is_multi_output, n_classes),
        iteration_start=iteration_start,
        gain_feature=gain_feature,
        class_gain=read("class_gain", np.float64, (len(gain_feature), n_classes)),
        gain_start=read("gain_start", np.int64, (len(iteration_start),)),
        init=read("init", np.float64, (n_classes,)),
        n_features=len(n_codes),
        n_classes=n_classes,
    )


def _split_arrays(read: ReadArray, feature: NDArray[np.int32]) -> Arrays:
    is_split = feature >= 0
    n_splits = int(is_split.sum())
    arrays: Arrays = {}
    for name, dtype in _OF_SPLITS.items():
        arrays[name] = np.full(len(feature), LEAF[name], dtype=dtype)
        arrays[name][is_split] = read(name, dtype, (n_splits,))
    return arrays


def _set_arrays(read: ReadArray, feature: NDArray[np.int32], n_codes: NDArray[np.int64]) -> Arrays:
    # The appended 0 is for leaves, whose feature is -1.
    n_words = np.append(set_words(n_codes), 0)[feature].astype(np.int32)
    n_total = int(n_words.sum(dtype=np.int64))
    return {"left_set_size": n_words, "left_set": read("left_set", np.uint64, (n_total,))}


def _tree_arrays(read: ReadArray, n_nodes: int) -> Arrays:
    tree_start = read("tree_start", np.int64, (None,))
    check_starts("tree_start", tree_start, n_nodes)
    n_trees = len(tree_start) - 1
    return {
        "tree_start": tree_start,
        "tree_class": read("tree_class", np.int32, (n_trees,)),
        "tree_base": read("tree_base", np.int32, (n_trees,)),
        "tree_base_scale": read("tree_base_scale", np.float64, (n_trees,)),
    }


def _leaf_arrays(
    read: ReadArray, is_leaf: NDArray[np.bool_], is_multi_output: NDArray[np.bool_], n_classes: int
) -> Arrays:
    has_value = is_leaf & ~is_multi_output
    value = np.zeros(len(is_leaf))
    value[has_value] = read("value", np.float64, (int(has_value.sum()),))
    n_multi_output = int((is_leaf & is_multi_output).sum())
    return {
        "value": value,
        "leaf_value": read("leaf_value", np.float32, (n_multi_output, n_classes)),
    }


Target = str | os.PathLike[str] | IO[bytes]
# Fields of `History` and the names of their arrays in a model file; the names on the right never change.
STORED_NAMES_OF_HISTORY = {
    "train_loss": "train_loss",
    "class_losses": "class_losses",
    "base_classes": "base_class",
    "search_losses": "search_losses",
    "validation_loss": "validation_loss",
    "validation_score": "validation_score",
}


@dataclass(frozen=True)
class ModelContents:
    """Content of a model file or checkpoint.

    Attributes
    ----------
    model : Model
        The fitted model. In a checkpoint it includes the iterations after the best one.
    history : History
        History of the training.
    refit_history : History or None
        History of the second training, if ``refit`` trained one.
    parameters : dict
        Parameters of the estimator; missing ones have their defaults.
    checkpoint : mapping or None
        In a checkpoint, all else that is needed to resume training, as JSON values.
    refit_model : Model or None
        In a checkpoint during ``refit``, the trees of the second training so far.
    format : int
        Format of the file.
    written_by : str
        Version of abcgbm that wrote the file.
    """

    model: Model
    history: History
    refit_history: History | None
    parameters: dict[str, Any]
    checkpoint: Mapping[str, Any] | None = None
    refit_model: Model | None = None
    format: int = FORMAT
    written_by: str = VERSION

    def check(self) -> None:
        """Raise ValueError unless all parts are valid and consistent."""
        for part in (self.model, self.history, self.refit_model, self.refit_history):
            if part is not None:
                part.check()
        check_parameters(self.parameters)
        for history in (self.history, self.refit_history):
            if history is not None:
                check_parameters(history.chosen)  # a second fit may take them from refit_params_
        best, n_iter = (self.refit_history or self.history).best_iteration, self.model.n_iter
        if self.checkpoint is None and best != n_iter:
            raise ValueError(f"a model of {n_iter} iterations; its history has {best}")
        if self.checkpoint is not None and self.history.best_iteration > n_iter:
            raise ValueError(
                f"a checkpoint of {n_iter} iterations; its best one is {self.history.best_iteration}"
            )

    def fitted(self) -> tuple[Model, History, History | None]:
        """Return the fitted model and its histories; for a checkpoint the model of the best iteration."""
        if self.checkpoint is None:
            return self.model, self.history, self.refit_history
        return self.model.first_iterations(self.history.best_iteration), self.history, None


def save(saved: ModelContents, target: Target) -> None:
    """Write a model file to a path, atomically, or to a binary file."""
    if isinstance(target, str | os.PathLike):
        write_whole(target, _content_of(saved))
        return
    _check_stream(target, "write")
    target.write(_content_of(saved))


def load(source: Target) -> ModelContents:
    """Read a model file; raise ``ModelFileError`` if it is invalid."""
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file, _named(Path(source)):
            return _saved_of(file)
    _check_stream(source, "read")
    return _saved_of(io.BytesIO(source.read()))


def checkpoint_state(path: Path) -> Mapping[str, Any] | None:
    """Return ``ModelContents.checkpoint`` of a model file, without reading its arrays."""
    with path.open("rb") as file, _named(path):
        document = document_of(Archive(file).read(DOCUMENT))
        state: Mapping[str, Any] | None = entry(document, "checkpoint", dict, type(None))
    return state


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the path to the messages of errors."""
    if not path.is_file():  # reading a device or a pipe might never end
        raise ModelFileError(f"{path} is not a regular file")
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _check_stream(stream: Any, method: str) -> None:
    """Raise TypeError unless a stream is binary and has the method."""
    if not hasattr(stream, method) or isinstance(stream, io.TextIOBase):
        raise TypeError(
            f"{type(stream).__name__} given; expected a path, or a binary file with the method {method}"
        )


# ------------------------------------------------------------------------------------------ writing


def _content_of(saved: ModelContents) -> bytes:
    saved.check()  # never write a file that cannot be read
    members = {name: npy_of(array) for name, array in _arrays_of(saved).items()}
    document = {
        "format": FORMAT,
        "written_by": VERSION,
        "needs": NEEDS,
        "classes": to_json(saved.model.classes),
        "recenter": saved.model.recenter,
        "features": json_of_encoding(saved.model.encoding),
        "parameters": {name: to_json(value) for name, value in saved.parameters.items()},
        "history": json_of_history(saved.history),
        "refit_history": json_of_history(saved.refit_history),
        "checkpoint": saved.checkpoint,
    }
    if saved.refit_model is not None:  # the second training may have other categories
        document["refit_features"] = json_of_encoding(saved.refit_model.encoding)
    document["digests"] = {name: digest_of_member(content) for name, content in members.items()}
    return archive_of({DOCUMENT: text_of(document)} | members)


def _arrays_of(saved: ModelContents) -> Arrays:
    """Return the arrays of all members in order."""
    arrays = _arrays_of_model(saved.model, "")
    if saved.refit_model is not None:
        arrays |= _arrays_of_model(saved.refit_model, "refit_")
    for part in ("history", "refit_history"):
        history = getattr(saved, part)
        if history is not None:
            arrays |= {
                f"{part}/{stored}": getattr(history, field)
                for field, stored in STORED_NAMES_OF_HISTORY.items()
            }
    return {f"{name}.npy": array for name, array in arrays.items()}


def _arrays_of_model(model: Model, prefix: str) -> Arrays:
    kinds = model.encoding.schema.is_categorical.astype(np.uint8)
    trees = arrays_of_trees(model.ensemble)
    return {f"{prefix}features/is_categorical": kinds} | {
        f"{prefix}trees/{name}": array for name, array in trees.items()
    }


# ------------------------------------------------------------------------------------------ reading


def _saved_of(file: IO[bytes]) -> ModelContents:
    archive = Archive(file)
    document = document_of(archive.read(DOCUMENT))
    members = Members(archive, entry(document, "digests", dict))
    errors = (ValueError, TypeError, OverflowError, RecursionError)
    with as_model_file_errors("not a valid model", *errors):
        saved = _read(document, members)
        saved.check()
    members.check_all_read()
    return saved


def _read(document: dict[str, Any], members: Members) -> ModelContents:
    format_ = document["format"]
    reader = JsonReader(format_)
    model = _read_model(document, members, reader, "")
    stored = entry(document, "parameters", dict)
    given = parameters = {name: reader.value(value) for name, value in stored.items()}
    if format_ == 1:
        check_parameters_of_format_1(given)
        parameters = parameters_from_format_1(given)

    def read_history(name: str) -> History | None:
        summary = entry(document, name, dict, type(None))
        if summary is None:
            return None
        arrays = _history_arrays(name, entry(summary, "n_steps", int), members, len(model.classes))
        if format_ == 1:
            baseline = model.ensemble.init
            return history_of_format_1(summary, arrays, reader, given, baseline)
        return history_of_json(summary, arrays, reader)

    has_refit = "refit_features" in document
    refit_model = _read_model(document, members, reader, "refit_") if has_refit else None
    first, second = read_history("history"), read_history("refit_history")
    if first is None:
        raise ModelFileError("model.json has no history")
    return ModelContents(
        model=model,
        history=first,
        refit_history=second,
        parameters=parameters,
        checkpoint=entry(document, "checkpoint", dict, type(None)),
        refit_model=refit_model,
        format=format_,
        written_by=entry(document, "written_by", str),
    )


def _read_model(
    document: dict[str, Any], members: Members, reader: JsonReader, prefix: str
) -> Model:
    kinds = members.array(f"{prefix}features/is_categorical", np.uint8, (None,))
    encoding = encoding_of_json(entry(document, f"{prefix}features", dict), kinds != 0, reader)
    classes = reader.value(entry(document, "classes", dict))

    def read(name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        return members.array(f"{prefix}trees/{name}", dtype, shape)

    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise ModelFileError("model.json: 'classes' is no array of labels")
    trees = trees_of_arrays(read, encoding.n_codes(), len(classes))
    return Model(trees, encoding, classes, entry(document, "recenter", bool))


def _history_arrays(name: str, n_iter: int, members: Members, n_classes: int) -> Arrays:
    shapes: dict[str, Shape] = {
        "train_loss": (n_iter + 1,),
        "class_losses": (n_iter + 1, n_classes),
        "base_classes": (n_iter,),
        "search_losses": (n_iter, None),
        "validation_loss": (None,),
        "validation_score": (None,),
    }
    return {
        field: members.array(
            f"{name}/{STORED_NAMES_OF_HISTORY[field]}",
            np.int32 if field == "base_classes" else float,
            shape,
        )
        for field, shape in shapes.items()
    }
