"""The benchmark of large files on a small table: its output, not its time."""

import json

import pytest

pytest.importorskip("pyarrow")
from benchmarks import large_files


def run(tmp_path, task, *words):
    results = tmp_path / "results.jsonl"
    large_files.main([task, str(tmp_path / "table"), "--results", str(results), *words])
    lines = results.read_text().splitlines() if results.exists() else [""]
    return json.loads(lines[-1]) if lines[-1] else {}


def test_results_are_stored_and_printed(tmp_path, capsys):
    run(tmp_path, "make", "--files", "2", "--rows", "500", "--columns", "8")
    read = run(tmp_path, "read", "--repeats", "1")
    assert (read["what"], read["rows"], read["columns"]) == ("read", 1000, 8)
    trained = run(tmp_path, "train", "--steps", "3", "--limit", "6", "--limit-by", "addresses")
    assert trained["limit_by"] == "addresses"
    assert 0 < trained["peak_gb"] < 6
    capsys.readouterr()
    run(tmp_path, "report")
    assert "| 1,000 x 8 | 6 GB, addresses |" in capsys.readouterr().out


def test_killed_training_reports_its_signal_or_status(tmp_path):
    run(tmp_path, "make", "--files", "1", "--rows", "500", "--columns", "8")
    ended = run(tmp_path, "train", "--limit", "0.05", "--limit-by", "addresses")
    assert ended["reason"].startswith("ended by signal or status ")
