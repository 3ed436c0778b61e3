"""Estimated losses of the base class's line search: within their bounds, and right where they decide."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref

_bench = pytest.importorskip("abcgbm._bench", reason="the module of the benchmarks is in no wheel")

GRID = 2.0**32  # scores and steps are multiples of its inverse


@dataclass(frozen=True)
class Rows:
    """Scores, and the full step of the classes other than the base class."""

    raw: np.ndarray  # (n_classes, n_rows)
    move: np.ndarray
    base: int
    y: np.ndarray
    weight: np.ndarray
    unit: float = 1.0

    def loss(self, n_halvings: int) -> float:
        """Return the loss after some halvings, as in the specification."""
        by = ref.StepScale(0, n_halvings)
        moved = self.raw + np.vectorize(by.value)(self.move)
        base_moves = np.delete(np.vectorize(by.base_value)(self.move), self.base, axis=0)
        moved[self.base] = self.raw[self.base] - base_moves.sum(axis=0)
        pairs = zip(moved.T.tolist(), self.y.tolist(), strict=True)
        losses = [ref.residuals_and_loss(F, y)[1] for F, y in pairs]
        bits = int(self.weight.sum()).bit_length()
        shift = ref.grid_shift(min(50, 62 - bits), max(losses))
        rows = zip(self.weight.tolist(), losses, strict=True)
        return ref.off_grid(sum(w * ref.on_grid(x, shift) for w, x in rows), shift) * self.unit

    def estimates(self) -> list[tuple[float, float, bool | None]]:
        return _bench.base_losses(self.raw, self.move, self.base, self.y, self.weight, self.unit)


def on_grid(values: np.ndarray) -> np.ndarray:
    return np.rint(values * GRID) / GRID


def random_rows(
    seed: int, n_classes: int, n_rows: int, score_scale: float, move_scale: float
) -> Rows:
    rng = np.random.default_rng(seed)
    return Rows(
        raw=on_grid(rng.normal(size=(n_classes, n_rows)).clip(-4, 4) * score_scale),
        move=on_grid(rng.normal(size=(n_classes, n_rows)).clip(-4, 4) * move_scale),
        base=int(rng.integers(n_classes)),
        y=rng.integers(0, n_classes, n_rows).astype(np.int32),
        weight=rng.choice([1, 2, 1000, 2**30], n_rows).astype(np.int64),
        unit=float(rng.choice([1.0, 2.0**-20, 3e7])),
    )


def assert_bounds_hold(rows: Rows) -> list[bool | None]:
    exact = [rows.loss(n) for n in range(11)]
    estimates = rows.estimates()
    for loss, (estimate, error, _) in zip(exact, estimates, strict=True):
        assert abs(estimate - loss) <= error
    decisions = [decreases for _, _, decreases in estimates[:-1]]
    for decreases, (here, halved) in zip(decisions, itertools.pairwise(exact), strict=True):
        assert decreases is None or decreases == (halved < here)
    return decisions


@given(
    seed=st.integers(0, 2**32),
    n_classes=st.integers(2, 9),
    n_rows=st.integers(1, 9),
    score_scale=st.sampled_from([0.0, 1e-6, 1.0, 30.0, 300.0, 2.0**17]),
    move_scale=st.sampled_from([1e-9, 1e-6, 1e-3, 1.0, 12.5]),
)
def test_estimates_are_within_their_bounds_and_decisions_are_right(
    seed, n_classes, n_rows, score_scale, move_scale
):
    assert_bounds_hold(random_rows(seed, n_classes, n_rows, score_scale, move_scale))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    n_classes=st.sampled_from([60, 400]),
    score_scale=st.sampled_from([1.0, 300.0]),
    move_scale=st.sampled_from([1e-3, 1.0, 12.5]),
)
def test_bounds_hold_with_many_classes(seed, n_classes, score_scale, move_scale):
    assert_bounds_hold(random_rows(seed, n_classes, 2, score_scale, move_scale))


@pytest.mark.parametrize("lead", [-2e6, -800.0, -700.0, 0.0, 700.0, 800.0, 2e6])
@pytest.mark.parametrize("y", [0, 1])
def test_bounds_hold_at_the_limits_of_the_exponential(lead, y):
    """The base class leads by a large margin before the step, or loses it by the step."""
    raw = np.array([[lead / 2], [-lead / 2], [0.0]])
    for moved in (0.5, 400.0):
        move = np.array([[0.0], [moved], [moved]])
        rows = Rows(raw, move, 0, np.array([y], np.int32), np.ones(1, np.int64))
        assert_bounds_hold(rows)


def test_most_estimates_decide():
    """Infinite bounds would pass the tests above."""
    decisions = [assert_bounds_hold(random_rows(seed, 30, 5, 1.0, 1.0)) for seed in range(5)]
    assert np.mean([decrease is not None for of_seed in decisions for decrease in of_seed]) > 0.9


def test_bounds_are_narrow():
    losses, errors = zip(
        *((loss, error) for loss, error, _ in random_rows(1, 30, 5, 1.0, 1.0).estimates()),
        strict=True,
    )
    assert max(error / loss for loss, error in zip(losses, errors, strict=True)) < 2e-6
    assert not math.isnan(sum(losses))
