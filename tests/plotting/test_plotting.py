"""Plots show the numbers of the model, for every model type and any number of classes."""

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix

from abcgbm import ABCBoostClassifier, TreePerClass, plotting
from abcgbm.evaluation import class_calibration, predictions_of, staged_scores, top_calibration
from abcgbm.training.validation import hold_out
from export_cases import CASES, case
from models import base_labels, noisy_data, small
from stored_models import FOLDER as MODEL_FILES
from stored_models import frame

matplotlib = pytest.importorskip("matplotlib")

X, Y = noisy_data(n_rows=500, n_classes=5)
NAMES = np.array(["a", "b", "c", "d", "e"])[Y]
MODEL = small("abc-mart").fit(X[:300], NAMES[:300])
MART = small("mart", max_iter=5).fit(X[:300], NAMES[:300])
REST, LABELS = X[300:], NAMES[300:]
WATCHED = small("mart", early_stopping=True, refit=True, n_iter_no_change=2, max_iter=40).fit(
    X, NAMES
)
HELD_OUT, _ = hold_out(Y.astype(np.int32), 5, 0.1, WATCHED.history_.seed)


def on_a_figure():
    return plotting.new_figure().add_subplot()


# Each plot of one model and rows.
PLOTS = {
    "losses": lambda model, X, y, ax=None: plotting.plot_losses(model, X, y, ax=ax),
    "errors": lambda model, X, y, ax=None: plotting.plot_errors(model, X, y, ax=ax),
    "base classes": lambda model, X, y, ax=None: plotting.plot_base_classes(model, ax=ax),
    "class losses": lambda model, X, y, ax=None: plotting.plot_class_losses(model, ax=ax),
    "importances": lambda model, X, y, ax=None: plotting.plot_importances(model, ax=ax),
    "by class": lambda model, X, y, ax=None: plotting.plot_class_importances(model, ax=ax),
    "confusion": lambda model, X, y, ax=None: plotting.plot_confusion(model, X, y, ax=ax),
    "calibration": lambda model, X, y, ax=None: plotting.plot_calibration(model, X, y, ax=ax),
    "tree": lambda model, X, y, ax=None: plotting.plot_tree(model, 0, first_tree(model), ax=ax),
}


def first_tree(model):
    """Return a class with a tree in the first iteration; None for one tree per iteration."""
    if not hasattr(model, "model_"):
        return None
    ensemble = model.model_.ensemble
    numbers = ensemble.tree_class[slice(*ensemble.iteration_start[:2])]
    return None if len(numbers) < 2 else model.model_.labels[numbers[0]]


def curves_of(ax):
    """Return name, iterations and values of the lines in the legend."""
    return {
        line.get_label(): (line.get_xdata().tolist(), line.get_ydata().tolist())
        for line in ax.lines
        if not line.get_label().startswith("_")
    }


