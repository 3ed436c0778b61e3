"""The experiments of the paper: data, cells, results, report."""

import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("experiments", reason="experiments are in the repository only")
pytest.importorskip("pandas", reason="experiments read tables with pandas")
pytest.importorskip("matplotlib", reason="experiments draw with matplotlib")

from experiments import datasets, measure, public, report
from experiments.__main__ import fill_missing, keep_or_compare, main
from experiments.agreement import PAIR, Agreement, BothLower, overall, sentences
from experiments.cells import (
    ALGORITHMS,
    DATASETS,
    Cell,
    Parameters,
    all_cells,
    alternatives,
    present_settings,
    table,
    trial_cells,
)
from experiments.curves import Curves, decode, encode, pack, unpack
from experiments.store import Results, append_line, only_run, read_lines

from abcgbm import ABCBoostClassifier
from abcgbm.demo import error_curve, p_value, relative_improvement
from models import base_labels, end_of

ROOT = Path(__file__).parents[2]
PAPER = ROOT.parent / "shared" / "paper" / "tables.json"
CELL = Cell("optdigits", "mart", 4, 0.1, 20, Parameters(10, 255))


def digits():
    X, y = load_digits(return_X_y=True)
    return datasets.Split(X[:900], y[:900], X[900:1200], y[900:1200])


def line_of(cell, lowest, **others):
    line = {
        "lowest_errors": lowest,
        "lowest_step": 2,
        "final_errors": lowest + 1,
        "validated_errors": lowest + 2 if cell.is_validated else None,
        "validated_step": 2 if cell.is_validated else None,
        "stop_step": 3,
        "stop_reason": "max_iter",
        "seconds": 1.0,
        "commit": "0",
    }
    return line | cell.as_keys() | others


CURVES = Curves(np.array([9.0, 3.0, 1.0, 0.5]), np.array([7, 4, 5]))


def fill(results, cells, lowest):
    for cell in cells:
        results.add(line_of(cell, lowest(cell)), CURVES)


# The tables of the paper


@pytest.mark.parametrize("name", DATASETS)
def test_summary_of_the_paper_is_the_best_cell_of_its_grid(name):
    of = table(name)
    for algorithm in ("mart", "abc-mart"):
        best = min(n for cell, n in of.paper.items() if cell.algorithm == algorithm)
        assert best == of.summary[algorithm]


@pytest.mark.parametrize("name", DATASETS)
def test_printed_p_values_and_improvements_follow_from_the_printed_counts(name):
    summary, n_test = table(name).summary, datasets.describe(name).n_test
    counts = summary["mart"], summary["abc-mart"]
    printed = {15.5: 15.4}.get(summary["r_err"], summary["r_err"])
    assert f"{relative_improvement(*counts):.1f}" == f"{printed:.1f}"
    digits_shown = ".1e" if summary["p_value"] < 1e-3 else ".3f"
    ours = format(p_value(*counts, n_test), digits_shown)
    assert ours == format(summary["p_value"], digits_shown)


@pytest.mark.skipif(not PAPER.exists(), reason=f"{PAPER} is not there")
def test_tables_hold_the_published_numbers():
    published = json.loads(PAPER.read_text())["datasets"]
    for name in DATASETS:
        errors = published[name]["errors"]
        of = table(name)
        assert {
            (c.algorithm, str(c.max_leaf_nodes), str(c.learning_rate)): n
            for c, n in of.paper.items()
        } == {
            (algorithm, leaves, rate): n
            for algorithm, rows in errors.items()
            for leaves, row in rows.items()
            for rate, n in row.items()
        }


# Cells


def test_cells_are_those_of_the_paper_and_their_companions():
    cells = all_cells()
    assert len(cells) == len(set(cells))
    pairs = [c for c in cells if c.algorithm in ("mart", "abc-mart")]
    assert sum(c.dataset != "covertype" for c in pairs) == 280
    assert sum(c.dataset == "covertype" for c in pairs) == 12
    beside = [c for c in cells if c.algorithm in ("logitboost", "abc-logitboost", "shared")]
    assert {c.learning_rate for c in beside} == {0.1}
    assert len(beside) == 3 * (5 * 7 + 3)
    assert [c.algorithm for c in alternatives()] == ["mart", "abc-mart", "Mb", "b1", "b7"]
    assert len({c.settings for c in cells}) == 1


