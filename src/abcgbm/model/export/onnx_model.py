"""Export to ONNX."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.categories import CategoryMap
from abcgbm.model.export.onnx_trees import search_tree, tree_attributes
from abcgbm.model.model import Model
from abcgbm.model.trees import trees_or_nothing

ML_DOMAIN = "ai.onnx.ml"
VERSIONS = {"": 13, ML_DOMAIN: 3}  # oldest operator sets that have all operators used here


class Node(NamedTuple):
    """Node of an ONNX graph, with one output."""

    op: str
    inputs: list[str]
    output: str
    domain: str
    attributes: dict[str, Any]


class Graph:
    """Builder of an ONNX graph; ``new_name`` returns unique names for intermediate values."""

    def __init__(self, new_name: Callable[[str], str]) -> None:
        self.nodes: list[Node] = []
        self._new_name = new_name

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        self.nodes.append(Node(op, [*inputs], output or self._new_name(op), "", attributes))
        return self.nodes[-1].output

    def add_ml(self, op: str, value: str, **attributes: Any) -> str:
        """Add a node of the domain ai.onnx.ml; return the name of its output."""
        self.nodes.append(Node(op, [value], self._new_name(op), ML_DOMAIN, attributes))
        return self.nodes[-1].output

    def constant(self, values: NDArray[Any]) -> str:
        """Add a constant array."""
        return self.add("Constant", value=_tensor(values))

    def cast(self, value: str, dtype: Any, output: str | None = None) -> str:
        """Add a cast to a NumPy type."""
        from onnx import helper

        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, output=output, to=to)


def _tensor(values: NDArray[Any]) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(values)


def has_one_input(model: Model) -> bool:
    """Whether one numeric matrix can hold all columns, as no category is a string."""
    return not any(categories.has_strings for categories in model.encoding.categories.values())


def add_model(
    graph: Graph, model: Model, inputs: list[str], outputs: tuple[str, str], dtype: Any
) -> None:
    """Add all nodes from the inputs to labels and probabilities.

    Inputs are a matrix, or one column per feature. ``dtype`` is the type of the probabilities.
    """
    scores = _add_scores(graph, model, *_add_values(graph, model, inputs))
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels_of(model)), best, output=outputs[0], axis=0)
    graph.cast(graph.add("Softmax", scores, axis=1), dtype, output=outputs[1])


def _add_values(graph: Graph, model: Model, inputs: list[str]) -> tuple[str, NDArray[np.intp]]:
    """Add nodes that encode the inputs as one matrix of doubles; return it and each feature's column.

    Numeric features come first, then the codes of categorical ones. Unused features can be left out.
    """
    categories, used = model.encoding.categories, model.ensemble.used_features.tolist()
    place = np.arange(model.ensemble.n_features)
    if has_one_input(model):
        parts = [graph.cast(inputs[0], np.float64)]
        width = len(place)
        codes = {
            f: _add_codes_of_numbers(graph, categories[f], parts[0], f)
            for f in used
            if f in categories
        }
    else:
        used = used or [next(f for f, of in categories.items() if of.has_strings)]
        numbers = [f for f in used if f not in categories]
        parts = [graph.cast(inputs[f], np.float64) for f in numbers]
        width = len(numbers)
        place[numbers] = np.arange(width)
        codes = {f: _add_codes(graph, categories[f], inputs[f]) for f in used if f in categories}
    place[[*codes]] = np.arange(width, width + len(codes))
    return graph.add("Concat", *parts, *codes.values(), axis=1), place


def _add_codes(graph: Graph, categories: CategoryMap, column: str) -> str:
    """Add nodes that map categories to codes; unknown and missing ones get code ``n_codes``."""
    if not categories.has_strings:
        return _add_codes_of_numbers(graph, categories, graph.cast(column, np.float64), 0)
    codes = graph.add_ml(
        "LabelEncoder",
        column,
        keys_strings=[*categories.code_of],
        values_floats=[float(code) for code in categories.code_of.values()],
        default_float=float(categories.n_codes),
    )
    return graph.cast(codes, np.float64)


def _add_codes_of_numbers(graph: Graph, categories: CategoryMap, matrix: str, column: int) -> str:
    """Add nodes that map numeric categories, in a column of a matrix of doubles, to codes."""
    # LabelEncoder takes float32 keys only, except in recent operator sets; a tree compares doubles.
    place = np.array([column])
    return _add_sums(graph, matrix, tree_attributes([search_tree(categories)], place, {}, 1), 1)


def _add_scores(graph: Graph, model: Model, values: str, place: NDArray[np.intp]) -> str:
    """Add the trees and the baseline."""
    n_classes = model.ensemble.n_classes
    n_codes = {
        feature: categories.n_codes for feature, categories in model.encoding.categories.items()
    }
    attributes = tree_attributes(trees_or_nothing(model), place, n_codes, n_classes)
    sums = _add_sums(graph, values, attributes, n_classes)
    return graph.add("Add", sums, graph.constant(model.ensemble.init))


def _add_sums(graph: Graph, values: str, attributes: dict[str, Any], n_sums: int) -> str:
    """Add trees, and nodes that add up the two parts of their sums."""
    tensors = {name: _tensor(v) for name, v in attributes.items() if isinstance(v, np.ndarray)}
    parts = graph.add_ml("TreeEnsembleRegressor", values, **(attributes | tensors))
    shape = graph.constant(
        np.array([0, 2, n_sums])
    )  # 0: the number of rows of the input, which can be 0
    pairs = graph.add("Reshape", graph.cast(parts, np.float64), shape)
    return graph.add("ReduceSum", pairs, graph.constant(np.array([1])), keepdims=0)


def labels_of(model: Model) -> NDArray[Any]:
    """Return the labels as strings or 64-bit integers, the types of labels in ONNX."""
    labels = model.labels
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object)
    try:
        if all(isinstance(label, int | float) for label in labels):
            return np.array([int(label) for label in labels], dtype=np.int64)
    except OverflowError:
        pass
    raise ValueError(
        f"classes_ has labels such as {labels[0]!r}; expected strings or 64-bit integers (booleans and "
        "integral floats are exported as integers), as ONNX has no other labels"
    )


LABEL, PROBABILITIES, MATRIX = "label", "probabilities", "X"
_IR_VERSION = 8  # read by all runtimes that support these operator sets
_Values = dict[str, tuple[Any, list[int | None]]]  # type and shape by name


def onnx_model(model: Model) -> Any:
    """Return the model as an ``onnx.ModelProto``."""
    helper = _import_for_onnx("onnx.helper")
    _check_unknown(model)
    _warn_of_categories(model)
    inputs = _inputs(model)
    numbers = itertools.count()
    graph = Graph(lambda op: f"abcgbm/{op}_{next(numbers)}")
    add_model(graph, model, [*inputs], (LABEL, PROBABILITIES), np.float32)
    n_classes = len(model.classes)
    outputs: _Values = {
        LABEL: (labels_of(model).dtype, [None]),
        PROBABILITIES: (np.float32, [None, n_classes]),
    }
    nodes = [
        helper.make_node(node.op, node.inputs, [node.output], domain=node.domain, **node.attributes)
        for node in graph.nodes
    ]
    whole = helper.make_graph(nodes, "abcgbm", _values(inputs), _values(outputs))
    opsets = [helper.make_opsetid(*of) for of in VERSIONS.items()]
    return helper.make_model(
        whole, producer_name="abcgbm", opset_imports=opsets, ir_version=_IR_VERSION
    )


def register_in_skl2onnx(estimator: type) -> None:
    """Register converters for an estimator whose ``model_`` is a `Model`."""
    _import_for_onnx("skl2onnx").update_registered_converter(
        estimator,
        f"Abcgbm{estimator.__name__}",
        _set_output_types,
        _convert,
        options={"zipmap": [True, False, "columns"], "nocl": [False]},
    )


def _set_output_types(operator: Any) -> None:
    """Set the types of the outputs; probabilities are double if the input is."""
    from skl2onnx.common import data_types

    model, n_rows = operator.raw_operator.model_, operator.inputs[0].get_first_dimension()
    is_string = labels_of(model).dtype == object
    label = data_types.StringTensorType if is_string else data_types.Int64TensorType
    is_double = isinstance(operator.inputs[0].type, data_types.DoubleTensorType)
    proba = data_types.DoubleTensorType if is_double else data_types.FloatTensorType
    operator.outputs[0].type = label([n_rows])
    operator.outputs[1].type = proba([n_rows, len(model.classes)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Convert the classifier of a pipeline, whose input is one matrix."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    model: Model = operator.raw_operator.model_
    _check_unknown(model)
    if not has_one_input(model):
        raise ValueError(
            "the classifier of the pipeline has categories that are strings; expected numbers, such as "
            "those of an OrdinalEncoder, or to_onnx() of the classifier alone"
        )
    if isinstance(operator.inputs[0].type, FloatTensorType):
        _warn_of_categories(model)
    graph = Graph(lambda op: scope.get_unique_variable_name(f"abcgbm_{op}"))
    label, proba = operator.outputs
    dtype = np.float64 if isinstance(proba.type, DoubleTensorType) else np.float32
    outputs = (label.full_name, proba.full_name)
    add_model(graph, model, [operator.inputs[0].full_name], outputs, dtype)
    for node in graph.nodes:
        container.add_node(
            node.op,
            node.inputs,
            [node.output],
            op_domain=node.domain,
            op_version=VERSIONS[node.domain],
            name=scope.get_unique_operator_name(f"abcgbm_{node.op}"),
            **node.attributes,
        )


def _import_for_onnx(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'export to ONNX requires {name}: pip install "abcgbm[onnx]"') from error


def _check_unknown(model: Model) -> None:
    if model.encoding.categories and model.encoding.handle_unknown == "error":
        raise ValueError(
            "handle_unknown='error'; expected a model fitted with handle_unknown='missing', because ONNX "
            "cannot raise errors for unknown categories"
        )


def _warn_of_categories(model: Model) -> None:
    """Warn of numeric categories that float32 inputs cannot represent."""
    for categories in model.encoding.categories.values():
        if categories.has_strings:
            continue
        numbers = np.array([*categories.code_of], dtype=np.float64)
        with np.errstate(over="ignore"):  # infinity, so not the category
            inexact = numbers[numbers.astype(np.float32) != numbers]
        if len(inexact):
            warnings.warn(
                f"{categories.column} has the category {inexact.tolist()[0]!r}, which is no 32-bit float as the inputs "
                "of ONNX are, so the exported model treats it as unknown; expected categories that are "
                "strings or 32-bit floats",
                UserWarning,
                stacklevel=4,
            )


def _inputs(model: Model) -> _Values:
    """Return type and shape of each input by name."""
    names, categories = model.feature_labels, model.encoding.categories
    if has_one_input(model):
        return {MATRIX: (np.float32, [None, len(names)])}
    reserved = {"", LABEL, PROBABILITIES} & {*names}
    if reserved:
        raise ValueError(
            f"X has a column named {min(reserved)!r}; expected names that are neither empty nor those "
            f"of the outputs, {LABEL!r} and {PROBABILITIES!r}"
        )
    is_string = [
        feature in categories and categories[feature].has_strings for feature in range(len(names))
    ]
    return {
        name: (object if strings else np.float32, [None, 1])
        for name, strings in zip(names, is_string, strict=True)
    }


def _values(of: _Values) -> list[Any]:
    from onnx import helper

    return [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
        for name, (kind, shape) in of.items()
    ]