def ticks_of(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


# ------------------------------------------------------------------------------------- conventions


@pytest.mark.parametrize("name", PLOTS)
def test_plot_draws_on_given_axes_and_returns_them(name):
    ax = on_a_figure()
    assert PLOTS[name](MODEL, REST, LABELS, ax=ax) is ax
    assert ax.has_data()


@pytest.mark.parametrize("name", PLOTS)
def test_plot_creates_a_figure_without_pyplot(name, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    settings = dict(matplotlib.rcParams)
    ax = PLOTS[name](MODEL, REST, LABELS)
    ax.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == settings


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "abcgbm\[plot\]"'):
        plotting.plot_losses(MODEL)


@pytest.mark.parametrize("name", PLOTS)
def test_unfitted_model_is_refused(name):
    with pytest.raises(NotFittedError):
        PLOTS[name](ABCBoostClassifier(), REST, LABELS)


@pytest.mark.parametrize("name", PLOTS)
def test_other_estimator_is_refused(name):
    with pytest.raises(TypeError, match="='model'; expected a fitted ABCBoostClassifier"):
        PLOTS[name]("model", REST, LABELS)


def test_invalid_axes_are_refused():
    axes = plotting.new_figure().subplots(1, 2)
    with pytest.raises(TypeError, match="expected an Axes of matplotlib, or None"):
        plotting.plot_losses(MODEL, ax=axes)


ERRORS = {
    ("base classes", "no base"): "no iteration of the model has a base class",
    ("importances", "no split"): "no feature of the model has any importance",
    ("by class", "no split"): "no feature of the model has any importance",
    ("tree", "no split"): "the model has no iterations, and so no trees",
}


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("name", CASES)
def test_every_model_type_is_drawn_or_the_error_says_what_is_missing(name, plot):
    model, rows = case(name)
    rows, labels = rows[:60], model.predict(rows[:60])
    n_iter = model.model_.n_iter
    has_base = any(label is not None for label in base_labels(model)[:n_iter])
    missing = [] if n_iter else ["no split"]
    missing += [] if has_base and n_iter else ["no base"]
    expected = [ERRORS[plot, what] for what in missing if (plot, what) in ERRORS]
    if expected:
        with pytest.raises(ValueError, match=expected[0]):
            PLOTS[plot](model, rows, labels)
    else:
        assert PLOTS[plot](model, rows, labels).has_data()


# ------------------------------------------------------------------------------------------ losses


def test_losses_of_several_models_are_their_training_losses():
    ax = plotting.plot_losses({"MART": MART, "ABC": MODEL})
    assert curves_of(ax) == {
        "MART": ([*range(6)], MART.train_loss_.tolist()),
        "ABC": ([*range(9)], MODEL.train_loss_.tolist()),
    }
    assert ax.get_ylabel() == "Mean training loss"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MART", "ABC"]


def test_losses_that_fall_to_a_tenth_have_a_logarithmic_scale():
    long = small("mart", max_iter=60, learning_rate=1.0).fit(X[:300], NAMES[:300])
    assert long.train_loss_[0] > 10 * long.train_loss_[-1] > 0
    assert plotting.plot_losses({"long": long, "short": MART}).get_yscale() == "log"
    assert plotting.plot_class_losses(long).get_yscale() == "log"
    assert plotting.plot_losses(MART).get_yscale() == "linear"
    assert plotting.plot_class_losses(long, normalize=True).get_yscale() == "linear"


def test_training_and_validation_losses_are_means():
    ax = plotting.plot_losses(WATCHED, X, NAMES)
    drawn = curves_of(ax)
    staged = staged_scores(predictions_of(WATCHED, X, NAMES))
    losses = {
        "training": WATCHED.train_loss_,
        "refit": WATCHED.refit_history_.mean_train_loss(),
        "validation": WATCHED.validation_loss_,
        "test": staged.loss,
    }
    assert list(drawn) == list(losses)
    for kind, loss in losses.items():
        assert drawn[kind] == ([*range(len(loss))], loss.tolist())
    assert ax.get_ylabel() == "Mean loss"


@pytest.mark.parametrize("init", ["zero", "prior"])
def test_losses_are_the_means_that_verbose_prints(init, capsys):
    weight = np.arange(1.0, 301.0) / 7
    rows = {"X_val": REST, "y_val": LABELS, "sample_weight_val": np.full(len(LABELS), 0.3)}
    model = small(
        TreePerClass("mart", baseline=init),
        verbose=1,
        max_iter=3,
        scoring="error",
        class_weight="balanced",
    )
    model.fit(X[:300], NAMES[:300], weight, **rows)
    last = capsys.readouterr().err.splitlines()[-1]
    drawn = curves_of(plotting.plot_losses(model))
    assert f"  loss {drawn['training'][1][-1]:.6g}" in last
    assert f"  validation loss {drawn['validation'][1][-1]:.6g}" in last


def test_losses_of_a_loaded_model_are_drawn_as_before(tmp_path):
    WATCHED.save_model(tmp_path / "model")
    loaded = ABCBoostClassifier.load_model(tmp_path / "model")
    assert curves_of(plotting.plot_losses(loaded)) == curves_of(plotting.plot_losses(WATCHED))


def test_losses_of_a_file_of_version_0_1_are_means_too():
    model = ABCBoostClassifier.load_model(MODEL_FILES / "per_class.abcgbm")
    assert curves_of(plotting.plot_losses(model))["training"][1] == model.train_loss_.tolist()
    rows = frame()[:20]
    ax = plotting.plot_losses(model, rows, model.predict(rows), kinds=["test"])
    assert ax.get_ylabel() == "Mean test loss"


def test_losses_whose_rows_have_no_known_weight_have_no_mean():
    model = clone(MART)
    model.model_, model.refit_history_ = MART.model_, None
    model.history_ = replace(MART.history_, train_weight=None)
    with pytest.raises(ValueError, match=r"are not known.* or kinds=\['test'\]"):
        plotting.plot_losses(model)


def test_legend_of_a_single_model_says_what_it_shows_and_no_algorithm():
    assert list(curves_of(plotting.plot_losses(MART))) == ["training"]
    assert list(curves_of(plotting.plot_losses({"mine": MART}))) == ["mine"]
    assert list(curves_of(plotting.plot_errors(MART, REST, LABELS))) == ["model"]
    ax = plotting.plot_calibration(MART, REST, LABELS)
    assert [name for name in curves_of(ax) if name.startswith("model (ECE")]


def test_warm_start_without_validation_keeps_the_validation_losses_drawn():
    rows = {"X_val": REST, "y_val": LABELS}
    model = small("mart", warm_start=True, max_iter=3).fit(X[:300], NAMES[:300], **rows)
    before = curves_of(plotting.plot_losses(model))["validation"][1]
    model.set_params(max_iter=5).fit(X[:300], NAMES[:300])
    assert curves_of(plotting.plot_losses(model))["validation"][1][:3] == before[:3]


def test_dot_marks_the_best_iteration():
    ax = plotting.plot_losses(WATCHED, kinds=["validation"])
    (dot,) = [line for line in ax.lines if line.get_label() == "_dot"]
    best = WATCHED.best_iteration_
    assert dot.get_xdata().tolist() == [best]
    assert dot.get_ydata().tolist() == [WATCHED.validation_loss_[best]]
    assert best < WATCHED.n_iter_


def test_legend_has_names_and_kinds_if_both_differ():
    drawn = curves_of(plotting.plot_losses({"one": MART, "two": WATCHED}))
    assert list(drawn) == ["one, training", "two, training", "two, refit", "two, validation"]


def test_loss_of_zero_is_left_out_of_the_log_scale():
    model = small("mart", max_iter=2).fit(X, NAMES)
    model.history_ = replace(model.history_, train_loss=np.array([1000.0, 50.0, 0.0]))
    (line,) = curves_of(plotting.plot_losses(model)).values()
    np.testing.assert_array_equal(line[1], [2.0, 0.1, np.nan])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": ["train"]}, r"kinds=\['train'\]; expected some of 'training', 'refit'"),
        ({"kinds": []}, r"kinds=\[\]; expected some of"),
        ({"kinds": ["validation"]}, "'model' expected a model fitted with X_val and y_val"),
        ({"kinds": ["refit"]}, "'model' expected a model fitted with refit=True"),
        ({"kinds": ["test"]}, "'model' expected X and y"),
        ({"X": REST}, "y is None; expected rows and their labels"),
        ({"y": LABELS}, "X is None; expected rows and their labels"),
    ],
)
def test_missing_curves_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_losses(MART, **given)