def test_learning_rate_of_a_tenth_is_run_first_and_costly_sets_last():
    cells = all_cells()
    is_late = [cell.learning_rate != 0.1 for cell in cells]
    assert is_late == sorted(is_late)
    for late in (False, True):
        order = [DATASETS.index(c.dataset) for c in cells if (c.learning_rate != 0.1) == late]
        assert order == sorted(order)
    assert DATASETS[-2:] == ("isolet", "covertype")


def test_iterations_on_covertype_depend_on_the_leaves():
    steps = {c.max_leaf_nodes: c.max_iter for c in table("covertype").cells}
    assert steps == {6: 16000, 10: 11500, 20: 6000}


def test_cell_round_trips_through_json():
    for cell in all_cells() + trial_cells():
        assert Cell.of_line(json.loads(json.dumps(cell.as_keys()))) == cell


def test_first_lines_do_not_have_all_settings():
    keys = CELL.as_keys()
    del keys["random_state"], keys["refresh"]
    assert Cell.of_line(keys) == CELL


def test_trial_contains_the_current_settings():
    assert present_settings() in {cell.settings for cell in trial_cells()}


@pytest.mark.parametrize("n_classes", [10, 26])  # of the trial's sets
def test_draws_of_the_trial_are_different_first_base_classes(n_classes):
    draws = {cell.settings.random_state for cell in trial_cells()}
    y = np.repeat(np.arange(n_classes), 3)
    X = np.eye(len(y))
    model = ABCBoostClassifier.paper(max_iter=1, min_samples_leaf=1)
    first = {int(base_labels(model.set_params(random_state=s).fit(X, y))[0]) for s in draws}
    assert len(draws) > 1
    assert len(first) == len(draws)


# Curves


@pytest.mark.parametrize("order", [0, 1, 2])
def test_integers_are_packed_losslessly(order):
    rng = np.random.default_rng(0)
    values = np.append(rng.integers(-400000, 400000, 50), [0, -1, 290506])
    assert unpack(pack(values, order), order).tolist() == values.tolist()


def test_errors_are_kept_exactly_and_losses_to_an_eighth_of_a_percent():
    loss = np.append(np.geomspace(5e5, 2e-14, 3000), 0.0)
    errors = np.random.default_rng(0).integers(0, 290506, 3000)
    back = decode(encode(Curves(loss, errors)))
    assert back.test_errors.tolist() == errors.tolist()
    assert np.abs(back.train_loss[:-1] / loss[:-1] - 1).max() < 0.00125
    assert back.train_loss[-1] == pytest.approx(1e-18)


def test_curve_of_ten_thousand_iterations_is_a_few_thousand_characters():
    steps = np.arange(10001)
    rng = np.random.default_rng(0)
    loss = 3e4 * 10 ** (-steps / 900.0)
    errors = 120 + np.cumsum(rng.choice([-1, 0, 0, 0, 0, 1], 10000))
    assert sum(map(len, encode(Curves(loss, errors)).values())) < 6000


# Results


def test_truncated_last_line_is_ignored_and_replaced(tmp_path):
    path = tmp_path / "a.jsonl"
    append_line(path, {"a": 1})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"a": 2, "b')
    assert read_lines(path) == [{"a": 1}]
    append_line(path, {"a": 3})
    assert path.read_bytes() == whole + b'{"a": 3}\n'


