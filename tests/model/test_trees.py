"""Inspection of single trees: leaves of rows, text, drawings, data frames."""

import copy
import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Categorical,
    TreePerClass,
)
from models import base_labels, noisy_data, small

VARIANTS = {
    "mart": {"algorithm": "mart"},
    "class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "abc-mart": {"algorithm": AdaptiveBaseClass(base_label="b")},
    "small base steps": {"algorithm": AdaptiveBaseClass(base_label="b"), "learning_rate": 1.0},
    "shared": {"algorithm": "multi-output"},
}
N_ROWS = 240
RNG = np.random.default_rng(0)
LEVELS = np.array(["blue", "green", "red", "grey", "pink", "cyan", "black", "white", "teal"])
COLOUR = RNG.integers(0, len(LEVELS), N_ROWS)
SIZE = np.where(RNG.random(N_ROWS) < 0.1, np.nan, RNG.normal(size=N_ROWS).round(2))
Y = np.where(RNG.random(N_ROWS) < 0.2, "c", np.where(COLOUR % 2, "a", np.where(SIZE > 0, "b", "c")))
FRAME = pd.DataFrame({"colour": LEVELS[COLOUR], "size": SIZE})


@pytest.fixture(scope="module")
def models() -> dict[str, ABCBoostClassifier]:
    cheap = {"categorical_features": Categorical(smoothing=0.0, penalty=0.0)}
    return {name: small(**given, **cheap).fit(FRAME, Y) for name, given in VARIANTS.items()}


@pytest.fixture(params=VARIANTS)
def model(request, models):
    return models[request.param]


def walked(frame: pd.DataFrame, row: pd.Series) -> int:
    """Return the leaf of a row in one tree of a data frame."""
    nodes = frame.set_index("node")
    at = 0
    while nodes.loc[at, "decision"] in ("<=", "in"):
        node = nodes.loc[at]
        value = row[node["feature"]]
        if pd.isna(value):
            is_left = node["missing"] == "left"
        elif node["decision"] == "in":
            is_left = value in node["levels"]
        else:
            is_left = value <= node["threshold"]
        at = node["left"] if is_left else node["right"]
    return int(at)


# --------------------------------------------------------------------------------- frames and leaves


def test_data_frame_suffices_for_prediction(model):
    """Traversing the data frame gives the leaves of `apply`; their values sum to the scores."""
    frame = model.trees_to_dataframe()
    rows = FRAME[:25]
    leaves = model.apply(rows)
    assert leaves.dtype == np.int32
    assert leaves.shape == (25, frame["tree"].max() + 1)
    scores = np.tile(model.baseline_, (25, 1))
    labels = model.classes_.tolist()
    for tree, nodes in frame.groupby("tree"):
        found = [walked(nodes, row) for _, row in rows.iterrows()]
        np.testing.assert_array_equal(leaves[:, tree], found)
        at = nodes.set_index("node").loc[found]
        first = nodes.iloc[0]
        if first["class"] is None:
            scores += at[[f"value_{label}" for label in labels]].to_numpy()
            continue
        scores[:, labels.index(first["class"])] += at["value"]
        if first["base_class"] is not None:
            taken = at["base_scale"] * at["value"]
            scores[:, labels.index(first["base_class"])] -= taken
    expected = model._raw(rows, None)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def test_data_frame_has_a_row_for_each_node(model):
    frame, ensemble = model.trees_to_dataframe(), model.model_.ensemble
    np.testing.assert_array_equal(frame["gain"], ensemble.gain)
    np.testing.assert_array_equal(frame["weight"], ensemble.weight)
    np.testing.assert_array_equal(frame["left"], ensemble.left)
    starts = frame.groupby("tree").size().cumsum()
    np.testing.assert_array_equal(starts, ensemble.tree_start[1:])
    first_iteration = frame.groupby("tree")["iteration"].first()
    np.testing.assert_array_equal(
        np.searchsorted(first_iteration, np.arange(ensemble.n_iter + 1)), ensemble.iteration_start
    )
    is_leaf = frame["feature"].isna()
    assert (frame.loc[is_leaf, ["left", "right"]] == -1).all(axis=None)
    assert set(frame.loc[~is_leaf, "feature"]) == {"colour", "size"}
    assert (frame.loc[frame["node"] == 0, "depth"] == 0).all()
    for _, nodes in frame.groupby("tree"):
        by_node = nodes.set_index("node")
        for node in nodes.itertuples():
            if node.left >= 0:
                depths = by_node.loc[[node.left, node.right], "depth"]
                assert (depths == node.depth + 1).all()


