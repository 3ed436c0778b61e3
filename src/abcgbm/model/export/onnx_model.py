"""ONNX: a whole model, or a step of a scikit-learn pipeline (the extra `onnx`)."""

from __future__ import annotations

import importlib
import itertools
import warnings
from typing import Any

import numpy as np

from abcgbm.model.export.onnx_graph import (
    VERSIONS,
    Graph,
    add_model,
    has_one_input,
    labels_of,
)
from abcgbm.model.model import Model

LABEL, PROBABILITIES, MATRIX = "label", "probabilities", "X"
_IR_VERSION = 8  # which runtimes read that know these versions of the operators
_Values = dict[str, tuple[Any, list[int | None]]]  # type and shape by name


def onnx_model(model: Model) -> Any:
    """Return the model as an ``onnx.ModelProto``."""
    helper = _import_for_onnx("onnx.helper")
    _check_unknown(model)
    _warn_of_levels(model)
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
    """Tell skl2onnx how the estimator is converted: `fit` has left a Model in its ``model_``."""
    _import_for_onnx("skl2onnx").update_registered_converter(
        estimator,
        f"Abcgbm{estimator.__name__}",
        _set_output_types,
        _convert,
        options={"zipmap": [True, False, "columns"], "nocl": [False]},
    )


def _set_output_types(operator: Any) -> None:
    """Tell skl2onnx what comes out; probabilities are double where the input is."""
    from skl2onnx.common import data_types

    model, n_rows = operator.raw_operator.model_, operator.inputs[0].get_first_dimension()
    is_string = labels_of(model).dtype == object
    label = data_types.StringTensorType if is_string else data_types.Int64TensorType
    is_double = isinstance(operator.inputs[0].type, data_types.DoubleTensorType)
    proba = data_types.DoubleTensorType if is_double else data_types.FloatTensorType
    operator.outputs[0].type = label([n_rows])
    operator.outputs[1].type = proba([n_rows, len(model.classes)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Convert a step of a pipeline, whose input is one matrix."""
    from skl2onnx.common.data_types import DoubleTensorType

    model: Model = operator.raw_operator.model_
    _check_unknown(model)
    if not has_one_input(model):
        raise ValueError(
            "categories with strings as levels cannot be handed on inside of a pipeline; expected "
            "numbers there, such as those of an OrdinalEncoder, or to_onnx() of the classifier alone"
        )
    graph = Graph(lambda op: scope.get_unique_variable_name(f"abcgbm_{op}"))
    label, proba = operator.outputs
    dtype = np.float64 if isinstance(proba.type, DoubleTensorType) else np.float32
    inputs, outputs = [operator.inputs[0].full_name], (label.full_name, proba.full_name)
    add_model(graph, model, inputs, outputs, dtype)
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
        raise ImportError(f'ONNX models need {name}: pip install "abcgbm[onnx]"') from error


def _check_unknown(model: Model) -> None:
    if model.encoding.levels and model.encoding.handle_unknown == "error":
        raise ValueError(
            "handle_unknown='error'; ONNX cannot raise errors, levels that were not learned are "
            "missing there: expected a model fitted with handle_unknown='missing'"
        )


def _warn_of_levels(model: Model) -> None:
    """Inputs are floats of 32 bits: a level that is none is never met."""
    for levels in model.encoding.levels.values():
        numbers = [] if levels.has_strings else [*levels.code_of]
        lost = [level for level in numbers if float(np.float32(level)) != level]
        if lost:
            warnings.warn(
                f"{levels.column} has the level {lost[0]!r}, which is no float of 32 bits; inputs of "
                "ONNX are, so there it is a level that was not learned. As strings levels are safe",
                UserWarning,
                stacklevel=4,
            )


def _inputs(model: Model) -> _Values:
    """Return the type and the shape of each input by its name."""
    names, levels = model.feature_labels, model.encoding.levels
    if has_one_input(model):
        return {MATRIX: (np.float32, [None, len(names)])}
    taken = {"", LABEL, PROBABILITIES} & {*names}
    if taken:
        raise ValueError(
            f"X has a column named {min(taken)!r}; expected a name that is not empty and none of "
            f"the outputs', {LABEL!r} and {PROBABILITIES!r}"
        )
    is_string = [feature in levels and levels[feature].has_strings for feature in range(len(names))]
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