def test_error_names_an_invalid_line_in_the_middle(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a"\n{"a": 3}\n')
    with pytest.raises(ValueError, match=r"a.jsonl:2: .*expected a JSON object"):
        read_lines(path)


def test_cell_without_a_line_is_not_done(tmp_path):
    results = Results(tmp_path)
    results.add(line_of(CELL, 5), CURVES)
    other = replace(CELL, algorithm="abc-mart")
    curves = tmp_path / "paper_curves" / "optdigits.jsonl"
    append_line(curves, other.as_keys() | encode(CURVES))  # killed before its line was written
    assert set(results.cells()) == {CELL}
    assert set(results.curves("optdigits")) == {CELL}


def test_other_settings_are_other_cells(tmp_path):
    results = Results(tmp_path)
    results.add(line_of(CELL, 5), CURVES)
    assert replace(CELL, settings=Parameters(1, 255)) not in results.cells()


def test_only_one_run_at_a_time_writes_to_a_folder(tmp_path):
    with only_run(tmp_path), pytest.raises(OSError, match="another run"), only_run(tmp_path):
        pass
    with only_run(tmp_path):
        pass


# Measuring


@pytest.mark.slow
def test_curve_of_a_cell_is_that_of_staged_prediction(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda name: digits())
    data = digits()
    for algorithm, parameters in ALGORITHMS.items():
        line, curves = measure.measure(replace(CELL, algorithm=algorithm), lambda state: None)
        model = ABCBoostClassifier.paper(
            **parameters, max_leaf_nodes=4, max_iter=20, min_samples_leaf=10, n_jobs=1
        ).fit(data.X_train, data.y_train)
        assert curves.test_errors.tolist() == error_curve(model, data.X_test, data.y_test).tolist()
        assert curves.train_loss.tolist() == model.history_.train_loss.tolist()
        assert line["lowest_errors"] == min(curves.test_errors)
        assert line["lowest_step"] == int(np.argmin(curves.test_errors)) + 1
        assert line["final_errors"] == curves.test_errors[-1]
        assert line["validated_errors"] == curves.test_errors[line["validated_step"] - 1]


def test_loss_breaks_ties_between_iterations_of_fewest_validation_errors():
    scores = -np.array([0.9, 0.2, 0.1, 0.1, 0.1, 0.3])
    losses = np.array([9.0, 0.1, 5.0, 4.0, 4.0, 0.2])
    assert measure.best_of(scores, losses) == 3


@pytest.mark.parametrize(
    ("name", "held_out"), [("letter", [21, 22]), ("covertype", [9, 19])], ids=["last", "every"]
)
def test_iteration_is_chosen_on_a_tenth_of_the_training_rows(name, held_out):
    assert np.flatnonzero(datasets.validation_rows(name, 23)).tolist() == held_out


def test_line_has_the_documented_keys_and_no_choice_without_validation(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda name: digits())
    messages = []
    line, _ = measure.measure(replace(CELL, learning_rate=0.04), messages.append)
    assert list(line)[:12] == [
        "dataset",
        "algorithm",
        "max_leaf_nodes",
        "learning_rate",
        "lowest_errors",
        "lowest_step",
        "final_errors",
        "validated_errors",
        "stop_step",
        "stop_reason",
        "seconds",
        "commit",
    ]
    assert line["validated_errors"] is None
    assert (line["stop_step"], line["stop_reason"]) == (20, "max_iter")
    assert len(messages) == 20
    assert json.loads(json.dumps(line)) == line


# The report


def test_page_without_results_says_that_nothing_is_measured(tmp_path):
    page = tmp_path / "paper.md"
    report.write_page(page, Results(tmp_path / "none"), Results(tmp_path / "none", "settings"))
    text = page.read_text()
    assert "nothing has been run yet" in text
    assert "- / 135" in text
    assert not list(tmp_path.glob("**/*.png"))


def test_page_shows_every_cell_and_its_figures(tmp_path):
    results, page = Results(tmp_path), tmp_path / "paper.md"
    of = table("covertype")
    fill(results, [*of.cells, *of.beside, *alternatives()[2:]], lambda cell: of.paper.get(cell, 99))
    report.write_page(page, results, Results(tmp_path, "settings"))
    text = page.read_text()
    assert all(f"{n} / {n} / +0" in text for n in of.paper.values())
    assert "MART agrees with the paper" in text
    assert "Covertype | 21 of 21" in text
    for name in ("covertype_loss", "covertype_errors", "covertype_improvement", "alternatives"):
        assert (tmp_path / "paper" / f"{name}.png").exists()
        assert f"(paper/{name}.png)" in text
    assert "](paper/zipcode" not in text


@pytest.mark.slow
def test_page_is_reproducible(tmp_path):
    results, page = Results(tmp_path), tmp_path / "paper.md"
    fill(results, table("covertype").cells, lambda cell: 5)
    files = []
    for _ in range(2):
        report.write_page(page, results, Results(tmp_path, "settings"))
        files.append([p.read_bytes() for p in (page, *sorted(tmp_path.glob("paper/*.png")))])
    assert files[0] == files[1]


def test_page_shows_the_trial_of_settings(tmp_path):
    trial, page = Results(tmp_path, "settings"), tmp_path / "paper.md"
    fill(trial, trial_cells(), lambda cell: 100 + cell.settings.min_samples_leaf)
    report.write_page(page, Results(tmp_path), trial)
    text = page.read_text()
    assert "| 1 | 255 | 0 | iteration | 101 / 102 / 103 | 101 / 102 / 103 |" in text
    assert "| 40 | 255 | 1 | iteration |  | 140 / 141 / 142 |" in text  # MART draws nothing
    assert "| 40 | 255 | 0 | class | 140 / 141 / 142 |  |" in text
    assert "| paper |  |  |  | 59 | 42 |" in text
    assert "0 of 409" in text  # a trial is not a cell of a table


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.0, "agrees with the paper"),
        (0.9, "makes fewer errors than the paper's"),
        (1.1, "makes more errors than the paper's"),
    ],
)
def test_sentences_follow_from_the_numbers(factor, words):
    of = table("covertype")
    done = {cell: line_of(cell, round(factor * n)) for cell, n in of.paper.items()}
    agreement = Agreement.of(of, done, {})
    assert sentences(agreement).count(words) == 2
    assert agreement.meets_the_bar == (factor <= 1)
    assert len(agreement.far_above) == (12 if factor > 1 else 0)