def test_only_multi_output_trees_have_values_by_class(models):
    values = ["value_a", "value_b", "value_c"]
    shared = models["shared"].trees_to_dataframe()
    assert [name for name in shared if name.startswith("value")] == ["value", *values]
    assert shared["value"].isna().all()
    assert shared.loc[shared["feature"].isna(), values].notna().all(axis=None)
    assert shared.loc[shared["feature"].notna(), values].isna().all(axis=None)
    assert not set(values) & set(models["mart"].trees_to_dataframe())


def known(value: object) -> object:
    """Return None for a missing value of any data frame library."""
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("name", VARIANTS)
def test_pandas_and_polars_data_frames_are_equal(models, name):
    ours, theirs = models[name].trees_to_dataframe(), models[name].trees_to_dataframe("polars")
    assert isinstance(ours, pd.DataFrame)
    assert isinstance(theirs, pl.DataFrame)
    assert list(ours) == theirs.columns
    for column in ours:
        one, other = ours[column].tolist(), theirs[column].to_list()
        assert [known(value) for value in one] == [known(value) for value in other]


def test_labels_keep_their_type_beside_none():
    X, y = noisy_data()
    labels = small(AdaptiveBaseClass(base_label=2)).fit(X, y).trees_to_dataframe()
    assert set(labels["class"]) == {0, 1, 3}
    assert {type(label) for label in labels["base_class"]} == {int}
    assert small("mart").fit(X, y).trees_to_dataframe()["base_class"].tolist()[0] is None


@pytest.mark.parametrize("backend", ["pandas", "polars"])
@pytest.mark.parametrize("unit", ["D", "ns"])
def test_date_labels_stay_dates(backend, unit):
    """`ndarray.tolist` would give integers for nanoseconds."""
    X, y = noisy_data()
    dates = (np.datetime64("2026-11-18") + y).astype(f"M8[{unit}]")
    model = small(AdaptiveBaseClass(base_label=dates.min())).fit(X, dates)
    frame = model.trees_to_dataframe(backend)
    found = [frame["class"][0], frame["base_class"][0]]
    assert np.array(found, dtype=dates.dtype).tolist() == model.classes_[[1, 0]].tolist()
    tree = model.tree(0, model.classes_[1])
    assert [*tree.leaf_values[tree.nodes[-1].number]] == [*model.classes_[[1, 0]]]
    assert base_labels(model)[0] == model.classes_[0]
    assert model.explain(X[:1])._number(model.classes_[1]) == 1


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_model_without_trees_has_an_empty_data_frame(backend):
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small().fit(np.zeros((30, 1)), [0, 1, 2] * 10)
    assert model.model_.n_iter == 0
    frame = model.trees_to_dataframe(backend)
    assert len(frame) == 0
    assert "threshold" in frame
    assert model.apply(np.zeros((3, 1))).shape == (3, 0)
    with pytest.raises(
        ValueError, match="iteration=0; the model has no iterations, and so no trees"
    ):
        model.tree(0)


