"""Calling a stage before the stage it needs, or with another table, is an error."""

import pytest

from abcgbm import _bench
from benchmarks.stages.tables import table_of

LETTER, ISOLET = (table_of(name, is_small=True) for name in ("letter", "isolet"))


def test_stage_needs_what_comes_before():
    stages = LETTER.stages()
    with pytest.raises(ValueError, match="find_split: count_node comes first"):
        stages.find_split()
    with pytest.raises(ValueError, match="split_root: find_split comes first"):
        stages.split_root()
    with pytest.raises(ValueError, match="root_histogram: count_roots comes first"):
        stages.root_histogram(0)
    with pytest.raises(ValueError, match="node: 0, or 1 and 2 after split_root"):
        stages.use_node(1)


def test_histogram_of_one_node_is_not_cut_as_that_of_another():
    stages = LETTER.stages()
    stages.count_node()
    stages.find_split()
    stages.split_root()
    stages.use_node(2)
    with pytest.raises(ValueError, match="find_split: count_node comes first"):
        stages.find_split()


def test_table_must_be_that_of_the_training():
    with pytest.raises(ValueError, match="binned: the table of the training"):
        _bench.Stages(ISOLET.binned, LETTER.trainer)
    with pytest.raises(ValueError, match="n_threads: at least 1"):
        _bench.Stages(LETTER.binned, LETTER.trainer, 0)
