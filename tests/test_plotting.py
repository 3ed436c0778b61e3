import sys

import numpy as np
import pytest

from abcgbm import plotting

LOSSES = {"MART": [10.0, 1.0, 0.1], "ABC-MART": [10.0, 0.5, 0.0]}
ERRORS = {"MART": [7, 3, 3], "ABC-MART": [6, 2, 4]}


def test_figure_holds_both_curves_of_every_run():
    pytest.importorskip("matplotlib")
    left, right = plotting.plot_runs(LOSSES, ERRORS).axes
    for ax, curves in ((left, LOSSES), (right, ERRORS)):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(curves)
    assert left.get_yscale() == "log"
    assert right.lines[1].get_ydata().tolist() == ERRORS["ABC-MART"]


def test_loss_starts_before_the_first_step_and_errors_after_it():
    pytest.importorskip("matplotlib")
    left, right = plotting.plot_runs(LOSSES, ERRORS).axes
    assert left.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert right.lines[0].get_xdata().tolist() == [1, 2, 3]


def test_loss_of_zero_is_left_out_of_the_log_scale():
    pytest.importorskip("matplotlib")
    left, _ = plotting.plot_runs(LOSSES, ERRORS).axes
    np.testing.assert_array_equal(left.lines[1].get_ydata(), [10.0, 0.5, np.nan])


def test_lowest_point_of_each_error_curve_is_marked():
    pytest.importorskip("matplotlib")
    _, right = plotting.plot_runs(LOSSES, ERRORS).axes
    assert [line.get_markevery() for line in right.lines] == [[1], [1]]


@pytest.mark.parametrize(("ending", "first_bytes"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_picture_has_the_format_of_its_ending(tmp_path, ending, first_bytes):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"curves.{ending}"
    plotting.save_runs(path, LOSSES, ERRORS)
    assert path.read_bytes().startswith(first_bytes)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "abcgbm\[plot\]"'):
        plotting.plot_runs(LOSSES, ERRORS)