def test_leaves_of_the_first_iterations():
    X, y = noisy_data()
    model = small().fit(X, y)
    whole = model.apply(X)
    assert whole.shape == (400, 24)
    np.testing.assert_array_equal(model.apply(X, n_iter=3), whole[:, :9])
    assert model.apply(X, n_iter=0).shape == (400, 0)
    binned = BinMapper().fit(X).transform(X)
    np.testing.assert_array_equal(small().fit(binned, y).apply(binned), whole)
    with pytest.raises(ValueError, match="n_iter=9"):
        model.apply(X, n_iter=9)


@pytest.mark.parametrize("ask", ["tree", "trees_to_dataframe", "apply", "feature_importances"])
def test_unfitted_model_has_no_trees(ask):
    arguments = {"tree": (0,), "apply": (np.zeros((1, 2)),)}.get(ask, ())
    with pytest.raises(NotFittedError):
        getattr(small(), ask)(*arguments)


def test_unknown_data_frame_library_is_refused(models):
    with pytest.raises(ValueError, match="backend='dask'; expected 'pandas' or 'polars'"):
        models["mart"].trees_to_dataframe("dask")


@pytest.mark.parametrize(("missing", "other"), [("pandas", "polars"), ("polars", "pandas")])
def test_missing_data_frame_package_error_names_the_other(models, missing, other, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        ImportError, match=f"backend='{missing}' is not installed; .*backend='{other}'"
    ):
        models["mart"].trees_to_dataframe(missing)


# ----------------------------------------------------------------------------------- text, drawings


def test_text_of_a_small_tree():
    """The split is at 2.5, missing values go right; leaf values follow from residuals of 0.5."""
    X = [[1.0], [2.0], [3.0], [math.nan]] * 10
    model = small("mart", max_iter=1, max_leaf_nodes=2, learning_rate=1.0)
    tree = model.fit(X, ["no", "no", "yes", "yes"] * 10).tree(0, "yes")
    assert str(tree).splitlines() == [
        "iteration 0, class 'yes' against 'no', 2 leaves",
        "x0 <= 2.5 (gain 40, weight 40)",
        "yes: yes -1, no +1 (weight 20)",
        "no: yes +1, no -1 (weight 20)",
    ]
    assert repr(tree) == "TreeView(iteration 0, class 'yes' against 'no', 2 leaves)"
    assert [node.is_leaf for node in tree.nodes] == [False, True, True]
    assert tree.leaf_values == {1: {"yes": -1.0, "no": 1.0}, 2: {"yes": 1.0, "no": -1.0}}


def test_text_has_a_line_for_each_node(models):
    for name, model in models.items():
        tree = model.tree(1, None if name == "shared" else "c")
        lines = tree.to_text().splitlines()
        assert len(lines) == 1 + len(tree.nodes)
        assert sum("(gain" in line for line in lines) == len(tree.nodes) // 2
        assert sum("yes: " in line for line in lines) == len(tree.nodes) // 2


def test_text_names_categories_and_the_branch_of_missing_values(models):
    texts = [str(models["shared"].tree(step)) for step in range(8)]
    assert any(" in {" in text and " or missing" in text for text in texts)
    first = models["mart"].tree(0, "a").nodes[0]
    assert first.feature == "colour"
    odd = set(LEVELS[1::2])
    assert set(first.categories) in (odd, set(LEVELS) - odd)


def test_long_sets_are_shortened_in_text(models):
    node = models["mart"].tree(0, "a").nodes[0]
    shortened = node._replace(categories=list("abcdefghi"), missing_left=True)
    assert shortened.condition == "colour in {a, b, c, d, e, f, 3 more} or missing"


def test_condition_of_a_split_of_missing_values(models):
    node = models["mart"].tree(0, "a").nodes[0]
    cut = node._replace(categories=None, threshold=math.inf, missing_left=False)
    assert cut.condition == "colour is not missing"