def test_curves_are_compared_over_their_common_iterations():
    mart = Curves(np.array([10.0, 5.0, 4.0, 3.0]), np.array([5, 4, 3]))
    abc = Curves(np.array([10.0, 6.0, 3.0, 2.0, 1.0]), np.array([6, 4, 2, 1]))
    found = BothLower.of(mart, abc)
    assert found.loss.tolist() == [False, True, True]
    assert found.errors.tolist() == [False, False, True]


def test_sentence_says_how_early_a_base_class_helps():
    of = table("letter")
    mart, abc = (of.cell(name, 4, 0.1) for name in PAIR)
    done = {cell: line_of(cell, 150) for cell in (mart, abc)}
    steps = np.arange(1, 201)
    curves = {
        mart: Curves(np.append(9.0, 1.0 / steps), np.full(200, 150)),
        abc: Curves(np.append(9.0, 1.1 / steps), np.where(steps <= 50, 151, 149)),
    }
    text = sentences(Agreement.of(of, done, curves))
    assert "lower training loss in 0 % of the first 100 iterations and in 0 % of all" in text
    assert "fewer test errors in 50 % and 75 %" in text


def test_last_iterations_better_than_chosen_ones_are_counted():
    cells = table("letter").cells
    done = {cell: line_of(cell, 5) for cell in cells}  # the chosen iteration has one more error
    n_validated = sum(cell.is_validated for cell in cells)
    assert report.last_or_chosen(done) == f"{n_validated} of {n_validated}"
    done = {cell: line | {"final_errors": 9} for cell, line in done.items()}
    assert report.last_or_chosen(done) == f"0 of {n_validated}"


def test_cell_deviates_beyond_three_square_roots_of_the_papers_count():
    of = table("letter")
    cell = of.cells[0]
    edge = of.paper[cell] + math.floor(3 * math.sqrt(of.paper[cell]))
    assert Agreement.of(of, {cell: line_of(cell, edge)}, {}).far_above == ()
    assert Agreement.of(of, {cell: line_of(cell, edge + 1)}, {}).far_above == (cell,)


def test_lack_of_improvement_is_reported():
    of = table("letter")
    done = {c: line_of(c, 100 if c.algorithm == "mart" else 120) for c in of.cells}
    said = sentences(Agreement.of(of, done, {}))
    assert "ABC-MART does not make fewer errors than MART" in said
    assert "fewer in 0, as many in 0 and more in 28 of 28 pairs" in said


def agreement_of(name, factor, mart=1.0):
    """Return results whose errors are a multiple of the paper's, with another factor for MART."""
    of = table(name)
    factors = {"mart": factor * mart, "abc-mart": factor}
    errors = {cell: round(factors[cell.algorithm] * n) for cell, n in of.paper.items()}
    return Agreement.of(of, {cell: line_of(cell, n) for cell, n in errors.items()}, {})


