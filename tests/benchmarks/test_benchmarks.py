"""The programs in ``benchmarks/``: a tiny run up to the page, and its computations."""

import json
from pathlib import Path

import numpy as np
import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks import analysis, child, compare, generated, measure, report, sets
from benchmarks.compare import Plan
from benchmarks.peers import SYSTEMS, Setting
from benchmarks.results import FOLDER, ROOT, Cell, Results

TINY = "120x3x3"
CELL = Cell("training", TINY, "mart", 1, 2, 0)


def line(cell=CELL, **values):
    return {**cell._asdict(), **values}


def results_of(path, *lines):
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return Results(path)


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """Return the folder of a run of one of our systems and one peer that is always installed."""
    folder = tmp_path_factory.mktemp("benchmarks")
    arguments = f"run --folder {folder} --sets {TINY} --ours mart --peers HistGradientBoosting"
    options = "--threads 1 --steps 2 --repeats 1 --what training curve prediction size memory"
    compare.main(f"{arguments} {options}".split())
    return folder


@pytest.mark.slow
def test_run_measures_every_cell(tiny_run):
    lines = Results(tiny_run / "latest.jsonl").lines
    assert len(lines) == 2 * 5
    assert not [line["reason"] for line in lines if "reason" in line]
    for of in lines:
        assert of["shape"] == [120, 3, 3]
        assert {"version", "date", "commit", "machine", "load_average", "command"} < set(of)


@pytest.mark.slow
def test_second_run_has_nothing_to_measure(tiny_run, monkeypatch):
    plan = Plan(
        sets=[TINY],
        what=["training", "curve", "prediction", "size", "memory"],
        ours=["mart"],
        peers=["HistGradientBoosting"],
        threads=[1],
        steps=2,
        repeats=1,
    )
    monkeypatch.setattr(compare, "in_child", None)
    monkeypatch.setattr(sets, "load", None)
    before = (tiny_run / "latest.jsonl").read_text()
    compare.run(plan, Results(tiny_run / "latest.jsonl"))
    assert (tiny_run / "latest.jsonl").read_text() == before


@pytest.mark.slow
def test_page_shows_ratios_of_measurements(tiny_run, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "benchmarks.md").write_text("words\n<!-- speed -->\n<!-- end of speed -->\n")
    compare.main(["report", "--folder", str(tiny_run), "--docs", str(tmp_path)])
    page, whole = (tmp_path / "benchmarks.md").read_text(), (tiny_run / "latest.md").read_text()
    seconds = Results(tiny_run / "latest.jsonl").table("training", "cpu", 1)
    expected = report.ratio(seconds[TINY, "HistGradientBoosting"] / seconds[TINY, "mart"])
    assert page.startswith("words\n<!-- speed -->\n")
    assert f" | - | - | - | - | {expected} | {expected} |" in page
    assert f"| {TINY} | mart | - | - | - | - | {expected} | {expected} |" in whole
    for figure in ("benchmarks_training.png", "benchmarks_errors.png"):
        assert (tmp_path / figure).stat().st_size > 0


def test_committed_page_has_the_tables_of_the_committed_results():
    tables = "\n".join(report.tables_of_page(Results(FOLDER / "latest.jsonl")))
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert f"<!-- speed -->\n{tables}<!-- end of speed -->" in page


def test_error_curve_matches_the_model(tiny_run):
    data = sets.load(TINY)
    model = SYSTEMS["mart"].make(Setting(2, 1)).fit(data.X_train, data.y_train)
    errors = np.count_nonzero(model.predict(data.X_test) != data.y_test)
    assert analysis.error_curves(Results(tiny_run / "latest.jsonl"))[TINY]["mart"][-1] == errors


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_predicts_in_stages(name):
    system = SYSTEMS[name]
    if not system.is_installed():
        pytest.skip(f'{name} is missing: pip install "abcgbm[bench]"')
    data = sets.load(TINY)
    model = system.make(Setting(3, 1)).fit(data.X_train, data.y_train)
    stages = list(system.staged_classes(model, data.X_test))
    assert len(stages) == 3
    np.testing.assert_array_equal(np.ravel(stages[-1]), np.ravel(model.predict(data.X_test)))
    proba = system.predictor(model, 1)(data.X_test)
    np.testing.assert_array_equal(proba.argmax(axis=1), np.ravel(stages[-1]))
    n_trees = 3 * (data.y_train.max() + 1 if system.has_tree_per_class else 1)
    assert system.n_leaves(model) <= n_trees * Setting(3, 1).max_leaf_nodes


def test_repeats_alternate_between_systems():
    plan = Plan(sets=["letter"], what=["training"], ours=["mart"], peers=["XGBoost"], repeats=2)
    found = [(cell.repeat, cell.threads, cell.system) for cell in compare.cells(plan)]
    assert found == [
        (repeat, threads, system)
        for repeat in (0, 1)
        for threads in (1, 2)
        for system in ("mart", "XGBoost")
    ]


def test_dataset_is_loaded_once_for_all_measurements():
    names = [cell.set for cell in compare.cells(Plan(sets=["letter", "20000x20x10"]))]
    changes = [name for name, last in zip(names, [None, *names], strict=False) if name != last]
    assert len(changes) == len(set(changes)) == 1 + len(generated.grid_names())


