"""The program ``experiments/defaults``: its tables, a tiny run up to the page, and its computations."""

import json
import math
import re
import sys

import numpy as np
import pytest

pytest.importorskip("experiments", reason="experiments are in the repository only")
pytest.importorskip("pandas", reason="experiments read tables with pandas")

from benchmarks.results import Results
from experiments.defaults import __main__ as program
from experiments.defaults import frames, generated, measure, page, pool, rows, summary, systems
from experiments.defaults.candidates import CANDIDATES, settled
from experiments.defaults.cells import Cell, parts_of_table
from experiments.defaults.worker import Workers

from abcgbm import ABCBoostClassifier

WITHOUT_DATA = ["iris", "wine", *pool.GENERATED, *pool.HELD_BACK]
SMALL = [name for name in WITHOUT_DATA if pool.shapes()[name].rows <= 3_100]
BEGIN, END = f"<!-- {page.MARKER} -->\n", f"<!-- end of {page.MARKER} -->"
PAGE = f"words\n{BEGIN}old\n{END}\nmore words\n"
TINY = {
    "tiny": {"max_iter": 2, "learning_rate": 0.15, "max_leaf_nodes": "=classes"},
    "other": {"max_iter": 1},
}
SPLIT_SHARE = measure.VALIDATION_SHARE


def line(system, errors, log_loss=0.5, table="iris", part="test", **others):
    build = None if system in systems.PEERS else "b"
    cell = Cell("defaults", table, part, system, {}, build)
    found = {"errors": errors, "n": 100, "log_loss": log_loss, "cpu": 1.0, "steps": 100}
    return {**cell._asdict(), **found, "version": "1", "machine": "some", **others}


def reason(system, **others):
    return {
        **Cell("defaults", "iris", "test", system, {}, None)._asdict(),
        "reason": "slow",
        **others,
    }


# The pool


def test_pool_has_tables_of_all_sizes():
    shapes = pool.shapes()
    assert {*shapes} == {*pool.ALL}
    assert 35 <= len(pool.POOL) <= 55
    assert not {*pool.POOL} & {*pool.HELD_BACK}
    classes = [shapes[name].classes for name in pool.POOL]
    n_rows = [shapes[name].rows for name in pool.POOL]
    assert (min(classes), max(classes)) == (3, 300)
    assert min(n_rows) <= 150
    assert max(n_rows) >= 100_000


@pytest.mark.parametrize("name", SMALL)
def test_table_has_the_recorded_digest(name):
    parts = pool.load(name)
    classes = np.arange(pool.shapes()[name].classes)
    assert np.array_equal(np.unique(parts.train.y), classes)
    assert np.array_equal(np.unique(parts.test.y), classes)


def test_another_table_is_refused(monkeypatch):
    changed = pool.shapes()["iris"]._replace(digest="0")
    monkeypatch.setattr(pool, "shapes", lambda: {"iris": changed})
    with pytest.raises(ValueError, match=r"iris: .* expected .*: another table"):
        pool.load("iris")


@pytest.mark.parametrize("name", ["iris", "three-150"])
def test_splits_have_all_classes_and_differ(name):
    parts = pool.load(name)
    judged = []
    for part in parts_of_table(name, "defaults", "cv"):
        fit_rows, judged_rows = measure.parts_of(parts, part)
        assert len(fit_rows.y) + len(judged_rows.y) == len(parts.train.y)
        assert len(judged_rows.y) == pytest.approx(SPLIT_SHARE * len(parts.train.y), abs=3)
        for of in (fit_rows, judged_rows):
            assert np.array_equal(np.unique(of.y), np.unique(parts.train.y))
        judged.append(judged_rows.X.tobytes())
    assert len({*judged}) == len(judged)


def test_split_is_stratified():
    y = np.repeat([0, 1, 2], [1, 4, 40])
    is_apart = rows.apart(y, 0.25, seed=0)
    assert [int(is_apart[y == k].sum()) for k in range(3)] == [0, 1, 10]


def test_class_with_few_rows_is_dropped_from_both_parts():
    train = rows.numbers(np.arange(9.0)[:, None], [0] * 4 + [1] * 2 + [2] * 3)
    test = rows.numbers(np.arange(4.0)[:, None], [2, 1, 0, -1])
    parts = rows.common_classes(train, test, least=3)
    assert parts.train.y.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert parts.test.y.tolist() == [1, 0]


def test_digest_depends_on_every_value():
    parts = pool.load("three-150")
    changed = parts.test.X.copy()
    changed[-1, -1] += 1e-4
    other = parts._replace(test=parts.test._replace(X=changed))
    assert rows.digest(other) != rows.digest(parts) == rows.digest(pool.load("three-150"))


def test_informative_category_depends_on_the_class():
    rng = np.random.default_rng(0)
    law = generated.counts(rng, 4000, n_classes=4, n_features=1)
    level = generated.class_category(rng, law, n_levels=40, purity=0.6).X[:, -1]
    right = sum(np.bincount(law.y[level == of]).max() for of in np.unique(level))
    assert right / 4000 == pytest.approx(0.6 + 0.4 / 4, abs=0.05)


