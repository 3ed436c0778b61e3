"""Multi-output trees of the reference: one tree for all classes, with a value for each class in a leaf.

Splits are searched with random projections: `G` and `H` of `Sums` are arrays of 32-bit numbers, one for
each projection. Everything else is as in `reference`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import reference
from reference import (
    IterationResult,
    Node,
    Split,
    StepScale,
    Sums,
    Target,
    draw,
    off_grid,
    on_grid,
    plain_derivatives,
)

PROJECTIONS = 4  # a kind of draws, in addition to those of `reference`
MAX_SORT_PROJECTIONS = 8  # to sort categories
BITS_OF_REPEATED = 24  # with a total weight below 2^24, weight 2 equals a repeated row
MULTI_OUTPUT = reference.Algorithm("multi-output", None)


# -------------------------------------------------------------------------------------- projections


def random_projections(
    seed: int, iteration: int, n_projections: int, n_classes: int
) -> list[list[int]]:
    """Return a sign for each class in each projection."""

    def sign(d: int, k: int) -> int:
        return 1 if draw(seed, PROJECTIONS, iteration, d * n_classes + k) < 2**63 else -1

    return [[sign(d, k) for k in range(n_classes)] for d in range(n_projections)]


def derivatives_along(u: Sequence[int], Rint: Sequence[int], y: int, shift: int) -> tuple[int, int]:
    """Return u_y - p.u and 1 - (p.u)^2, the variance of u."""
    g = sum(sign * R for sign, R in zip(u, Rint, strict=True))
    a = min(max(off_grid(u[y] * g, shift), 0.0), 2.0)
    return g, on_grid(a * (2.0 - a), shift)


# ------------------------------------------------------------------------------ grid of the search


def without_bits(x: int, t: int) -> int:
    """Return q of the specification: t bits dropped, rounded half up."""
    return (x + 2 ** (t - 1)) // 2**t if t > 0 else x


def without_bits_up(weight: int, tw: int) -> int:
    return -(-weight // 2**tw)


# -------------------------------------------------------------------------------------------splits


def quotient(x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Divide; 0 where the divisor is 0."""
    return np.divide(x, divisor, out=np.zeros_like(divisor), where=divisor != 0)


def differences(left: Sums, right: Sums, a: Any, b: Any) -> np.ndarray:
    t, u = np.asarray(left.G, float) * b, np.asarray(right.G, float) * a
    is_rounding = np.abs(t - u) <= 2.0**-20 * (np.abs(t) + np.abs(u))
    return np.where(is_rounding, 0.0, t - u)


def sum_of_four(terms: np.ndarray) -> float:
    s = [0.0] * 4
    for d, term in enumerate(terms.tolist()):
        s[d % 4] = s[d % 4] + term
    return (s[0] + s[2]) + (s[1] + s[3])


def along(sums: Sums, d: int) -> Sums:
    """Return the sums of one projection."""
    return Sums(int(sums.G[d]), sums.W, int(sums.H[d])) if sums.W > 0 else Sums()


