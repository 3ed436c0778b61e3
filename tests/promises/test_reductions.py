"""Reductions over rows: they are documented, and independent of the row order."""

import re
from pathlib import Path

import numpy as np
import pytest

import core

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "determinism.md"
if not PAGE.is_file():
    pytest.skip("the sources are not here", allow_module_level=True)
ROWS = re.findall(r"^\| (`.+?) \| `([^`]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("names", "file"), ROWS)
def test_every_reduction_is_in_the_documented_file(names, file):
    source = (ROOT / file).read_text("utf-8")
    for name in re.findall(r"`([^`]+)`", names):
        assert re.search(rf"\b{name.split('.')[-1]}\(", source), name


@pytest.mark.parametrize("package", ["data", "loss"])
def test_page_names_every_reduction_of_the_core(package):
    header = (ROOT / "cpp" / package / "reductions.hpp").read_text("utf-8")
    declared = re.findall(r"^(?!using|#|//)[\w:<>]+(?: [\w:<>]+)* (\w+)\(", header, re.MULTILINE)
    assert len(declared) >= 4
    assert {*declared} <= set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))


LAYOUT = ("n_bins", "common", "is_categorical", "is_sparse", "bundle")


def table(rng: np.random.Generator) -> np.ndarray:
    """Return columns of many and few values, sparse columns, and a one-hot encoded category."""
    one_hot = np.eye(12)[(12 * rng.random(400) ** 2).astype(int)]
    rare = np.where(rng.random((400, 5)) < 0.1, rng.integers(0, 4, (400, 5)), 0)
    return np.hstack([rng.normal(size=(400, 2)), rng.integers(0, 3, (400, 2)), one_hot, rare])


@pytest.mark.parametrize("seed", range(5))
def test_layout_is_the_same_for_any_row_order(seed):
    rng = np.random.default_rng(seed)
    X = table(rng)
    thresholds = core.find_thresholds(X, np.ones(len(X), np.int64))
    expected = core.bin_table(X, thresholds).state()
    assert any(expected["is_sparse"])
    assert any(expected["bundle"] >= 0)
    found = core.bin_table(X[rng.permutation(len(X))], thresholds).state()
    for name in LAYOUT:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
