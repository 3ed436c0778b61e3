"""The report of a model: its numbers match scikit-learn, and it is a single self-contained file."""

import html
import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass
from abcgbm.evaluation import (
    Confusion,
    base_class_runs,
    predictions_of,
    staged_scores,
    top_calibration,
)
from abcgbm.report import report_html, write_report
from export_cases import CASES, case
from models import assert_same_model, base_labels, noisy_data, small

pytest.importorskip("jinja2")
X, Y = noisy_data(n_rows=500, n_classes=5)
MODEL = small("abc-mart").fit(X[:300], Y[:300])
REST, LABELS = X[300:], Y[300:]


def test_confusion_precision_and_recall_match_scikit_learn():
    found = Confusion.from_predictions(predictions_of(MODEL, REST, LABELS))
    predicted, classes = MODEL.predict(REST), MODEL.classes_
    np.testing.assert_array_equal(
        found.counts[:-1], confusion_matrix(LABELS, predicted, labels=classes)
    )
    expected = precision_recall_fscore_support(LABELS, predicted, labels=classes, zero_division=0)
    for ours, theirs in zip((found.precision, found.recall, found.f1), expected, strict=False):
        np.testing.assert_allclose(np.nan_to_num(ours), theirs, rtol=1e-12)


def test_accuracy_counts_weights_as_repeats():
    weight = np.arange(len(LABELS)) % 3
    predictions = predictions_of(MODEL, REST, LABELS, weight)
    repeated = np.repeat(np.arange(len(LABELS)), weight)
    assert predictions.accuracy == accuracy_score(LABELS[repeated], MODEL.predict(REST)[repeated])
    assert predictions.errors == (MODEL.predict(REST) != LABELS)[repeated].sum()


def test_staged_scores_match_staged_predictions():
    staged = staged_scores(predictions_of(MODEL, REST, LABELS))
    errors = [np.count_nonzero(answer != LABELS) for answer in MODEL.staged_predict(REST)]
    assert staged.errors[1:].tolist() == errors
    assert staged.iteration.tolist() == list(range(len(errors) + 1))


def test_calibration_bins_cover_every_row():
    found = top_calibration(predictions_of(MODEL, REST, LABELS))
    assert found.weight.sum() == len(LABELS)


def test_base_class_segments_match_the_iterations():
    labels = [MODEL.classes_[k] for k, _, n in base_class_runs(MODEL) for _ in range(n)]
    assert labels == base_labels(MODEL)


def test_report_is_reproducible_and_has_no_network_references():
    html = report_html(MODEL, REST, LABELS)
    assert html == report_html(MODEL, REST, LABELS)
    targets = re.findall(r"""\b(?:src|href)\s*=\s*["']?([^"'\s>]*)""", html)
    assert {target for target in targets if not target.startswith("#")} == {"data:,"}
    assert not re.search(r"https?:|@import|url\(", html)


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"early_stopping": True}, {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)}],
    ids=repr,
)
def test_code_of_the_report_reproduces_the_model(parameters, is_given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = {"X_train": X[:300], "y_train": Y[:300], "X_test": REST, "y_test": LABELS}
    rows = {"X_val": X[300:400], "y_val": Y[300:400]} if is_given else {}
    model = ABCBoostClassifier(max_iter=8, learning_rate=0.15, **parameters).fit(
        X[:300], Y[:300], **rows
    )
    (code,) = re.findall(
        r"<code>(from abcgbm.*?)</code>", report_html(model, REST, LABELS), re.DOTALL
    )
    code = html.unescape(code)
    if is_given:  # a model does not know whether rows for early stopping were drawn
        code = code.replace(
            "y_train\n    # and X_val=X_val, y_val=y_val, if validation rows were given",
            "y_train, **rows",
        )
    names = data | rows | {"rows": rows}
    exec(code, names)  # noqa: S102
    assert_same_model(names["model"], model)


def test_user_names_are_escaped():
    bad = '<script>alert("&\'")</script>'
    names = np.array([bad, "b", "c", "d", "e"])
    model = small("mart").fit(X[:300], names[Y[:300]])
    html = report_html(model, REST, names[LABELS], title=bad, command=bad)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(" in html


def test_largest_error_has_full_opacity():
    html = report_html(MODEL, REST, LABELS)
    squares = re.findall(r'<g class="(correct|error)"[^>]*><rect[^>]*fill-opacity="([\d.]+)"', html)
    assert max(float(strength) for kind, strength in squares if kind == "error") == 1.0


def test_unknown_labels_count_as_errors():
    labels = np.where(np.arange(len(LABELS)) < 7, 99, LABELS)
    predictions = predictions_of(MODEL, REST, labels)
    assert predictions.errors == np.count_nonzero(MODEL.predict(REST) != labels)
    html = report_html(MODEL, REST, labels)
    assert "7 rows have a label that is not a class of the model (99)" in html
    assert "not in the model" in html


def test_labels_of_another_table_are_refused():
    with pytest.raises(
        ValueError, match="which are not classes of the model; expected some of 0, 1"
    ):
        report_html(MODEL, REST, np.full(len(LABELS), "a"))


@pytest.mark.parametrize("name", CASES)
def test_every_model_type_has_a_report(name):
    model, rows = case(name)
    assert report_html(model, rows[:50], model.predict(rows[:50])).endswith("</html>")


def test_page_of_26_classes_is_small():
    rows, labels = noisy_data(n_rows=1500, n_features=16, n_classes=26)
    model = small("abc-mart", max_iter=200).fit(rows, labels)
    assert len(report_html(model, rows, labels).encode()) < 1e6


def test_one_row_is_enough():
    assert "All test rows are classified correctly." in report_html(
        MODEL, REST[:1], MODEL.predict(REST[:1])
    )


def test_report_replaces_the_file(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("earlier")
    write_report(MODEL, REST, LABELS, path, title="Mine", command="abcgbm report x")
    text = path.read_text("utf-8")
    assert "<title>Mine</title>" in text
    assert "abcgbm report x" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
