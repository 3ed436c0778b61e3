"""A pickled model that was damaged is an error, never another model."""

import pickle

import numpy as np
import pandas as pd
import pytest

from abcgbm.model.seal import digest_of
from models import noisy_data, small

X, Y = noisy_data(n_rows=150)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(e=np.array(["x", "y", None])[Y % 3])
LABELS = np.array(["ash", "elm", "fir", "oak"])[Y]
MODEL = small("abc-logitboost", max_iter=2).fit(FRAME, LABELS)
STATE = pickle.dumps(MODEL)
ANSWERS = MODEL.predict_proba(FRAME), MODEL.decision_function(FRAME), MODEL.predict(FRAME)


def answers_of(state: bytes) -> tuple[np.ndarray, ...] | None:
    """What a pickled model answers, or None where that is an error."""
    try:
        model = pickle.loads(state)
        return model.predict_proba(FRAME), model.decision_function(FRAME), model.predict(FRAME)
    except Exception:  # noqa: BLE001 (whatever it is, it is no other model)
        return None


@pytest.mark.parametrize("part", range(4))
def test_flipped_bit_is_an_error_or_means_nothing(part):
    rng = np.random.default_rng(part)
    for place in rng.integers(0, 8 * len(STATE), 100).tolist():
        damaged = bytearray(STATE)
        damaged[place // 8] ^= 1 << place % 8
        found = answers_of(bytes(damaged))
        if found is not None:
            for one, other in zip(found, ANSWERS, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kept", ["model_", "history_"])
def test_changed_number_is_named_as_damage(kept):
    part = getattr(MODEL, kept)
    state = part.__getstate__()
    name, value = next((n, v) for n, v in state.items() if isinstance(v, np.ndarray) and v.size)
    changed = value[::-1].copy()
    assert digest_of(changed) != digest_of(value)
    with pytest.raises(ValueError, match=f"pickled {type(part).__name__} was changed or damaged"):
        type(part).__new__(type(part)).__setstate__(state | {name: changed})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [[1], 2]),
        (1, 1.0),
        (True, 1),
        ("1", 1),
        (["ab", "c"], ["a", "bc"]),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.array([0.0]), np.array([-0.0])),
        ({"a": None}, {"a": "None"}),
        (np.array(["a", None], object), np.array([None, "a"], object)),
    ],
    ids=repr,
)
def test_digest_tells_values_apart(one, other):
    assert digest_of(one) == digest_of(one) != digest_of(other)