def test_long_model_names_stay_distinguishable():
    names = ["a name of a model that is long: one", "a name of a model that is long: two", "_x"]
    drawn = curves_of(plotting.plot_losses(dict.fromkeys(names, MART)))
    assert list(drawn) == [*names[:2], " _x"]
    with pytest.raises(ValueError, match="expected names that differ as text"):
        plotting.plot_losses({1: MART, "1": MODEL})


def test_list_of_models_is_refused():
    with pytest.raises(TypeError, match="or a dict from names to them"):
        plotting.plot_losses([MART, MODEL])


# ------------------------------------------------------------------------------------------ errors


def test_errors_match_staged_predictions_and_a_dot_marks_the_lowest():
    ax = plotting.plot_errors({"MART": MART, "ABC": MODEL}, REST, LABELS)
    drawn = curves_of(ax)
    dots = [line for line in ax.lines if line.get_label() == "_dot"]
    for name, model, dot in zip(drawn, (MART, MODEL), dots, strict=True):
        rates = [np.mean(answer != LABELS) for answer in model.staged_predict(REST)]
        assert drawn[name] == ([*range(1, len(rates) + 1)], pytest.approx(rates))
        lowest = int(np.argmin(rates))
        assert dot.get_xdata().tolist() == [lowest + 1]
        assert dot.get_ydata().tolist() == pytest.approx([rates[lowest]])


def test_weights_count_as_repeated_rows():
    weight = np.arange(len(LABELS)) % 3
    repeated = np.repeat(np.arange(len(LABELS)), weight)
    weighted = plotting.plot_errors(MODEL, REST, LABELS, sample_weight=weight)
    assert curves_of(weighted) == curves_of(
        plotting.plot_errors(MODEL, REST[repeated], LABELS[repeated])
    )


# ----------------------------------------------------------------------------------------- classes


