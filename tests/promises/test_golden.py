import json

import pytest

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    MultiOutputTrees,
    TreePerClass,
)
from golden import FILE, MODELS, OF_ABC, OF_PLAIN, OF_TREES, PARAMETERS, digest
from models import ensemble_arrays

DIGESTS = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", MODELS)
def test_golden_model_is_unchanged(name: str) -> None:
    """Record an intended change of the trees by `python tests/support/golden.py`."""
    assert digest(MODELS[name]()) == DIGESTS[name]


def test_golden_models_differ() -> None:
    assert list(DIGESTS) == list(MODELS)
    assert len(set(DIGESTS.values())) == len(DIGESTS)


def test_guard_acts_in_some_golden_models() -> None:
    arrays = ensemble_arrays(MODELS["abc-mart, forty classes"]())
    assert (arrays["tree_base_scale"] < 1).any()


def test_golden_models_set_every_parameter() -> None:
    assert {"algorithm", *PARAMETERS} == ABCBoostClassifier().get_params().keys()
    categorical = PARAMETERS["categorical_features"].get_params()
    assert categorical == Categorical().get_params()
    for kind, given in (
        (MultiOutputTrees, OF_TREES | {"n_projections": "all"}),
        (TreePerClass, OF_PLAIN),
        (AdaptiveBaseClass, OF_ABC),
    ):
        assert {"criterion", *given} == kind().get_params().keys()