@dataclass(frozen=True)
class SearchTarget(Target):
    """Training data of a multi-output tree; `shift` is S - t."""

    n_classes: int = 2
    tw: int = 0  # bits dropped from weights
    n_projections: int = 0  # 0: all classes

    @property
    def smoothing(self) -> float:
        return self.params.categorical_smoothing / math.ldexp(self.unit, self.tw)

    @property
    def min_hessian(self) -> int:
        bound = self.params.min_hessian_leaf * max(1, self.n_projections)
        return math.ceil(math.ldexp(bound, self.shift) / self.unit)

    def is_large_enough(self, child: Sums) -> bool:
        if without_bits_up(self.params.min_weight, self.tw) > child.W:
            return False
        is_bound = self.params.hessian_split and self.params.min_hessian_leaf > 0
        return not is_bound or int(np.sum(child.H)) >= self.min_hessian

    def score_and_gain(self, left: Sums, right: Sums, price: float = 0.0) -> tuple[float, float]:
        if self.params.hessian_split:
            per_class = self.n_classes / (self.n_projections or self.n_classes)
            score, cost = self.newton_score(left, right) - price, self.cost(left + right)
            return score, (score - cost) * (math.ldexp(self.unit, -self.shift) * per_class)
        a, b = float(left.W), float(right.W)
        e = differences(left, right, a, b)
        score = sum_of_four(e * e) / (a * b) - price
        factor = math.ldexp(self.unit, -(2 * self.shift + self.tw)) * (
            1 / max(1, self.n_projections)
        )
        return score, score / float(left.W + right.W) * factor

    def newton_score(self, left: Sums, right: Sums) -> float:
        a, b = (np.asarray(side.H, float) + self.l2 for side in (left, right))
        whole = np.asarray(left.H + right.H, float) + 2 * self.l2
        v = quotient(np.ones_like(whole), whole)
        e = differences(left, right, a, b)
        return sum_of_four(quotient((e * e) * v, a * b))

    def cost(self, node: Sums) -> float:
        """Return the cost of the second L2 penalty, as two children have two."""
        G, H = np.asarray(node.G, float), np.asarray(node.H, float)
        v = quotient(np.ones_like(H), H + 2 * self.l2)
        total = 0.0
        for term in quotient(((G * G) * self.l2) * v, H + self.l2).tolist():
            total = total + term
        return total

    def categorical_splits(self, feature: int, sums: list[Sums], node: Node) -> Iterator[Split]:
        """Yield splits of categories sorted by their means in one projection, then in the next."""
        for d in self.sort_projections(sums):
            of_codes, codes, left = [along(s, d) for s in sums], frozenset(), Sums()
            unit = self.chance_unit_along(node, d)
            for split in reference.categorical_splits(feature, of_codes, along(node.sums, d), self):
                left = sum((sums[c] for c in split.left_codes - codes), left)
                codes = split.left_codes
                yield replace(split, left=left, price=unit * split.price)

    def chance_unit_along(self, node: Node, d: int) -> float:
        price = self.penalty * (1 if self.n_projections == 1 else 2)
        if self.params.hessian_split:
            return price
        size = sum(abs(int(self.rows[i].G[d])) for i in node.rows)
        return (price / self.size_per_hessian) * float(size)

    def sort_projections(self, sums: list[Sums]) -> list[int]:
        """Return the projections by which categories are sorted: those of largest spread."""
        projections = range(self.n_projections or self.n_classes)
        if len(projections) <= MAX_SORT_PROJECTIONS:
            return list(projections)
        of_groups = [
            sum((sums[c] for c in codes), Sums()) for codes in reference.category_groups(sums, self)
        ]
        spread = [self.spread([along(s, d) for s in of_groups]) for d in projections]
        return sorted(sorted(projections, key=lambda d: (-spread[d], d))[:MAX_SORT_PROJECTIONS])

    def spread(self, of_codes: list[Sums]) -> float:
        total = 0.0
        for s in of_codes:
            if s.W > 0:
                whole = float(s.H) + self.l2 if self.params.hessian_split else float(s.W)
                total = total + (float(s.G) * float(s.G) / whole if whole != 0 else 0.0)
        return total


# -------------------------------------------------------------------------------------------- trees


def exact_gain(left: Sums, right: Sums, target: Target) -> float:
    """Return the exact gain of one class."""
    if target.params.hessian_split and 0 in (left.H + target.l2, right.H + target.l2):
        return 0.0
    return reference.score_and_gain(left, right, target)[1]


@dataclass
class Tree(reference.Tree):
    """A multi-output tree; `of_class` has the plain derivatives, which the split search does not use."""

    of_class: list[Target] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.nodes:
            rows = [[target.rows[i] for i in node.rows] for target in self.of_class]
            node.by_class = [sum(of_class, Sums()) for of_class in rows]

    def leaf_values(self, by: StepScale) -> np.ndarray:
        return np.array([self.values(leaf, by) for leaf in self.leaves()], np.float32)

    def values(self, leaf: Node, by: StepScale) -> list[float]:
        pairs = zip(leaf.by_class, self.of_class, strict=True)
        return [by.value(float(np.float32(reference.leaf_value(*pair)))) for pair in pairs]

    def class_gains(self, node: Node) -> list[float]:
        sides = self.nodes[node.left].by_class, self.nodes[node.left + 1].by_class
        return [exact_gain(*sums) for sums in zip(*sides, self.of_class, strict=True)]

    def flat_node(self, node: Node, by: StepScale) -> tuple[Any, ...]:
        weight = float(node.by_class[0].W) * self.target.unit
        if node.left < 0:
            return -1, 0, -1, False, 0.0, 0.0, weight, 0
        gain = 0.0
        for of_class in self.class_gains(node):
            gain = gain + of_class
        split, n_words = node.split, len(self.left_set(node))
        missing_left = reference.sides(node, split, self.target)[-1]
        return split.feature, split.bin, node.left, missing_left, 0.0, gain, weight, n_words

    def gains_of(self, feature: int) -> np.ndarray:
        """Return the gain of the splits on a feature, by class."""
        total = np.zeros(len(self.of_class))
        for node in self.nodes:
            if node.left >= 0 and node.split.feature == feature:
                total = total + np.array(self.class_gains(node))
        return total

    def flat(self, by: StepScale, changed: bool) -> IterationResult:
        features = sorted({node.split.feature for node in self.nodes if node.left >= 0})
        gains = [self.gains_of(feature) for feature in features]
        return replace(
            reference.flat_result([self], by, changed),
            leaf_value=self.leaf_values(by),
            gain_feature=np.array(features, np.int32),
            class_gain=np.array(gains, np.float64).reshape(len(features), len(self.of_class)),
        )