def raster_of(ax, n_iter, n_classes):
    """Return the base class of each iteration as drawn."""
    steps = np.zeros((n_classes, n_iter), dtype=bool)
    for bars in ax.collections:
        for path in bars.get_paths():
            (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            steps[round((low + high) / 2), round(left - 0.5) : round(right - 0.5)] = True
    return steps


def test_raster_has_the_base_class_of_each_iteration():
    ax = plotting.plot_base_classes(MODEL)
    raster = raster_of(ax, 8, 5)
    assert raster.sum(axis=0).tolist() == [1] * 8
    assert MODEL.classes_[raster.argmax(axis=0)].tolist() == base_labels(MODEL)
    assert ticks_of(ax.yaxis) == [*"abcde"]
    assert ax.get_xlim() == (0.5, 8.5)


def test_raster_of_a_refitted_model_shows_the_refit():
    model = small("abc-mart", early_stopping=True, refit=True).fit(X, NAMES)
    raster = raster_of(plotting.plot_base_classes(model), model.model_.n_iter, 5)
    assert raster.argmax(axis=0).tolist() == model.refit_history_.base_classes.tolist()


def test_model_without_base_classes_is_an_error_with_its_algorithm():
    with pytest.raises(
        ValueError, match=r"algorithm='mart', 5 classes, 5 iterations\); expected a mod"
    ):
        plotting.plot_base_classes(MART)


def test_losses_of_classes_are_those_of_the_history():
    ax = plotting.plot_class_losses(MODEL)
    drawn = curves_of(ax)
    assert list(drawn) == [*"abcde"]
    for k, (steps, losses) in enumerate(drawn.values()):
        assert (steps, losses) == ([*range(9)], MODEL.class_losses_[:, k].tolist())


def test_shares_of_classes_sum_to_one():
    ax = plotting.plot_class_losses(MODEL, normalize=True)
    shares = np.array([losses for _, losses in curves_of(ax).values()])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    np.testing.assert_allclose(shares.T, MODEL.class_losses_ / MODEL.train_loss_[:, None])


def test_named_classes_are_distinguished_from_the_others():
    ax = plotting.plot_class_losses(MODEL, classes=["d", "a"])
    assert list(curves_of(ax)) == ["3 other classes", "d", "a"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["d", "a", "3 other classes"]
    with pytest.raises(ValueError, match="class_='z'; expected one of 'a', 'b'"):
        plotting.plot_class_losses(MODEL, classes=["z"])
    with pytest.raises(ValueError, match="classes='ab'; expected a list of at most 7 labels"):
        plotting.plot_class_losses(MODEL, classes="ab")


# ---------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("kind", ["gain", "split", "cover", "permutation"])
def test_bars_are_sorted_importances(kind):
    rows = {"X": REST, "y": LABELS} if kind == "permutation" else {}
    ax = plotting.plot_importances(MODEL, kind, **rows)
    values = MODEL.feature_importances(kind, **rows)
    order = np.argsort(-values)
    drawn = [bar.get_width() for bar in ax.patches]
    assert drawn == values[order][: len(drawn)].tolist()
    assert ticks_of(ax.yaxis) == [f"x{f}" for f in order[: len(drawn)]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


@pytest.mark.parametrize("kind", ["gain", "permutation"])
def test_heat_map_shows_the_importances_by_class(kind):
    rows = {"X": REST, "y": LABELS} if kind == "permutation" else {}
    ax = plotting.plot_class_importances(MODEL, kind, max_features=3, **rows)
    values = MODEL.feature_importances(kind, per_class=True, **rows)
    order = np.argsort(-values.mean(axis=0))[:3]
    np.testing.assert_array_equal(ax.images[0].get_array(), values.T[order])
    assert ticks_of(ax.yaxis) == [f"x{f}" for f in order]
    assert ticks_of(ax.xaxis) == [*"abcde"]


def test_names_of_columns_are_on_the_axis():
    frame = pd.DataFrame(X, columns=["w", "costs in $ or $$", "_y", "a name longer than any label"])
    ax = plotting.plot_importances(small("mart").fit(frame, Y), max_features=4)
    ax.figure.draw_without_rendering()
    shown = {"w", r"costs in \$ or \$\$", " _y", "a name longer than an…"}
    assert {*ticks_of(ax.yaxis)} == shown


def test_number_of_features_is_validated():
    with pytest.raises(ValueError, match="max_features=0; expected"):
        plotting.plot_importances(MODEL, max_features=0)


# ------------------------------------------------------------------------------------- predictions


def test_confusion_matrix_shows_shares_and_counts():
    ax = plotting.plot_confusion(MODEL, REST, LABELS)
    counts = confusion_matrix(LABELS, MODEL.predict(REST), labels=MODEL.classes_)
    shares = counts / counts.sum(axis=1, keepdims=True)
    right, wrong = (np.ma.filled(image.get_array(), 0.0) for image in ax.images)
    np.testing.assert_allclose(right, np.diag(np.diag(shares)))
    np.testing.assert_allclose(wrong, shares - np.diag(np.diag(shares)))
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written == {(c, r): str(counts[r, c]) for r, c in np.argwhere(counts > 0).tolist()}
    assert ticks_of(ax.xaxis) == ticks_of(ax.yaxis) == [*"abcde"]


def test_unknown_labels_are_a_row_of_the_confusion_matrix():
    labels = np.where(np.arange(len(LABELS)) < 7, "zebra", LABELS)
    ax = plotting.plot_confusion(MODEL, REST, labels)
    assert ticks_of(ax.yaxis) == [*"abcde", "not in the model"]
    assert ax.images[0].get_array().shape == (6, 5)


def test_confusion_matrix_without_errors_has_no_error_scale():
    ax = plotting.plot_confusion(MODEL, REST, MODEL.predict(REST))
    assert len(ax.figure.axes) == 1


@pytest.mark.parametrize("class_", [None, "b"])
def test_points_are_the_calibration_bins(class_):
    ax = plotting.plot_calibration(
        {"MART": MART, "ABC": MODEL}, REST, LABELS, class_=class_, n_bins=4
    )
    for model, line in zip((MART, MODEL), ax.lines[1:], strict=True):
        answers = predictions_of(model, REST, LABELS)
        found = (
            top_calibration(answers, 4) if class_ is None else class_calibration(answers, "b", 4)
        )
        has_rows = found.weight > 0
        np.testing.assert_array_equal(line.get_xdata(), found.prob_pred[has_rows])
        np.testing.assert_array_equal(line.get_ydata(), found.prob_true[has_rows])
        assert f"(ECE {found.expected_error:.3f})" in line.get_label()


def test_unknown_class_of_a_calibration_is_refused():
    with pytest.raises(ValueError, match="class_='z'; expected one of 'a', 'b'"):
        plotting.plot_calibration(MODEL, REST, LABELS, class_="z")


# ------------------------------------------------------------------------------------------- trees


def test_tree_has_a_box_for_each_node_and_a_branch_for_each_child():
    tree = MART.tree(1, "c")
    ax = plotting.plot_tree(MART, 1, "c")
    boxes = [text for text in texts_of(ax) if text not in ("yes", "no")]
    assert [box.replace("\n", " ") for box in boxes] == [
        ", ".join(tree.describe(node)) for node in tree.nodes
    ]
    assert len(ax.lines) == len(tree.nodes) - 1
    assert texts_of(ax).count("yes") == texts_of(ax).count("no") == len(tree.leaf_values) - 1
    assert ax.get_title() == tree.title


def test_true_branch_is_drawn_upwards():
    root, left, right = (text for text in plotting.plot_tree(MART, 0, "a").texts if is_node(text))
    assert root.get_position()[0] < left.get_position()[0]
    assert left.get_position()[1] < right.get_position()[1]  # the axis points down


def is_node(text):
    return text.get_text() not in ("yes", "no") and text.get_position()[0] < 2


def test_class_of_a_tree_must_be_named_where_there_are_several():
    with pytest.raises(
        ValueError, match="class_=None; the trees of iteration 0 are those of 'a', 'b'"
    ):
        plotting.plot_tree(MART)
    with pytest.raises(ValueError, match="iteration=5; expected an integer from 0 to 4"):
        plotting.plot_tree(MART, 5, "a")


def test_font_of_a_tree_shrinks_with_its_axes():
    figure = plotting.new_figure(3, 2)
    small_axes = plotting.plot_tree(MART, 0, "a", ax=figure.add_subplot())
    assert small_axes.texts[0].get_fontsize() < plotting.plot_tree(MART, 0, "a").texts[0].get_size()


# ------------------------------------------------------------------------------------ many classes


@pytest.mark.parametrize("n_classes", [26, 100, 300])
def test_labels_of_many_classes_do_not_overlap(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_classes * 3)])
    rows = (y / n_classes)[:, None] + rng.normal(0.0, 0.01, (len(y), 2))
    labels = np.array([f"class {k}" for k in range(n_classes)])[y]
    model = small("abc-mart", max_iter=2, min_samples_leaf=1).fit(rows, labels)
    for name in ("base classes", "by class", "confusion"):
        ax = PLOTS[name](model, rows, labels)
        ax.figure.draw_without_rendering()
        assert_apart(ax.yaxis, "y")
        if name != "base classes":
            assert_apart(ax.xaxis, "x")
    coloured = curves_of(plotting.plot_class_losses(model))
    assert len(coloured) == 8
    assert f"{n_classes - 7} other classes" in coloured


def assert_apart(axis, which):
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    assert len(boxes) > 1
    ends = sorted((box.x0, box.x1) if which == "x" else (box.y0, box.y1) for box in boxes)
    assert all(one[1] <= two[0] + 0.5 for one, two in pairwise(ends))
