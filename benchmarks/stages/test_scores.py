import numpy as np
import pytest
from scipy.special import log_softmax


def test_move_scores(benchmark, table):
    """Every second update reverts the first, so the loss has two values."""
    stages, trainer = table.stages(), table.trainer
    away, back = stages.move_scores(), stages.move_scores()
    assert back == trainer.loss() != away
    log_proba = log_softmax(trainer.raw(), axis=0)
    assert back == pytest.approx(-log_proba[table.y, np.arange(len(table.y))].sum())
    assert benchmark(stages.move_scores) in (away, back)