# ----------------------------------------------------------------------------------------an iteration


class Trainer(reference.Trainer):
    """Trainer with one tree for all classes in each iteration."""

    residual_bits = 30

    @property
    def n_projections(self) -> int:
        """Number of random projections; 0: all classes."""
        n = self.params.n_projections
        return n if n < self.n_classes else 0

    def lost_bits(self, of_class: Sequence[Target]) -> tuple[int, int]:
        """Return t and tw of the specification."""
        T = sum(of_class[y].rows[i].G for i, y in enumerate(self.y)) * (
            4 if self.n_projections else 1
        )
        return max(0, T.bit_length() - 30), max(0, self.weight_bits - 30)

    def row_derivatives(self) -> list[list[tuple[int, int]]]:
        """Return g and h of each row in each projection."""
        (Rint, shift), K = self.residual_grid(), self.n_classes
        if not self.n_projections:
            return [[plain_derivatives(R, k, shift) for k in range(K)] for R in Rint]
        us = random_projections(self.params.seed, self.number, self.n_projections, K)
        rows = zip(Rint, self.y, strict=True)
        return [[derivatives_along(u, R, y, shift) for u in us] for R, y in rows]

    def on_search_grid(self, x: int, weight: int, t: int) -> int:
        """Multiply by the weight and round to the grid of the search."""
        if self.weight_bits <= BITS_OF_REPEATED:
            return weight * without_bits(x, t)
        return without_bits(weight * x, t)

    def search_target(self, of_class: Sequence[Target]) -> SearchTarget:
        t, tw = self.lost_bits(of_class)
        rows = []
        for row, w in zip(self.row_derivatives(), self.sampled_weight(), strict=True):
            G, H = np.array([[self.on_search_grid(x, w, t) for x in gh] for gh in row], np.int64).T
            rows.append(Sums(G, without_bits_up(w, tw), H))
        K = self.n_classes
        key = draw(self.params.seed, reference.FEATURES, self.number, K * K)
        size = 1.0 if self.n_projections else 2.0
        made = (self.binned, rows, of_class[0].shift - t, self.unit, 1.0, self.params, key, size)
        return SearchTarget(*made, K, tw, self.n_projections)

    def grow_multi_output(self, leaf_scale: float) -> Tree:
        of_class = [self.target(k, -1, leaf_scale) for k in range(self.n_classes)]
        target = self.search_target(of_class)
        return Tree(target, -1, reference.grow(target), of_class)

    def added(self, trees: Sequence[Tree], base: int, by: StepScale) -> np.ndarray:
        added = np.zeros_like(self._raw)
        for tree in trees:
            for leaf, values in zip(tree.leaves(), tree.leaf_values(by), strict=True):
                added[:, leaf.rows] += values.astype(float)[:, None]
        return added

    def train_iteration(
        self, classes: Sequence[int], base: int, base_derivatives: bool, leaf_scale: float
    ) -> IterationResult:
        assert (list(classes), base) == (list(range(self.n_classes)), -1)
        tree = self.grow_multi_output(leaf_scale)
        if len(tree.nodes) == 1:
            return tree.flat(StepScale(), changed=False)
        result = tree.flat(self.apply_with_line_search([tree], base), changed=True)
        result.changed = bool(np.any(result.leaf_value != 0))
        return result
