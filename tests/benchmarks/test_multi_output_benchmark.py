"""The program ``benchmarks/multi_output``: a tiny run up to the page, and its computations."""

import sys
from pathlib import Path

import numpy as np
import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks import sets
from benchmarks.multi_output import __main__ as program
from benchmarks.multi_output import measure, page
from benchmarks.multi_output.__main__ import Cell, Plan
from benchmarks.multi_output.systems import OURS, SYSTEMS, WITH_OUR_RIDGE
from benchmarks.peers import Setting
from benchmarks.results import FOLDER, ROOT, Results

from abcgbm import ABCBoostClassifier

TINY = "120x3x3"
BEGIN, END = f"<!-- {page.MARKER} -->\n", f"<!-- end of {page.MARKER} -->"
PAGE = f"words\n{BEGIN}old\n{END}\nmore words\n"
ORIGIN = {"version": "1", "machine": "some"}


def line(cell, **values):
    return {**cell._asdict(), **ORIGIN, **values}


@pytest.fixture
def tiny_run(tmp_path, monkeypatch):
    """Return the file of a run of one of our systems in this process."""
    monkeypatch.setattr(program, "in_child", lambda job, python, give_up: measure.run(job))
    monkeypatch.setattr(measure, "BATCH", 100)
    file = tmp_path / "multi_output.jsonl"
    what = "--what errors validation step model target --target 1000 --steps 3 --repeats 2"
    command = f"run --file {file} --sets {TINY} --systems mart --leaves 4 {what}"
    program.main(command.split())
    return file, command


def test_run_measures_every_cell_once(tiny_run, monkeypatch):
    file, command = tiny_run
    found = [(of["what"], of["repeat"]) for of in Results(file).lines]
    repeated = [(what, repeat) for what in ("step", "model", "target") for repeat in (0, 1)]
    assert found == [("errors", 0), ("validation", 0), *repeated]
    monkeypatch.setattr(program, "in_child", None)
    program.main(command.split())
    assert len(Results(file).lines) == len(found)


def test_errors_are_those_of_the_model(tiny_run):
    data = sets.load(TINY)
    model = SYSTEMS["mart"].make(Setting(3, 1, max_leaf_nodes=4)).fit(data.X_train, data.y_train)
    (of,) = (of for of in Results(tiny_run[0]).lines if of["what"] == "errors")
    assert of["errors"][-1] == np.count_nonzero(model.predict(data.X_test) != data.y_test)
    proba = model.predict_proba(data.X_test)
    loss = -np.log(proba[np.arange(len(data.y_test)), data.y_test]).mean()
    assert of["last_loss"] == pytest.approx(loss, abs=1e-6)