def test_page_names_datasets_that_meet_the_threshold_and_those_that_do_not():
    near, far = agreement_of("letter", 1.01), agreement_of("isolet", 1.05)
    said = overall([near, far, Agreement.of(table("covertype"), {}, {})])
    assert said.startswith(
        "- All of the paper's cells have been run on Letter and Isolet.\n- On Letter"
    )
    means = (
        r"- On Isolet MART's mean is [45]\.\d % above the paper's and ABC-MART's mean is [45]\.\d %"
    )
    assert re.search(means, said)
    assert "on average over the cells, on Letter and Isolet." in said


def test_no_overall_statement_while_every_grid_is_incomplete():
    of = table("letter")
    some = {cell: line_of(cell, 100) for cell in of.cells[:-1]}
    assert overall([Agreement.of(of, some, {})]) == "No grid of the paper is complete yet."


def test_page_names_datasets_where_a_base_class_gains_little_or_nothing():
    less, both = agreement_of("letter", 1.0, mart=0.95), agreement_of("isolet", 1.02, mart=0.9)
    said = overall([less, both, agreement_of("zipcode", 1.0)])
    assert "gains less over MART than in the paper on Letter and Isolet." in said
    assert "gains less" not in overall([agreement_of("letter", 1.0)])
    nothing = overall([agreement_of("letter", 1.0, mart=0.5)])
    assert "ABC-MART does not make fewer errors than MART on Letter." in nothing
    assert "ABC-MART makes as many errors as MART, or more, on Letter." in nothing
    assert "the best of MART, or more, on Letter." in nothing


def test_page_names_datasets_that_agree_with_the_paper_and_those_that_do_not():
    said = overall([agreement_of("letter", 1.1, mart=0.8), agreement_of("isolet", 1.0)])
    assert (
        "MART agrees with the paper on Isolet; it makes fewer errors than the paper's on Letter.\n"
        in said
    )
    assert (
        "ABC-MART agrees with the paper on Isolet; it makes more errors than the paper's on Letter."
        in said
    )


def test_losses_are_compared_at_the_last_common_iteration():
    of = table("letter")
    mart, abc = of.cells[:2]
    assert (mart.algorithm, abc.algorithm) == ("mart", "abc-mart")
    errors = np.array([5, 5])
    long = Curves(np.array([9.0, 2.0, 1.0, 0.1]), np.append(errors, 5))
    for loss, words in (([9.0, 3.0, 0.9], "in 1 of 1 pairs"), ([9.0, 0.5, 1.1], "in 0 of 1 pairs")):
        curves = {mart: long, abc: Curves(np.array(loss), errors)}
        done = {cell: line_of(cell, 5) for cell in curves}
        assert f"after the last of these {words}" in sentences(Agreement.of(of, done, curves))


def test_page_names_the_dataset_where_mart_ends_with_the_lower_loss():
    of = table("letter")
    done = {cell: line_of(cell, n) for cell, n in of.paper.items()}
    losses = {"mart": np.array([9.0, 1.0]), "abc-mart": np.array([9.0, 2.0])}
    curves = {cell: Curves(losses[cell.algorithm], np.array([5])) for cell in of.cells}
    assert "MART ends with the lower training loss" in overall([Agreement.of(of, done, curves)])
    assert "MART ends with the lower training loss" not in overall([Agreement.of(of, done, {})])


def test_leaves_at_the_bound_of_the_core_are_counted():
    n_classes = 100  # of a hundred classes one is known with p = 0.01: a Newton step of 99
    y = np.repeat(np.arange(n_classes), 3)
    model = ABCBoostClassifier.paper("mart", max_iter=1, max_leaf_nodes=2, min_samples_leaf=1)
    model.fit(np.eye(n_classes)[y], y)
    assert np.abs(model.model_.ensemble.value).max() == measure.LONGEST * model.learning_rate
    assert measure._n_bounded(model) == n_classes
    few = np.minimum(y, 9)
    assert measure._n_bounded(model.fit(np.eye(n_classes)[few], few)) == 0


