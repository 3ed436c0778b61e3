"""Export to treelite (extra `treelite`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from abcgbm.data.arrays import Floats
from abcgbm.model.ensemble import ALL_CLASSES
from abcgbm.model.model import Model
from abcgbm.model.trees import Tree, trees_or_nothing


class _ClassTree(NamedTuple):
    """A tree with leaf values for one class, or for all classes if ``class_number`` is -1."""

    tree: Tree
    class_number: int
    values: Floats


def treelite_model(model: Model) -> Any:
    """Return the model as a ``treelite.Model``, whose input has categories as codes."""
    try:
        from treelite import model_builder
    except ImportError as error:
        raise ImportError(
            'to_treelite requires treelite: pip install "abcgbm[treelite]"'
        ) from error
    n_classes = model.ensemble.n_classes
    class_trees = list(_class_trees(model))
    has_vectors = class_trees[0].class_number == ALL_CLASSES
    builder = model_builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=model_builder.Metadata(
            num_feature=model.ensemble.n_features,
            task_type="kMultiClf",
            average_tree_output=False,
            num_target=1,
            num_class=[n_classes],
            leaf_vector_shape=(1, n_classes if has_vectors else 1),
        ),
        tree_annotation=model_builder.TreeAnnotation(
            num_tree=len(class_trees),
            target_id=[0] * len(class_trees),
            class_id=[class_tree.class_number for class_tree in class_trees],
        ),
        postprocessor=model_builder.PostProcessorFunc(name="softmax"),
        base_scores=model.ensemble.init.tolist(),
    )
    for class_tree in class_trees:
        _add(builder, class_tree)
    return builder.commit()


def _class_trees(model: Model) -> Iterator[_ClassTree]:
    """Yield all trees with vector leaves if any is multi-output, else one tree per class it changes."""
    has_vectors = bool((model.ensemble.tree_class == ALL_CLASSES).any())
    for tree in trees_or_nothing(model):
        classes, added = tree.added()
        if has_vectors:
            values = np.zeros((len(added), model.ensemble.n_classes))
            values[:, classes] = added
            yield _ClassTree(tree, ALL_CLASSES, values)
        else:
            for class_number, values in zip(classes.tolist(), added.T, strict=True):
                yield _ClassTree(tree, class_number, values)


def _add(builder: Any, class_tree: _ClassTree) -> None:
    tree, leaf_values = class_tree.tree, iter(class_tree.values.tolist())
    builder.start_tree()
    for node, feature in enumerate(tree.feature.tolist()):
        builder.start_node(node)
        if feature < 0:
            builder.leaf(next(leaf_values))
        else:
            _add_test(builder, tree, node, feature)
        builder.end_node()
    builder.end_tree()


def _add_test(builder: Any, tree: Tree, node: int, feature: int) -> None:
    left = int(tree.left[node])
    common = {
        "default_left": bool(tree.missing_left[node]),
        "left_child_key": left,
        "right_child_key": left + 1,
    }
    if node in tree.left_codes:
        builder.categorical_test(
            feature,
            category_list=tree.left_codes[node].tolist(),
            category_list_right_child=False,
            **common,
        )
    else:
        builder.numerical_test(feature, float(tree.threshold[node]), opname="<=", **common)