# Tables in the format of each system


def test_category_not_seen_in_fit_is_missing():
    train = rows.Rows(np.array([[3.0], [7.0]]), np.array([True]), np.array([0, 1]))
    other = train._replace(X=np.array([[7.0], [5.0], [np.nan]]))
    levels = frames.levels_of(train)
    table = frames.with_categories(other, levels)
    assert table["x0"].cat.codes.tolist() == [1, -1, -1]
    assert frames.missing_as_level(other, levels)["x0"].tolist() == [1, -1, -1]
    assert frames.with_categories(train, {}) is train.X


def test_high_cardinality_column_is_numeric_for_hist_gradient_boosting():
    X = np.column_stack([np.arange(600.0) % 300, np.arange(600.0) % 2])
    of = rows.Rows(X, np.array([True, True]), np.zeros(600, dtype=int))
    table = frames.few_levels(of, frames.levels_of(of))
    assert [str(kind) for kind in table.dtypes] == ["float64", "category"]
    assert np.array_equal(table["x0"], X[:, 0])


# Candidates


def test_parameter_may_depend_on_the_table():
    sizes = {"rows": 9000, "features": 4, "classes": 3}
    given = {
        "algorithm": {"criterion": "mart", "baseline": "prior"},
        "max_leaf_nodes": "=max(8, rows // 300)",
    }
    assert settled(given, sizes) == {
        "algorithm": {"criterion": "mart", "baseline": "prior"},
        "max_leaf_nodes": 30,
    }


@pytest.mark.parametrize("name", CANDIDATES)
@pytest.mark.parametrize("mode", ["defaults", "stopping"])
def test_every_candidate_can_be_fitted(name, mode, tmp_path):
    file = tmp_path / "iris.npz"
    pool.write(pool.load("iris"), file)
    parameters = {**CANDIDATES[name], "max_iter": 3}
    found = measure.answer(measure.Job(str(file), mode, "cv-0", name, parameters, 60.0))
    assert found["n"] == 24
    assert found["errors"] < 10


# A run


@pytest.fixture
def tiny_run(tmp_path, monkeypatch):
    """Return the file of a run of two candidates in this process."""
    monkeypatch.setattr(Workers, "ask", lambda self, python, job: measure.answer(job))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    more = tmp_path / "more.json"
    more.write_text(json.dumps(TINY))
    file = tmp_path / "defaults.jsonl"
    command = f"run --file {file} --candidates {more} --systems tiny other --build b"
    command += " --tables iris three-150 --parts cv test"
    program.main(command.split())
    return file, command


def test_run_measures_every_cell_once(tiny_run, monkeypatch):
    file, command = tiny_run
    lines = Results(file).lines
    assert len(lines) == 2 * 2 * (10 + 1)
    assert not any("reason" in of for of in lines)
    monkeypatch.setattr(Workers, "ask", None)
    program.main(command.split())
    assert len(Results(file).lines) == len(lines)


def test_cell_is_scored_on_the_test_part(tiny_run):
    parts = pool.load("iris")
    model = ABCBoostClassifier(max_iter=2, learning_rate=0.15, max_leaf_nodes=3).fit(
        parts.train.X, parts.train.y
    )
    (of,) = (
        of
        for of in Results(tiny_run[0]).lines
        if (of["table"], of["part"], of["system"]) == ("iris", "test", "tiny")
    )
    proba = model.predict_proba(parts.test.X)
    assert of["errors"] == np.count_nonzero(model.predict(parts.test.X) != parts.test.y)
    loss = -np.log(proba[np.arange(len(parts.test.y)), parts.test.y]).mean()
    assert of["log_loss"] == pytest.approx(loss, abs=1e-6)
    assert (of["n"], of["steps"], of["build"]) == (45, 2, "b")


def test_same_name_with_other_parameters_is_refused(tiny_run, tmp_path):
    (tmp_path / "more.json").write_text(json.dumps({**TINY, "tiny": {"max_iter": 3}}))
    with pytest.raises(SystemExit, match="tiny@b has results with other parameters"):
        program.main(tiny_run[1].split())


def test_unknown_system_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"\['unknown'\]; expected some of LightGBM"):
        program.main(f"run --file {tmp_path / 'none'} --systems unknown".split())


def test_report_writes_between_the_markers(tiny_run, tmp_path, capsys):
    out = tmp_path / "page.md"
    out.write_text(PAGE)
    program.main(f"report --file {tiny_run[0]} --page {out}".split())
    text = out.read_text()
    assert text.startswith("words\n")
    assert text.endswith("more words\n")
    assert "old" not in text
    assert "tiny@b" in text
    assert "tiny@b" in tiny_run[0].with_suffix(".md").read_text()
    program.main(f"show --file {tiny_run[0]} --parts test".split())
    assert "Default parameters: test parts" in capsys.readouterr().out