def test_page_keeps_the_words_around_its_tables(tiny_run, tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    program.main(["report", "--file", str(tiny_run[0]), "--page", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert text.startswith(f"words\n{BEGIN}### Growth")
    assert text.endswith(f"{END}\nmore words\n")
    assert "old" not in text
    assert "errors without a tenth" in tiny_run[0].with_suffix(".md").read_text()


def test_committed_page_has_the_tables_of_the_committed_results():
    tables = "\n".join(page.tables_of_page(Results(FOLDER / "multi_output.jsonl"), program.RIDGE))
    assert f"{BEGIN}{tables}{END}" in (ROOT / "docs" / "benchmarks.md").read_text()


def test_page_without_markers_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("words")
    with pytest.raises(SystemExit, match="has no <!-- multi-output trees -->"):
        page.write(Results(tmp_path / "none.jsonl"), tmp_path / "page.md", 0.01)


def test_repeats_alternate_between_systems(tmp_path):
    plan = Plan(what=["step"], systems=["shared", "LightGBM"], repeats=2)
    found = list(program.cells(TINY, plan, Results(tmp_path / "none.jsonl")))
    assert [(of.repeat, of.system) for of in found] == [
        (repeat, system) for repeat in (0, 1) for system in ("shared", "LightGBM")
    ]
    assert {of.system: of.ridge for of in found} == {"shared": plan.ridge, "LightGBM": None}


def test_target_has_the_steps_that_errors_have_found(tmp_path):
    errors = Cell("errors", TINY, "mart", 20, 4, None, 0)
    results = Results(tmp_path / "some.jsonl")
    results.add(line(errors, errors=[9, 5, 5, 4]))
    plan = Plan(what=["target"], systems=["mart"], steps=4, repeats=1, target=5)
    assert [of.steps for of in program.cells(TINY, plan, results)] == [2]
    assert list(program.cells(TINY, Plan(**{**vars(plan), "target": 3}), results)) == []


def test_failure_is_noted_and_not_tried_again(tmp_path):
    plan = Plan(sets=[TINY], systems=["mart"], what=["step"], repeats=1, give_up=0.001)
    results = Results(tmp_path / "some.jsonl")
    for _ in range(2):
        program.run(plan, results)
    assert [of["reason"] for of in results.lines] == ["took more than 0.001 s"]
    assert page.tables(results, plan.ridge) == []


def test_peers_may_have_another_python():
    plan = Plan(peer_python="other")
    assert {plan.python_of(name) for name in OURS} == {sys.executable}
    assert plan.python_of("XGBoost-vector") == "other"


def test_time_of_iterations_is_without_the_first_and_beside_that_of_multi_output_trees(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    for system, cpus in (("shared", (0.5, 0.3)), ("LightGBM", (2.1, 2.3))):
        for repeat, cpu in enumerate(cpus):
            ridge = 0.01 if system in WITH_OUR_RIDGE else None
            cell = Cell("step", "20000x20x10", system, 20, 11, ridge, repeat)
            results.add(line(cell, cpu=cpu, cpu_first=0.1))
    shown = "\n".join(page.tables(results, 0.01))
    assert "| multi-output | 20 (1.00) | - |" in shown
    assert "| LightGBM | 200 (10.00) | - |" in shown
    assert "| multi-output |" not in "\n".join(page.tables(results, 0.1))


def test_chosen_steps_are_read_in_the_model_of_all_rows(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    cell = Cell("errors", "letter", "mart", 20, 3, None, 0)
    results.add(line(cell, errors=[9, 5, 7], lowest_loss=0.1, last_loss=0.2))
    chosen = {"by_loss": 1, "by_errors": 2, "errors_by_loss": 12, "errors_by_errors": 8}
    results.add(line(cell._replace(what="validation"), **chosen))
    shown = "\n".join(page.tables(results, 0.01))
    assert "| mart | 5 / 7 / 9 / 5; 0.1000 / 0.2000 |" in shown
    assert "| mart | 12 / 8 |" in shown


def test_fastest_number_of_leaves_reaches_the_target(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    for leaves, cpu in ((128, 9.0), (512, 4.0), (1024, 5.0)):
        cell = Cell("target", "covertype", "mart", leaves, 100, None, 0)
        results.add(line(cell, cpu=cpu, last=10_200))
    shown = "\n".join(page.tables(results, 0.01))
    assert "| covertype | mart | 512 | 100 | 10,200 | 4 |" in shown
    assert "1024" not in shown


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_predicts_in_stages(name):
    system = SYSTEMS[name]
    if not system.is_installed():
        pytest.skip(f'{name} is missing: pip install "abcgbm[bench]"')
    if name.startswith("shared") and "trees" not in ABCBoostClassifier().get_params():
        pytest.skip("shared trees are not there yet")
    data = sets.load(TINY)
    model = system.make(Setting(3, 1, ridge=0.01)).fit(data.X_train, data.y_train)
    stages = list(system.staged_classes(model, data.X_test))
    assert len(stages) == 3
    np.testing.assert_array_equal(stages[-1], np.ravel(model.predict(data.X_test)))