def test_leaves_show_their_values(models):
    shared = models["shared"]
    whole, alone = shared.tree(0), shared.tree(0, "b")
    leaf = next(node for node in whole.nodes if node.is_leaf)
    assert whole.leaf_values[leaf.number] == dict(zip("abc", leaf.class_values, strict=True))
    assert alone.leaf_values[leaf.number] == {"b": leaf.class_values[1]}
    based = models["abc-mart"].tree(0, "a")
    assert based.title.startswith("iteration 0, class 'a' against 'b'")
    leaf = next(node for node in based.nodes if node.is_leaf)
    scale = based.base_scale
    assert based.leaf_values[leaf.number] == {"a": leaf.value, "b": -scale * leaf.value}


def test_dot_has_a_node_and_edges_for_each_node(model):
    tree = model.tree(0, "c")
    lines = tree.to_dot().splitlines()
    assert lines[0].startswith("digraph")
    assert lines[-1] == "}"
    assert sum("label=" in line and "->" not in line for line in lines) == len(tree.nodes)
    assert sum("->" in line for line in lines) == len(tree.nodes) - 1


def test_names_are_quoted_in_dot():
    X, y = noisy_data(n_features=1)
    frame = pd.DataFrame({'a "b" \\ c': X[:, 0]})
    assert r'label="a \"b\" \\ c <=' in small().fit(frame, y).tree(0, 1).to_dot()


def test_drawing_is_the_source_for_graphviz(models):
    pytest.importorskip("graphviz")
    tree = models["mart"].tree(0, "a")
    assert tree.to_graphviz().source == tree.to_dot()
    drawn = tree._repr_svg_()
    assert drawn is None or "<svg" in drawn  # None where the program dot is not installed


def test_without_graphviz_the_error_names_the_extra(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    tree = models["mart"].tree(0, "a")
    with pytest.raises(ImportError, match=r'pip install "abcgbm\[graphviz\]"'):
        tree.to_graphviz()
    assert tree._repr_svg_() is None


# --------------------------------------------------------------------------------- selecting a tree


def test_tree_is_selected_by_iteration_and_class(model):
    frame = model.trees_to_dataframe()
    for (step, label), nodes in frame[frame["class"].notna()].groupby(["iteration", "class"]):
        tree = model.tree(step, label)
        assert (tree.iteration, tree.class_) == (step, label)
        assert tree.number == nodes["tree"].iloc[0]
        assert [node.gain for node in tree.nodes] == nodes["gain"].tolist()


@pytest.mark.parametrize(("step", "error"), [(8, ValueError), (-1, ValueError), (0.5, TypeError)])
def test_missing_iterations_are_refused(model, step, error):
    with pytest.raises(error, match=r"iteration=.*; expected an integer from 0 to 7"):
        model.tree(step, "a")


def test_classes_without_a_tree_are_refused(models):
    with pytest.raises(ValueError, match="class_='d'; expected one of 'a', 'b', 'c'"):
        models["mart"].tree(0, "d")
    with pytest.raises(ValueError, match=r"class_=array.*; expected one of 'a', 'b', 'c'"):
        models["mart"].tree(0, np.array(["a", "b"]))
    with pytest.raises(
        ValueError, match="class_='b', its base class; the trees of iteration 2 are"
    ):
        models["abc-mart"].tree(2, "b")
    with pytest.raises(
        ValueError, match="class_=None; the trees of iteration 0 are those of 'a', 'b'"
    ):
        models["mart"].tree(0)


@pytest.mark.parametrize("label", [None, "a"])
def test_iteration_without_trees_is_refused(models, label):
    model = copy.copy(models["mart"])
    ensemble = model.model_.ensemble
    start = ensemble.iteration_start.copy()
    start[1] = 0  # possible in a model file: the second iteration has the trees of the first
    model.model_ = replace(model.model_, ensemble=replace(ensemble, iteration_start=start))
    with pytest.raises(ValueError, match="iteration=0; the iteration has no trees"):
        model.tree(0, label)
    assert model.tree(1, "a").iteration == 1