def test_process_returns_its_result_or_is_killed_after_the_time_limit(tmp_path):
    file = tmp_path / "iris.npz"
    pool.write(pool.load("iris"), file)
    job = measure.Job(str(file), "defaults", "test", "default", {"max_iter": 2}, 60.0)
    with Workers(120.0) as workers:
        assert workers.ask(sys.executable, job)["n"] == 45
        wrong = job._replace(parameters={"algorithm": "no such"})
        assert "ValueError" in workers.ask(sys.executable, wrong)["reason"]
    with Workers(0.01) as workers:
        assert workers.ask(sys.executable, job) == {"reason": "took more than 0.01 s"}


def test_fit_predicted_to_take_too_long_is_skipped(tmp_path):
    file = tmp_path / "iris.npz"
    pool.write(pool.load("iris"), file)
    job = measure.Job(str(file), "defaults", "test", "default", {"max_iter": 10**6}, 0.5)
    assert measure.answer(job)["reason"].startswith("TooSlowError: 1000000 steps would take")
    found = measure.answer(job._replace(mode="stopping", parameters={}, limit=0.01))
    assert found["steps"] <= found["most_steps"] < systems.MAX_STEPS


# Scores, ranks, the threshold


def test_splits_of_a_table_are_one_score():
    lines = [line("LightGBM", k, k / 10, part=f"cv-{k}", cpu=float(k)) for k in range(10)]
    assert summary.scores(lines[:9], "defaults", "cv") == {}
    score = summary.scores(lines, "defaults", "cv")["iris"]["LightGBM"]
    assert score == summary.Score(45, 1000, pytest.approx(0.45), 4.5, 100)


def test_ranks_are_means_over_tables_and_ties_share_them():
    lines = [
        *(line(name, n) for name, n in (("LightGBM", 3), ("XGBoost", 3), ("ours", 1))),
        *(
            line(name, n, table="wine")
            for name, n in (("LightGBM", 2), ("XGBoost", 1), ("ours", 9))
        ),
    ]
    of = summary.scores(lines, "defaults", "test")
    assert summary.ranks(of, "errors") == {"ours@b": 2.0, "LightGBM": 2.25, "XGBoost": 1.75}


def test_ranks_on_real_and_generated_tables_are_apart():
    ours_and_other = {"iris": (1, 2), "wine": (1, 2), "three-150": (3, 1)}
    lines = [
        line(system, errors, table=table)
        for table, both in ours_and_other.items()
        for system, errors in zip(("ours", "LightGBM"), both, strict=True)
    ]
    table = page.ranks_by_origin(lines, None)
    assert "|  | defaults, 2 real | defaults, 1 generated |" in table
    assert "| ours@b | 1.00 / 1.50 | 2.00 / 1.50 |" in table
    assert "| LightGBM | 2.00 / 1.50 | 1.00 / 1.50 |" in table


def test_pool_knows_which_tables_are_generated():
    assert {name for name in pool.POOL if pool.ALL[name].is_generated} == {*pool.GENERATED}
    assert [name for name in pool.HELD_BACK if not pool.ALL[name].is_generated] == ["digits"]


def test_table_counts_once_every_cell_has_a_result_or_a_reason():
    lines = [line("LightGBM", 3), line("ours", 1, table="wine"), line("LightGBM", 2, table="wine")]
    assert [*summary.scores(lines, "defaults", "test")] == ["wine"]
    assert [*summary.scores(lines, "defaults", "test", ["LightGBM"])] == ["iris", "wine"]
    lines += [line("ours", 1), reason("CatBoost"), line("CatBoost", 0, table="wine")]
    of = summary.scores(lines, "defaults", "test")
    assert of["iris"]["CatBoost"] is None
    found = summary.overviews(of)
    assert found["CatBoost"].n_tables == 1
    assert found["CatBoost"].rank_of_errors == 2.0  # last of three, and first
    assert found["ours@b"].rate == 0.01  # of the table that all have


def test_threshold_is_a_tenth_and_a_standard_error_above_the_best_peer():
    error = math.sqrt(0.1 * 0.9 / 100)
    for n_ours, is_missed in ((14, False), (15, True)):
        lines = [
            line("LightGBM", 10),
            line("XGBoost", 20),
            line("CatBoost", 1),
            line("ours", n_ours),
        ]
        of = summary.scores(lines, "defaults", "test")
        found = summary.worst(of, "ours@b")
        assert found == ("iris", pytest.approx(n_ours / 100 / (0.11 + error)), int(is_missed))
    assert summary.worst(summary.scores([line("ours", 1)], "defaults", "test"), "ours@b") is None


def test_times_are_a_geometric_mean_of_multiples():
    lines = [
        *(line("LightGBM", 1, table=name, cpu=2.0) for name in ("iris", "wine")),
        line("ours", 1, cpu=1.0),
        line("ours", 1, table="wine", cpu=16.0),
    ]
    of = summary.scores(lines, "defaults", "test")
    assert summary.times(of, "ours@b") == (pytest.approx(2.0), ("wine", 8.0))


def test_committed_page_has_the_tables_of_the_committed_results():
    text = program.PAGE.read_text()
    systems = re.search(r"experiments.defaults report --systems (.*)\n", text)[1].split()
    tables = "\n".join(page.tables_of_page(Results(program.FILE).lines, systems))
    assert f"{BEGIN}{tables}{END}" in text