@pytest.mark.parametrize(
    ("result", "done"),
    [
        (line(wall=1.0), {0}),
        (line(wall=99.0, only_repeat=True), {0, 1}),
        (line(reason="out of memory"), {0, 1}),
        ({"what": "all", "set": "all", "system": "mart", "reason": "slow"}, {0, 1}),
        ({"what": "all", "set": "letter", "system": "mart", "reason": "slow"}, set()),
        ({"what": "all", "set": TINY, "system": "XGBoost", "reason": "slow"}, set()),
    ],
)
def test_measured_capped_and_skipped_cells_are_done(result, done, tmp_path):
    results = results_of(tmp_path / "some.jsonl", result)
    cells = [CELL._replace(repeat=repeat) for repeat in (0, 1)]
    assert {cell.repeat for cell in cells if compare.is_settled(cell, results)} == done


def test_slow_system_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "in_child", lambda job, give_up: {"wall": 5.0, "cpu": 5.0})
    results = Results(tmp_path / "some.jsonl")
    plan = Plan(sets=[TINY], what=["training"], ours=["mart"], peers=[], threads=[1], cap=4.0)
    compare.run(plan, results)
    assert [of["only_repeat"] for of in Results(results.path).lines] == [True]
    assert "once only" in "".join(report.not_measured(results))


def test_page_shows_a_reason_once(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    for _ in range(2):
        compare.leave_out([("CatBoost", "covertype", "takes an hour")], results)
    shown = report.not_measured(results)
    assert shown.count("| CatBoost | covertype | all | takes an hour |") == 1


@pytest.mark.slow
def test_failed_process_is_recorded_with_its_error():
    job = measure.Job("training", "no such folder", "mart", 1, 1)
    with pytest.raises(child.ChildFailedError, match="FileNotFoundError"):
        measure.in_child(job)


def test_process_is_killed_after_the_time_limit():
    job = measure.Job("training", "no such folder", "mart", 1, 1)
    with pytest.raises(child.ChildFailedError, match=r"took more than 0\.001 s"):
        measure.in_child(job, 0.001)


def test_best_repeat_of_the_longest_training_counts(tmp_path):
    short = CELL._replace(steps=1)
    cells = [line(short, cpu=0.1), line(cpu=3.0), line(CELL._replace(repeat=1), cpu=2.0)]
    results = results_of(tmp_path / "some.jsonl", *cells)
    assert results.table("training", "cpu", 1) == {(TINY, "mart"): 2.0}
    assert results.table("training", "cpu", 2) == {}


def test_target_is_reached_by_all_with_a_tree_per_class():
    curves = {"mart": [9, 5, 4], "XGBoost": [9, 8, 6], "CatBoost": [20, 15, 10]}
    assert analysis.target_errors(curves) == 6
    assert [analysis.steps_to(errors, 6) for errors in curves.values()] == [2, 3, None]
    fits = {("letter", "mart"): 6.0, ("letter", "CatBoost"): 1.0}
    assert analysis.seconds_to_target({"letter": curves}, fits) == {("letter", "mart"): 4.0}


def test_slope_is_the_exponent_of_growth():
    assert analysis.slope({n: 3.0 * n**1.5 for n in (10, 20, 80)}) == pytest.approx(1.5)
    assert analysis.slope({10: 1.0}) is None


def test_grid_is_indexed_by_the_varying_number():
    centre, wide = generated.CENTRE, generated.GRIDS["D"][-1]
    grids = analysis.grids({(centre.name, "mart"): 1.0, (wide.name, "mart"): 8.0})
    assert grids["D"]["mart"] == {centre.n_features: 1.0, wide.n_features: 8.0}
    assert grids["N"]["mart"] == {centre.n_rows: 1.0}


def test_speed_up_is_the_time_of_one_thread_over_that_of_two(tmp_path):
    lines = [
        line(CELL._replace(what="load", threads=threads, repeat=repeat), wall=wall)
        for threads, walls in ((1, (4.0, 6.0, 50.0)), (2, (2.0, 3.0, 1.0)))
        for repeat, wall in enumerate(walls)
    ]
    idle, loaded = analysis.speed_ups(results_of(tmp_path / "some.jsonl", *lines))
    assert idle == {}
    assert loaded == {(TINY, "mart"): 3.0}  # medians


def test_shape_name_round_trips():
    for shape in generated.GRIDS["K"]:
        assert generated.parse(shape.name) == shape
    for name in ("letter", "10x10", "0x5x2", "5x5x5x5"):
        assert generated.parse(name) is None


def test_synthetic_table_is_reproducible_and_has_every_class():
    first, second = (generated.generate(generated.Shape(60, 4, 30)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.X_train.shape == (60, 4)
    assert set(first.y_train) == set(range(30))


def test_arrays_suit_all_systems(tmp_path):
    data = sets.load(TINY)
    sets.write(data, tmp_path)
    X, y = sets.read(tmp_path, "train")
    assert X.flags.c_contiguous
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, data.X_train)
    assert set(y) == {0, 1, 2}


def test_datasets_are_in_the_order_of_the_paper():
    names = ["9x2x2", "isolet", "80x2x2", "covertype"]
    assert sets.in_order(names) == ["covertype", "isolet", "9x2x2", "80x2x2"]


def test_unknown_dataset_is_refused():
    with pytest.raises(SystemExit, match="data set 'leter'; expected covertype, letter"):
        compare.check(Plan(sets=["leter"]))