def test_guarded_steps_are_summed_over_the_cells_that_record_them():
    first, second, third = (c for c in table("letter").cells[:6] if c.algorithm == "mart")
    guards = {"mended_steps": 7, "bounded_leaves": 2, "n_leaves": 1234}
    done = {cell: line_of(cell, 5, **guards) for cell in (first, second)}
    text = report.scaled_back_table(done | {third: line_of(third, 5)})
    assert text.splitlines()[2:] == ["| Letter | mart | 2 | 14 of 6 | 4 of 2,468 |"]


def test_page_shows_the_largest_and_the_last_improvement():
    of = table("covertype")
    mart, abc = (of.cell(name, 6, 0.04) for name in ("mart", "abc-mart"))
    losses = np.array([9.0, 3.0, 1.0, 0.5])
    curves = {
        mart: Curves(losses, np.array([100, 50, 40])),
        abc: Curves(losses, np.array([200, 25, 30])),
    }
    text = report.history_table(of, curves)
    assert "| J = 6 | 50.0 (2) / 25.0 (3) | - |" in text


def test_committed_page_is_that_of_the_committed_results():
    text = report.page_text(Results(), Results(name="settings"), report.PAGE.stem)
    assert report.PAGE.read_text() == text, "run `python -m experiments report`"


# Data


def source(**others):
    about = {
        "files": [],
        "label": "first",
        "separator": ",",
        "n_classes": 2,
        "n_train": 3,
        "n_test": 2,
        "n_features": 2,
        "digest": "",
        "split": 3,
    }
    return public.Source(**about | others)


SMALL = datasets.Split(
    np.array([[0.5, -1.25], [3.0, 0.1], [2.0, 7.0]]),
    np.array(["A", "B", "A"], dtype=object),
    np.array([[1.0, 2.0], [0.0, -0.4394]]),
    np.array(["B", "A"], dtype=object),
)
LABEL_FIRST = b"A,0.5,-1.25\nB,3,0.1\nA,2,7\nB,1,2\nA,0,-.4394\n"


@pytest.fixture
def small_set(tmp_path, monkeypatch):
    """The dataset "letter", made small; only its public file exists."""
    file = tmp_path / "public" / "letter.data"
    file.parent.mkdir()
    file.write_bytes(LABEL_FIRST)
    about = source(files=[file.as_uri()], digest=datasets.digest(SMALL))
    monkeypatch.setattr(datasets, "describe", lambda name: about)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ABCGBM_DATA", raising=False)
    return file


def assert_is_small(data):
    assert all(ours.tolist() == theirs.tolist() for ours, theirs in zip(data, SMALL, strict=True))


def test_dataset_is_downloaded_once_and_then_read_from_the_cache(small_set, capsys):
    assert_is_small(datasets.load("letter"))
    assert "downloading letter.data: 0.0 of 0.0 MB" in capsys.readouterr().err
    small_set.unlink()
    assert_is_small(datasets.load("letter"))
    assert capsys.readouterr().err == ""


def test_given_folder_takes_precedence_over_the_cache(small_set, tmp_path, monkeypatch):
    datasets.load("letter")
    folder = tmp_path / "mine" / "letter"
    folder.mkdir(parents=True)
    (folder / "train.csv.gz").write_bytes(gzip.compress(b"A,1,1\n"))
    (folder / "test.csv.gz").write_bytes(gzip.compress(b"A,1,1\n"))
    monkeypatch.setenv("ABCGBM_DATA", str(tmp_path / "mine"))
    with pytest.raises(ValueError, match=r"mine/letter: digest .*; expected .*: other data"):
        datasets.load("letter")


def test_data_with_another_digest_are_not_cached(small_set, tmp_path):
    small_set.write_bytes(LABEL_FIRST.replace(b"7", b"8"))
    with pytest.raises(ValueError, match=r"expected .*: other data"):
        datasets.load("letter")
    assert not (tmp_path / "cache").exists()


def test_failed_download_says_where_to_put_files(small_set):
    small_set.unlink()
    with pytest.raises(OSError, match=r"cannot be downloaded from .*\$ABCGBM_DATA/letter"):
        datasets.load("letter")


def test_html_page_instead_of_a_table_is_a_failed_download(small_set):
    small_set.write_bytes(b"<html>moved</html>")
    with pytest.raises(OSError, match=r"cannot be downloaded from .*letter\.data"):
        datasets.load("letter")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(LABEL_FIRST)[:-9], b"\x1f\x8b\x08" + bytes(30)],
    ids=["cut short", "zeros"],
)
def test_corrupt_archive_is_a_failed_download(small_set, tmp_path, monkeypatch, content):
    file = tmp_path / "public" / "letter.gz"
    file.write_bytes(content)
    about = source(files=[file.as_uri()])
    monkeypatch.setattr(datasets, "describe", lambda name: about)
    with pytest.raises(OSError, match=r"cannot be downloaded from .*letter\.gz"):
        datasets.load("letter")


def test_digest_depends_on_every_value_but_not_on_row_order():
    whole = datasets.digest(SMALL)
    order = [2, 0, 1]
    moved = SMALL._replace(X_train=SMALL.X_train[order], y_train=SMALL.y_train[order])
    assert datasets.digest(moved) == whole
    assert datasets.digest(SMALL._replace(y_train=SMALL.y_train[order])) != whole
    swapped = datasets.Split(SMALL.X_test, SMALL.y_test, SMALL.X_train, SMALL.y_train)
    assert datasets.digest(swapped) != whole


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (LABEL_FIRST, {}),
        (b"  0.5, -1.25, 1.\n 3, .1, 2.\n 2, 7, 1.\n", {"label": "last"}),
        (b"1.0000 0.5000 -1.2500 \n2.0000 3.0 0.1 \n1.0000 2 7 \n", {"separator": "space"}),
    ],
)
def test_published_file_formats_are_parsed(text, about):
    X, y = public.parse(text, source(**about))
    assert X[:3].tolist() == SMALL.X_train.tolist()
    assert y[:3].tolist() in (["A", "B", "A"], [1, 2, 1])
    assert y.dtype.kind in "iU"


def compressed(text: bytes) -> bytes:
    """Return a Unix ``compress`` file without repetitions: each byte is a code of 9 bits."""
    bits = sum(byte << (9 * i) for i, byte in enumerate(text))
    return b"\x1f\x9d\x90" + bits.to_bytes(-(-9 * len(text) // 8), "little")


def test_compressed_files_are_unpacked():
    assert public.unpack("a.data", LABEL_FIRST) == LABEL_FIRST
    assert public.unpack("a.gz", gzip.compress(LABEL_FIRST)) == LABEL_FIRST
    if shutil.which("gzip") is None:
        pytest.skip("gzip, which unpacks .Z, is not there")
    assert public.unpack("a.data.Z", compressed(LABEL_FIRST)) == LABEL_FIRST


@pytest.mark.slow
def test_covertype_split_has_the_row_counts_of_the_paper():
    about = datasets.describe("covertype")
    n = about.n_train + about.n_test
    rows = np.arange(n, dtype=np.float64)[:, None]
    (train, _), (test, _) = public.split(rows, np.zeros(n), about.split)
    assert (len(train), len(test)) == (about.n_train, about.n_test)
    assert np.sort(np.vstack([train, test]), axis=0).tolist() == rows.tolist()
    assert train[:6, 0].tolist() == [0, 1, 5, 6, 7, 8]


@pytest.mark.skipif("ABCGBM_DATA" not in os.environ, reason="ABCGBM_DATA is not set")
@pytest.mark.parametrize("name", ["letter", "pendigits", "zipcode", "optdigits", "isolet"])
def test_datasets_have_the_recorded_shapes_and_digests(name):
    data, about = datasets.load(name), datasets.describe(name)
    assert data.X_train.shape == (about.n_train, about.n_features)
    assert data.X_test.shape == (about.n_test, about.n_features)
    assert len(np.unique(data.y_train)) == about.n_classes


# Running


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["run", "letter"], "no --leaves and --learning-rate; expected --all, or a data set, --l"),
        (["run", "letter", "--leaves", "5", "--learning-rate", "0.1"], r"one of [4, 6, 8,"),
        (["run", "letter", "--all", "--leaves", "4"], "expected --all without them"),
        (["run", "--all", "--steps", "4"], "expected --all without them"),
    ],
)
def test_cell_outside_all_tables_is_refused(command, words, capsys):
    assert main(command) == 2
    assert words in capsys.readouterr().err


@pytest.mark.skipif("ABCGBM_DATA" not in os.environ, reason="ABCGBM_DATA is not set")
@pytest.mark.slow
def test_pair_of_cells_is_run_and_compared_with_the_paper(capsys):
    command = "run optdigits --leaves 4 --learning-rate 0.1 --steps 3 --processes 1"
    assert main(command.split()) == 0
    said = capsys.readouterr().out
    assert "J = 4 leaves, nu = 0.1, at most 3 steps" in said
    for name in ("mart", "abc-mart"):
        paper = table("optdigits").paper[table("optdigits").cell(name, 4, 0.1)]
        assert re.search(rf"^{name}: \d+ errors .*; paper: {paper} \(lowest\)$", said, re.MULTILINE)
    assert re.search(r"^ours: R_err .* %, P-value .*; paper: R_err .* %", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({}, "the same as the committed result"),
        ({"seconds": 9.0}, ": the same as the committed result"),
        ({"final_errors": 5}, "differs from the committed result"),
        ({"validated_step": 3}, "except for the iteration chosen by validation"),
    ],
)
def test_repeated_cell_is_compared_and_stored_once(tmp_path, capsys, others, words):
    results = Results(tmp_path)
    line = line_of(CELL, 5, validated_step=2)
    keep_or_compare(results, line, CURVES)
    assert list(results.cells()) == [CELL]
    assert capsys.readouterr().err == ""
    keep_or_compare(results, line | others, CURVES)
    assert words in capsys.readouterr().err
    assert len(read_lines(tmp_path / "paper.jsonl")) == 1


def test_status_shows_progress(capsys):
    assert main(["status"]) == 0
    assert re.search(r"\| All \| \d+ of 409 \|", capsys.readouterr().out)


@pytest.mark.skipif("ABCGBM_DATA" not in os.environ, reason="ABCGBM_DATA is not set")
@pytest.mark.slow
def test_run_resumes_where_it_stopped(tmp_path, capsys):
    results = Results(tmp_path)
    cells = [replace(CELL, max_iter=3, algorithm=name) for name in ("mart", "abc-mart", "b1")]
    fill(results, cells[:1], lambda cell: 5)
    for n_missing in (2, 0):
        fill_missing(results, cells, 2)
        assert f"{n_missing} of 3 cells to run" in capsys.readouterr().err
        assert set(results.cells()) == set(results.curves("optdigits")) == set(cells)
    assert results.cells()[cells[0]]["lowest_errors"] == 5
    assert results.cells()[cells[1]]["stop_step"] == 3


@pytest.mark.skipif("ABCGBM_DATA" not in os.environ, reason="ABCGBM_DATA is not set")
@pytest.mark.slow
def test_failed_cell_is_reported_and_the_others_are_kept(tmp_path, capsys):
    good = replace(CELL, max_iter=3)
    bad = replace(good, settings=Parameters(-1, 255))
    with pytest.raises(OSError, match="1 of 2 cells could not be run"):
        fill_missing(Results(tmp_path), [bad, good], 1)
    assert "failed, its process ended with code 1" in capsys.readouterr().err
    assert set(Results(tmp_path).cells()) == {good}


KILLED = """
import sys, time
from pathlib import Path
from experiments import run
from experiments.cells import table
from experiments.store import Results
if __name__ == "__main__":
    results = Results(Path(sys.argv[1]))
    cells = [c for c in table("optdigits").cells if c.learning_rate == 0.1][:2]
    for line, curves in run.run(cells, 2, 0.2):
        results.add(line, curves)
"""


@pytest.mark.skipif("ABCGBM_DATA" not in os.environ, reason="ABCGBM_DATA is not set")
@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_processes_end_with_the_run_that_started_them(tmp_path, how):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    with subprocess.Popen(
        [sys.executable, script, tmp_path],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stderr is not None
        assert "step" in process.stderr.readline()  # a cell is running
        process.send_signal(how)
        # The pipe ends with the last process that could write to it.
        _, rest = end_of(process)
    assert process.returncode in (-how, 1, 130), rest
    assert Results(tmp_path).cells() == {}
