"""Reference implementation of the native core, written from docs/arithmetic.md alone: slow and simple.

Sums over rows are Python integers, and float operations are done one by one in the order of that page, so
results are bit for bit those of the specification. `Trainer` and `IterationResult` have the interface of
`abcgbm._core`, so that one driver (`boost`) and one comparison serve both.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

LN2_HIGH = 0.693147180369123816490
LN2_LOW = 1.90821492927058770002e-10


def exponent(x: float) -> int:
    return math.frexp(x)[1]


# ------------------------------------------------------------------------------------------ weights


def largest_power_of_two_in(weights: Sequence[float]) -> Fraction:
    """Return the largest power of two, at most 1, that divides every weight."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    return min(Fraction(1), *(Fraction(n & -n, d) for n, d in ratios))


def balanced(sample_weight: Sequence[float], y: Sequence[int], n_classes: int) -> list[float]:
    """Return factors that give all classes with rows the same total weight; 1 for empty classes."""
    of_class = class_sums(sample_weight, y, n_classes)
    n_present = sum(of > 0 for of in of_class)
    return [float(sum(of_class) / (n_present * of)) if of else 1.0 for of in of_class]


def class_sums(sample_weight: Sequence[float], y: Sequence[int], n_classes: int) -> list[Fraction]:
    rows = list(zip(sample_weight, y, strict=True))
    return [
        sum((Fraction(s) for s, k in rows if k == this), Fraction()) for this in range(n_classes)
    ]


def mean_factor(sample_weight: Sequence[float], y: Sequence[int], factor: Sequence[float]) -> float:
    """Return f of the specification."""
    of_class = class_sums(sample_weight, y, len(factor))
    counted = [(Fraction(f), of) for f, of in zip(factor, of_class, strict=True) if f > 0]
    return float(sum(f * of for f, of in counted) / sum(of for _, of in counted))


@dataclass(frozen=True)
class Weights:
    weight: list[int]
    unit: float
    lost: float  # the largest relative loss of weight by rounding


def weigh(sample_weight: Sequence[float], y: Sequence[int], factor: Sequence[float]) -> Weights:
    """Return weights as integers, and their unit."""
    s, f = [float(w) for w in sample_weight], [float(factor[k]) for k in y]
    constant = f[0] if len(set(f)) == 1 else 1.0
    f = [1.0] * len(f) if len(set(f)) == 1 else f
    g, d = largest_power_of_two_in(s), largest_power_of_two_in(f)
    A = float(sum(map(Fraction, s)))
    total = float(sum(Fraction(a) * Fraction(b) for a, b in zip(s, f, strict=True)))
    is_exact = Fraction(2) ** (exponent(A) - 30) <= g
    bits = max(30, exponent(A) - exponent(float(g)) + 1 + 9) if is_exact else 30
    unit = max(Fraction(2) ** (exponent(total) - bits), g * d)
    if is_exact:
        x = [float(b * g / unit) for b in map(Fraction, f)]
        times = [int(a / g) for a in map(Fraction, s)]
    else:
        x = [float(Fraction(a * b) / unit) for a, b in zip(s, f, strict=True)]
        times = [1] * len(s)
    r = [max(1, round(of)) for of in x]
    weight = [n * of for n, of in zip(times, r, strict=True)]
    lost = max(0.0, *((a - b) / a for a, b in zip(x, r, strict=True)))
    return Weights(weight, float(unit) * constant, lost)


def integer_weights(sample_weight: Sequence[float]) -> tuple[list[int], float]:
    """Return integer weights and their unit, without class weights."""
    weights = weigh(sample_weight, [0] * len(sample_weight), [1.0])
    return weights.weight, weights.unit


def min_weight(min_samples_leaf: float, unit: float, lost: float = 0.0, factor: float = 1.0) -> int:
    slack = 2.0**-40 + min(2.0**-10, lost)
    return max(1, math.ceil(min_samples_leaf * factor * (1 - slack) / unit))


# --------------------------------------------------------------------------------------------- bins


def distinct_values(column: Sequence[float], weight: Sequence[int]) -> list[tuple[float, int]]:
    """Return ascending distinct values with their weights, without missing ones."""
    total: dict[float, int] = {}
    for x, w in zip(column, weight, strict=True):
        if not math.isnan(x):
            value = float(x) + 0.0  # -0.0 becomes 0.0
            total[value] = total.get(value, 0) + int(w)
    return sorted(total.items())


def first_values_of_bins(weight: Sequence[int], max_bins: int) -> list[int]:
    """Return the index of the first value of every bin except the first."""
    firsts = []
    bins_left, remaining, acc = max_bins, sum(weight), 0
    for j, w in enumerate(weight):
        values_fit = len(weight) - j <= bins_left - 1
        is_full = (2 * acc + w) * bins_left > 2 * remaining
        if j > 0 and bins_left > 1 and (values_fit or is_full):
            bins_left, remaining, acc = bins_left - 1, remaining - acc, 0
            firsts.append(j)
        acc += w
    return firsts


def threshold_between(a: float, b: float) -> float:
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


def find_thresholds(column: Sequence[float], weight: Sequence[int], max_bins: int) -> list[float]:
    values = distinct_values(column, weight)
    firsts = first_values_of_bins([w for _, w in values], max_bins)
    return [threshold_between(values[j - 1][0], values[j][0]) for j in firsts]


def code(x: float, thresholds: Sequence[float]) -> int:
    if math.isnan(x):
        return len(thresholds) + 1
    return sum(t < x for t in thresholds)


@dataclass(frozen=True)
class Binned:
    codes: list[list[int]]  # one list for each row
    n_bins: list[int]  # value bins and the one for missing values
    categorical: Sequence[bool]  # features that are split by sets of codes


def bin_table(
    X: np.ndarray, thresholds: Sequence[Sequence[float]], categorical: Sequence[bool] | None = None
) -> Binned:
    codes = [[code(x, t) for x, t in zip(row, thresholds, strict=True)] for row in X.tolist()]
    categorical = [False] * len(thresholds) if categorical is None else categorical
    return Binned(codes, [len(t) + 2 for t in thresholds], categorical)


# -------------------------------------------------------------------------------------------- draws


ROWS, FEATURES = 1, 2  # kinds of draws


def mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def draw(seed: int, *key: int) -> int:
    state = mix(seed)
    for part in key:
        state = mix(state ^ part)
    return state


def is_sampled(seed: int, iteration: int, row: int, fraction: float) -> bool:
    return math.ldexp(draw(seed, ROWS, iteration, row) >> 11, -53) < fraction


# ------------------------------------------------------------------- scores to residuals and losses


def horner(x: float, coefficients: Sequence[float]) -> float:
    q = coefficients[0]
    for c in coefficients[1:]:
        q = q * x + c
    return q


EXP_COEFFICIENTS = [1.0 / math.factorial(n) for n in range(13, 0, -1)] + [1.0]
LOG_COEFFICIENTS = [1.0 / odd for odd in range(21, 1, -2)] + [1.0]


def exp(x: float) -> float:
    x = max(x, -708.0)
    z = x * 1.4426950408889634 + 6755399441055744.0
    n = z - 6755399441055744.0
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return math.ldexp(horner(r, EXP_COEFFICIENTS), int(n))


def log(u: float) -> float:
    f, n = math.frexp(u)
    if f < 0.70710678118654752440:
        f, n = 2.0 * f, n - 1
    s = (f - 1.0) / (f + 1.0)
    q = horner(s * s, LOG_COEFFICIENTS)
    return n * LN2_HIGH + (n * LN2_LOW + (s + s) * q)


def log1p(x: float) -> float:
    u = 1.0 + x
    return log(u) + (x - (u - 1.0)) / u


def ordered_sum(values: Sequence[float], without: int) -> float:
    total = 0.0
    for k, value in enumerate(values):
        if k != without:
            total = total + value
    return total


def softmax_terms(F: Sequence[float]) -> tuple[list[float], int, float]:
    """Return exp(F_k - max F), the class of the maximum, and the sum of the other terms."""
    m = max(F)
    top = list(F).index(m)
    e = [exp(F_k - m) for F_k in F]
    return e, top, ordered_sum(e, without=top)


def softmax(F: Sequence[float]) -> list[float]:
    e, _, rest = softmax_terms(F)
    inv = 1.0 / (1.0 + rest)
    return [e_k * inv for e_k in e]


def residuals_and_loss(F: Sequence[float], y: int) -> tuple[list[float], float]:
    """Return r - p of every class and - log p_y, for the scores of one row."""
    e, top, rest = softmax_terms(F)
    inv = 1.0 / (1.0 + rest)
    R = [-(e_k * inv) for e_k in e]
    R[y] = ordered_sum(e, without=y) * inv
    return R, log1p(rest) + (F[top] - F[y])


def exp_of_step(value: float) -> float:
    return exp(value) if value < 0 else 1.0 / exp(-value)


def loss_after_update(F: Sequence[float], y: int, step: Sequence[float], base: int) -> float:
    """Return - log p_y of a row after a step, computed from the exponentials before, as in the search."""
    e, top, _ = softmax_terms(F)
    own, others = 0.0, 0.0
    for k in [*(k for k in range(len(F)) if k != base), base]:
        term = e[k] * exp_of_step(step[k])
        if k == y:
            own = term
        else:
            others = others + term
    if own > others:
        return log1p(others / own)
    return log(others + own) + ((F[top] - F[y]) - step[y])


def grid_shift(bits: int, largest: float) -> int:
    return min(bits - exponent(largest), 1000) if largest > 0 else 0


def on_grid(x: float, shift: int) -> int:
    """Return rint(x * 2^shift)."""
    return round(math.ldexp(x, shift))


def off_grid(n: int, shift: int) -> float:
    return math.ldexp(float(n), -shift)


# -------------------------------------------------------------------------------------- derivatives


def probability(A_k: float, is_label: bool) -> float:
    return 1.0 - A_k if is_label else A_k


def plain_derivatives(Rint: Sequence[int], k: int, shift: int) -> tuple[int, int]:
    A = off_grid(abs(Rint[k]), shift)
    return Rint[k], on_grid(A * (1.0 - A), shift)


def base_derivatives(Rint: Sequence[int], y: int, k: int, b: int, shift: int) -> tuple[int, int]:
    """Lemma 2 of the paper, with the sign of a residual."""
    A_b, A_k = off_grid(abs(Rint[b]), shift), off_grid(abs(Rint[k]), shift)
    p_b, p_k = probability(A_b, y == b), probability(A_k, y == k)
    h = (A_b * (1.0 - A_b) + A_k * (1.0 - A_k)) + 2.0 * (p_b * p_k)
    return Rint[k] - Rint[b], on_grid(h, shift)


# ----------------------------------------------------------------------------------- growing a tree


@dataclass(frozen=True)
class TrainParams:
    max_leaf_nodes: int = 20
    max_depth: int = 0  # 0: no bound
    min_weight: int = 10
    min_gain: float = 0.0
    learning_rate: float = 0.1
    # LogitBoost: the split weight is the hessian.
    hessian_split: bool = False
    l2_regularization: float = 0.0
    min_hessian_leaf: float = 0.0
    categorical_smoothing: float = 10.0
    categorical_penalty: float = 0.0
    subsample: float = 1.0
    max_features: int = 0  # 0: all
    max_path_features: int = 0  # on one path; 0: no bound
    interaction_groups: Sequence[Sequence[int]] = ()  # none: no constraint
    seed: int = 0
    multi_output: bool = False  # one tree for all classes: see reference_multi_output
    n_projections: int = 0  # of the gain of a multi-output tree; 0: all classes
    base_line_search: bool = False  # search the base class's step length in every iteration


@dataclass(frozen=True)
class Sums:
    """Integer sums over rows: residual, weight, hessian. (G and H are arrays in multi-output trees.)"""

    G: int = 0
    W: int = 0
    H: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.G + other.G, self.W + other.W, self.H + other.H)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.G - other.G, self.W - other.W, self.H - other.H)


@dataclass(frozen=True)
class Target:
    """Training data of one tree: the table, and the derivatives of each row."""

    table: Binned
    rows: list[Sums]
    shift: int
    unit: float
    leaf_scale: float
    params: TrainParams
    key: int = 0  # of the feature sampling
    size_per_hessian: float = 2.0  # inverse of the expected size of a residual

    @property
    def smoothing(self) -> float:
        return self.params.categorical_smoothing / self.unit

    @property
    def penalty(self) -> float:
        penalty = math.ldexp(self.params.categorical_penalty, self.shift) / self.unit
        return min(penalty, 2.0**200)

    @property
    def l2(self) -> float:
        return min(math.ldexp(self.params.l2_regularization, self.shift) / self.unit, 2.0**200)

    @property
    def min_hessian(self) -> int:
        bound = math.ldexp(self.params.min_hessian_leaf, self.shift) / self.unit
        return max(1, math.ceil(bound))

    # Overridden for multi-output trees.

    def categorical_splits(self, feature: int, sums: list[Sums], node: "Node") -> Iterator["Split"]:
        unit = self.chance_unit(node)
        for split in categorical_splits(feature, sums, node.sums, self):
            yield replace(split, price=unit * split.price)

    def chance_unit(self, node: "Node") -> float:
        """Return the expected score of an uninformative split."""
        if self.params.hessian_split:
            return self.penalty * (float(node.sums.H) + 2 * self.l2)
        size = sum(abs(self.rows[i].G) for i in node.rows)
        return (self.penalty / self.size_per_hessian) * float(size)

    def is_large_enough(self, child: Sums) -> bool:
        return is_large_enough(child, self)

    def score_and_gain(self, left: Sums, right: Sums, price: float = 0.0) -> tuple[float, float]:
        return score_and_gain(left, right, self, price)


@dataclass(frozen=True)
class Split:
    feature: int
    bin: int
    missing_left: bool
    left: Sums
    score: float = 0.0
    gain: float = 0.0
    left_codes: frozenset[int] = frozenset()  # of a categorical feature
    price: float = 0.0  # the expected score of an uninformative split


@dataclass
class Node:
    rows: list[int]
    sums: Sums
    depth: int
    path: tuple[int, ...] = ()  # features split on above
    split: Split | None = None
    left: int = -1
    by_class: Sequence[Sums] = ()  # of a multi-output tree: exact sums for the leaf values


def score_and_gain(
    left: Sums, right: Sums, target: Target, price: float = 0.0
) -> tuple[float, float]:
    """Return G_L^2/W_L + G_R^2/W_R - G^2/W without cancellation and less the penalty, and the gain."""
    node, unit, shift = left + right, target.unit, target.shift
    gl, gr = float(left.G), float(right.G)
    if target.params.hessian_split:
        a, b = float(left.H) + target.l2, float(right.H) + target.l2
        whole, factor = float(node.H) + 2 * target.l2, math.ldexp(unit, -shift)
    else:
        a, b = float(left.W), float(right.W)
        whole, factor = float(node.W), math.ldexp(unit, -2 * shift)
    t, u = gl * b, gr * a
    d = t - u
    if abs(d) <= 2.0**-50 * (abs(t) + abs(u)):  # only a rounding difference
        d = 0.0
    score = max(0.0, (d * d) / (a * b) - price)
    return score, score / whole * factor


def is_large_enough(child: Sums, target: Target) -> bool:
    if target.params.hessian_split and target.min_hessian > child.H:
        return False
    return target.params.min_weight <= child.W


def bin_sums(node: Node, feature: int, target: Target) -> list[Sums]:
    sums = [Sums()] * target.table.n_bins[feature]
    for i in node.rows:
        bin = target.table.codes[i][feature]
        sums[bin] = sums[bin] + target.rows[i]
    return sums


def features_of(node: Node, node_id: int, target: Target) -> list[int]:
    """Return the features that a node may be split on."""
    params = target.params
    features = list(range(len(target.table.n_bins)))
    if params.interaction_groups:
        open_groups = [g for g in params.interaction_groups if set(node.path) <= set(g)]
        features = sorted(set().union(*open_groups))
    if 0 < params.max_path_features <= len(set(node.path)):
        features = sorted(set(node.path))
    if 0 < params.max_features < len(features):
        key = mix(target.key ^ node_id)
        features = sorted(sorted(features, key=lambda f: (mix(key ^ f), f))[: params.max_features])
    return features


def numeric_splits(feature: int, sums: list[Sums]) -> Iterator[Split]:
    *values, missing = sums
    lefts = list(itertools.accumulate(values))
    for t, left in enumerate(lefts):
        yield Split(feature, t, False, left)
    if missing.W > 0:
        for t, left in enumerate(lefts[:-1]):
            yield Split(feature, t, True, left + missing)


def mean_residual(sums: Sums, node: Sums, target: Target) -> float:
    """Return the mean residual of a category, smoothed toward the mean of the node."""
    of_weight = (lambda s: s.H) if target.params.hessian_split else (lambda s: s.W)
    more_residual = target.smoothing * (float(node.G) / float(node.W))
    more_weight = target.smoothing * (float(of_weight(node)) / float(node.W))
    weight = float(of_weight(sums)) + more_weight
    return (float(sums.G) + more_residual) / weight if weight > 0 else 0.0


def category_groups(sums: list[Sums], target: Target) -> list[list[int]]:
    """Return codes with weight, in order; rare ones form one group at the position of the first."""
    groups: list[list[int]] = []
    rare: list[int] = []
    for code, s in enumerate(sums):
        if s.W == 0:
            continue
        if float(s.W) >= 0.5 * target.smoothing:
            groups.append([code])
        else:
            groups += [] if rare else [rare]
            rare.append(code)
    return groups


LOG_FACTORIAL = list(itertools.accumulate(log(float(max(1, n))) for n in range(2000)))


def log_ways(n_left: int, n: int) -> float:
    """Return the log of the number of subsets of this size, less the log of n - 1 ordered splits."""
    all_ways = LOG_FACTORIAL[n] - LOG_FACTORIAL[2]
    in_order = LOG_FACTORIAL[n - 1] - LOG_FACTORIAL[n - 2]
    sort_projections = ((all_ways - in_order) - LOG_FACTORIAL[n_left]) - LOG_FACTORIAL[n - n_left]
    return max(0.0, sort_projections)


def categorical_splits(
    feature: int, sums: list[Sums], node: Sums, target: Target
) -> Iterator[Split]:
    """Yield splits of categories sorted by their means, missing values among them, as if they were bins."""
    codes = category_groups(sums, target)
    total = [sum((sums[c] for c in group), Sums()) for group in codes]
    means = [mean_residual(s, node, target) for s in total]
    first = next((mean for mean in means if mean != 0), 0.0)
    sign = -1.0 if first > 0 else 1.0
    order = sorted(range(len(codes)), key=lambda p: (sign * means[p], p))
    lefts = itertools.accumulate(total[p] for p in order[:-1])
    for n, left in enumerate(lefts, start=1):
        on_left = frozenset(c for p in order[:n] for c in codes[p])
        price = log_ways(n, len(order))
        yield Split(feature, 0, len(sums) - 1 in on_left, left, left_codes=on_left, price=price)


def all_splits(node: Node, node_id: int, target: Target) -> Iterator[Split]:
    """Yield every split of a node, in the order that breaks ties."""
    for feature in features_of(node, node_id, target):
        sums = bin_sums(node, feature, target)
        if target.table.categorical[feature]:
            yield from target.categorical_splits(feature, sums, node)
        else:
            yield from numeric_splits(feature, sums)


def allowed_splits(node: Node, node_id: int, target: Target) -> Iterator[Split]:
    for split in all_splits(node, node_id, target):
        right = node.sums - split.left
        if target.is_large_enough(split.left) and target.is_large_enough(right):
            score, gain = target.score_and_gain(split.left, right, split.price)
            yield replace(split, score=score, gain=gain)


def best_split(node: Node, node_id: int, target: Target) -> Split | None:
    """Return the best split of a node, or None if the node must stay a leaf."""
    params = target.params
    splits = allowed_splits(node, node_id, target)
    best = max(splits, key=lambda split: split.score, default=None)  # the first of equal ones
    if best is None or not best.gain > params.min_gain:
        return None
    return best if params.max_depth == 0 or node.depth < params.max_depth else None


def sides(node: Node, split: Split, target: Target) -> list[bool]:
    """Return for each code whether it goes left; codes without weight go to the heavier child."""
    table, feature = target.table, split.feature
    missing = table.n_bins[feature] - 1
    heavier = split.left.W >= node.sums.W - split.left.W
    sums = bin_sums(node, feature, target)
    if table.categorical[feature]:
        return [c in split.left_codes if s.W > 0 else heavier for c, s in enumerate(sums)]
    of_missing = split.missing_left if sums[missing].W > 0 else heavier
    return [code <= split.bin for code in range(missing)] + [of_missing]


def make_node(
    rows: list[int], depth: int, path: tuple[int, ...], node_id: int, target: Target
) -> Node:
    node = Node(rows, sum((target.rows[i] for i in rows), Sums()), depth, path)
    if node.sums.W > 0:
        node.split = best_split(node, node_id, target)
    return node


def children(node: Node, target: Target) -> list[Node]:
    split, table = node.split, target.table
    is_left = sides(node, split, target)
    made = []
    for node_id, side in ((node.left, True), (node.left + 1, False)):
        rows = [i for i in node.rows if is_left[table.codes[i][split.feature]] == side]
        path = (*node.path, split.feature)
        made.append(make_node(rows, node.depth + 1, path, node_id, target))
    return made


def grow(target: Target) -> list[Node]:
    """Grow a tree best-first; return its nodes in the order of their creation."""
    nodes = [make_node(list(range(len(target.rows))), 0, (), 0, target)]
    for _ in range(target.params.max_leaf_nodes - 1):
        open_leaves = [n for n in nodes if n.left < 0 and n.split is not None]
        if not open_leaves:
            break
        best = max(
            open_leaves, key=lambda n: n.split.gain
        )  # the first of equal ones, with the lowest id
        best.left = len(nodes)
        nodes.extend(children(best, target))
    return nodes


def leaf_value(sums: Sums, target: Target) -> float:
    whole = float(sums.H) + target.l2
    if whole != 0:
        quotient = float(sums.G) / whole
    else:
        quotient = math.copysign(math.inf, sums.G) if sums.G else 0.0
    newton = min(max(target.leaf_scale * quotient, -50.0), 50.0)
    return off_grid(on_grid(target.params.learning_rate * newton, 32), 32)


# ----------------------------------------------------------------------------------------an iteration


@dataclass(frozen=True)
class StepScale:
    """The step (j, i) of the specification."""

    j: int = 0  # all values times 2^-j
    i: int = 0  # values of the base class times 2^-i

    def base_value(self, value: float) -> float:
        return off_grid(on_grid(value, 32 - self.j - self.i), 32)

    def value(self, value: float) -> float:
        return math.ldexp(self.base_value(value), self.i)


@dataclass
class IterationResult:
    """The trees of an iteration as concatenated arrays (see `abcgbm._core.IterationResult`)."""

    feature: np.ndarray
    bin: np.ndarray
    left: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    left_set_size: np.ndarray
    left_set: np.ndarray
    tree_start: np.ndarray
    tree_class: np.ndarray
    base_scale: float
    n_halvings: int
    changed: bool
    base: int = -1
    candidate_losses: Sequence[float] = ()  # of a search
    # Of a multi-output tree: a row for each leaf, and for each feature that it is split on.
    leaf_value: np.ndarray | None = None
    gain_feature: np.ndarray | None = None
    class_gain: np.ndarray | None = None


@dataclass
class Tree:
    target: Target
    tree_class: int
    nodes: list[Node] = field(default_factory=list)

    def leaves(self) -> list[Node]:
        return [node for node in self.nodes if node.left < 0]

    def left_set(self, node: Node) -> list[int]:
        """Return the codes that go left in a categorical split, 64 in each word."""
        if node.left < 0 or not self.target.table.categorical[node.split.feature]:
            return []
        *is_left, _ = sides(node, node.split, self.target)
        words = [is_left[start : start + 64] for start in range(0, len(is_left), 64)]
        return [sum(2**c for c, left in enumerate(word) if left) for word in words]

    def flat_node(self, node: Node, by: StepScale) -> tuple[Any, ...]:
        """Return feature, bin, left, missing_left, value, gain, weight, left_set_size."""
        weight = float(node.sums.W) * self.target.unit
        if node.left < 0:
            value = by.value(leaf_value(node.sums, self.target))
            return -1, 0, -1, False, value, 0.0, weight, 0
        split, n_words = node.split, len(self.left_set(node))
        missing_left = sides(node, split, self.target)[-1]
        return split.feature, split.bin, node.left, missing_left, 0.0, split.gain, weight, n_words


NODE_TYPES = (np.int32, np.int32, np.int32, np.bool_, np.float64, np.float64, np.float64, np.int32)


def flat_result(trees: Sequence[Tree], by: StepScale, changed: bool) -> IterationResult:
    nodes = [tree.flat_node(node, by) for tree in trees for node in tree.nodes]
    columns = [np.array(c, t) for c, t in zip(zip(*nodes, strict=True), NODE_TYPES, strict=True)]
    sets = [word for tree in trees for node in tree.nodes for word in tree.left_set(node)]
    columns.append(np.array(sets, np.uint64))
    start = np.cumsum([0] + [len(tree.nodes) for tree in trees])
    classes = np.array([tree.tree_class for tree in trees], np.int32)
    return IterationResult(*columns, start.astype(np.int64), classes, 2.0**-by.i, by.j, changed)


@dataclass(frozen=True)
class Labels:
    y: Sequence[int]
    weight: Sequence[int]
    unit: float
    n_classes: int


class Trainer:
    """Scores of the training rows, and iterations that update them."""

    residual_bits = 48

    def __init__(
        self,
        binned: Binned,
        labels: Labels,
        params: TrainParams,
        raw: np.ndarray | None = None,
    ) -> None:
        self.binned, self.unit, self.params = binned, labels.unit, params
        self.y, self.weight = [int(k) for k in labels.y], [int(w) for w in labels.weight]
        self.n_classes = labels.n_classes
        self.weight_bits = sum(self.weight).bit_length()  # c of the specification
        self.total_weight = sum(self.weight) * self.unit
        self.number = 0  # of the current iteration
        self.set_raw(np.zeros((self.n_classes, len(self.y))) if raw is None else raw)

    def set_raw(self, raw: np.ndarray) -> None:
        self._raw = raw
        pairs = zip(raw.T.tolist(), self.y, strict=True)
        self.R, self.losses = zip(*(residuals_and_loss(F, y) for F, y in pairs), strict=True)

    def raw(self) -> np.ndarray:
        return self._raw.copy()

    def residual_grid(self) -> tuple[list[list[int]], int]:
        bits = min(self.residual_bits, 60 - self.weight_bits)
        shift = grid_shift(bits, max(R[y] for R, y in zip(self.R, self.y, strict=True)))
        return [[on_grid(R_k, shift) for R_k in R] for R in self.R], shift

    def residuals(self) -> tuple[np.ndarray, int]:
        Rint, shift = self.residual_grid()
        return np.array(Rint, np.int64).T, shift

    def summed(self, losses: Sequence[float], weight: Sequence[int]) -> float:
        """Return the weighted sum of the losses of rows."""
        shift = grid_shift(min(50, 62 - self.weight_bits), max(losses))
        total = sum(w * on_grid(loss, shift) for w, loss in zip(weight, losses, strict=True))
        return off_grid(total, shift) * self.unit

    def class_losses(self) -> np.ndarray:
        weights = [
            [w if y == k else 0 for y, w in zip(self.y, self.weight, strict=True)]
            for k in range(self.n_classes)
        ]
        return np.array([self.summed(self.losses, weight) for weight in weights])

    def loss(self) -> float:
        return self.summed(self.losses, self.weight)

    def sampled_loss(self) -> float:
        """Return the loss of the sampled rows, which the line search compares."""
        return self.summed(self.losses, self.sampled_weight())

    def target(self, k: int, base: int, leaf_scale: float) -> Target:
        """Return the derivatives of class k; base = -1 means plain ones."""
        Rint, shift = self.residual_grid()
        rows = []
        for R, y, w in zip(Rint, self.y, self.sampled_weight(), strict=True):
            if base < 0:
                g, h = plain_derivatives(R, k, shift)
            else:
                g, h = base_derivatives(R, y, k, base, shift)
            rows.append(Sums(g * w, w, h * w))
        low, high = sorted((k, k if base < 0 else base))
        key = draw(self.params.seed, FEATURES, self.number, low * self.n_classes + high)
        size = 2.0 if base < 0 else 1.0
        return Target(self.binned, rows, shift, self.unit, leaf_scale, self.params, key, size)

    def sampled_weight(self) -> list[int]:
        """Return the weight of each row in the trees of this iteration."""
        seed, fraction = self.params.seed, self.params.subsample
        rows = enumerate(self.weight)
        return [w if is_sampled(seed, self.number, i, fraction) else 0 for i, w in rows]

    def grow_tree(self, k: int, base: int, leaf_scale: float) -> Tree:
        target = self.target(k, base, leaf_scale)
        return Tree(target, k, grow(target))

    def added(self, trees: Sequence[Tree], base: int, by: StepScale) -> np.ndarray:
        """Return the step: what the trees add to the scores."""
        added = np.zeros_like(self._raw)
        for tree in trees:
            for leaf in tree.leaves():
                value = leaf_value(leaf.sums, tree.target)
                added[tree.tree_class, leaf.rows] += by.value(value)
                if base >= 0:
                    added[base, leaf.rows] -= by.base_value(value)
        return added

    def train_iteration(
        self, classes: Sequence[int], base: int, base_derivatives: bool, leaf_scale: float
    ) -> IterationResult:
        against = base if base_derivatives else -1
        trees = [self.grow_tree(k, against, leaf_scale) for k in classes]
        if all(len(tree.nodes) == 1 for tree in trees):
            return flat_result(trees, StepScale(), changed=False)
        result = flat_result(trees, self.apply_with_line_search(trees, base), changed=True)
        result.changed = bool(np.any(result.value != 0))
        return result

    def search(self, candidates: Sequence[int]) -> IterationResult:
        """Train an iteration with the candidate of smallest loss as base class."""
        losses = [self.loss_after_step(base) for base in candidates]
        smallest = min(losses) * (1 + 1e-12)
        best = next(b for b, loss in zip(candidates, losses, strict=True) if loss <= smallest)
        result = self.train_iteration(
            [k for k in range(self.n_classes) if k != best], best, True, 1.0
        )
        result.base, result.candidate_losses = best, losses
        return result

    def loss_after_step(self, base: int) -> float:
        """Return the loss after the line search; infinite if no tree has a split."""
        trees = [self.grow_tree(k, base, 1.0) for k in range(self.n_classes) if k != base]
        if all(len(tree.nodes) == 1 for tree in trees):
            return math.inf

        def loss_after(by: StepScale) -> float:
            rows = zip(self._raw.T, self.y, self.added(trees, base, by).T, strict=True)
            losses = [loss_after_update(F.tolist(), y, step.tolist(), base) for F, y, step in rows]
            return self.summed(losses, self.sampled_weight())

        when = self.when_to_scale_base(trees, base)
        return loss_after(line_search(loss_after, self.sampled_loss(), when))

    def apply_with_line_search(self, trees: Sequence[Tree], base: int) -> StepScale:
        """Add the trees with a step scale at which the loss does not rise, and return the scale."""
        before, loss_before = self.raw(), self.sampled_loss()

        def loss_after(by: StepScale) -> float:
            self.set_raw(before + self.added(trees, base, by))
            return self.sampled_loss()

        by = line_search(loss_after, loss_before, self.when_to_scale_base(trees, base))
        loss_after(by)
        return by

    def when_to_scale_base(self, trees: Sequence[Tree], base: int) -> str:
        if base < 0 or len(trees) == 1:
            return "never"
        return "always" if self.params.base_line_search else "if the loss rises"


def line_search(
    loss_after: Callable[[StepScale], float], loss_before: float, when_to_scale_base: str
) -> StepScale:
    """Return a step scale after which the loss is not larger than before."""
    by = StepScale()
    if when_to_scale_base == "always":
        by = last_decreasing(loss_after, [StepScale(0, i) for i in range(11)])
    elif when_to_scale_base == "if the loss rises" and loss_after(by) > loss_before:
        by = last_decreasing(loss_after, [StepScale(0, i) for i in range(11)])
        by = last_decreasing(loss_after, [StepScale(by.j - n, by.i) for n in range(3)])
    while by.j < 64 and loss_after(by) > loss_before:
        by = StepScale(by.j + 1, by.i)
    return by


def last_decreasing(
    loss_after: Callable[[StepScale], float], path: Sequence[StepScale]
) -> StepScale:
    """Return the last scale of a sequence up to which the loss decreases strictly."""
    for here, there in itertools.pairwise(path):
        if not loss_after(there) < loss_after(here):
            return here
    return path[-1]


# -------------------------------------------------------------------------------- a whole training


@dataclass(frozen=True)
class Search:
    """After a warm-up, try the classes of largest loss as base class, and keep the best for a gap."""

    n_candidates: int
    gap: int = 0
    warmup: int = 0


@dataclass(frozen=True)
class Algorithm:
    """A training algorithm: derivatives, base class, order of the residuals."""

    name: str = "abc-mart"  # or "mart", or "multi-output"
    base_class: str | int | Search | None = "worst"  # a class, or None
    sequential_residuals: bool = False  # compute the residuals again for each class
    first_base: int = 0


@dataclass
class Iteration:
    result: IterationResult  # with sequential residuals: those of all classes, concatenated
    base: int  # -1: none
    class_losses: np.ndarray  # after the iteration


NODE_ARRAYS = ("feature", "bin", "left", "missing_left", "value", "gain", "weight", "left_set_size")


def joined(results: Sequence[IterationResult]) -> IterationResult:
    """Concatenate the results of one iteration."""
    arrays = {
        name: np.concatenate([getattr(s, name) for s in results])
        for name in (*NODE_ARRAYS, "left_set")
    }
    sizes = np.concatenate([np.diff(s.tree_start) for s in results])
    return IterationResult(
        **arrays,
        tree_start=np.concatenate([[0], np.cumsum(sizes)]),
        tree_class=np.concatenate([s.tree_class for s in results]),
        base_scale=results[0].base_scale,  # equal: with a base class there is one result
        n_halvings=max(s.n_halvings for s in results),
        changed=any(s.changed for s in results),
        leaf_value=_joined_leaves(results),
    )


def _joined_leaves(results: Sequence[IterationResult]) -> np.ndarray | None:
    """Return leaves of multi-output trees; the reference has None for single-output trees."""
    known = [s.leaf_value for s in results if s.leaf_value is not None]
    return np.concatenate(known) if known else None


def candidates_of(algorithm: Algorithm, n_done: int, base: int, losses: np.ndarray) -> list[int]:
    """Return the base classes to try, given the base and the class losses before; [-1] means none."""
    search = algorithm.base_class
    if search is None or isinstance(search, int):
        return [-1 if search is None else search]
    if search == "worst":
        search = Search(1)
    if n_done < search.warmup:
        return [-1]
    if base >= 0 and (n_done - search.warmup) % (search.gap + 1) != 0:
        return [base]
    if n_done == 0 and search.n_candidates == 1:
        return [algorithm.first_base]
    by_loss = sorted(range(len(losses)), key=lambda k: (-losses[k], k))
    return sorted(by_loss[: search.n_candidates])


def iteration_arguments(name: str, base: int, n_classes: int) -> tuple[list[int], int, bool, float]:
    """Return classes, base, base_derivatives, leaf_scale."""
    if name != "multi-output" and base < 0 and n_classes == 2:  # one tree, against class 0
        return [1], 0, True, 1.0
    if base < 0:
        return list(range(n_classes)), -1, False, (n_classes - 1) / n_classes
    return [k for k in range(n_classes) if k != base], base, name == "abc-mart", 1.0


def one_iteration(trainer: Any, algorithm: Algorithm, base: int, n_classes: int) -> Iteration:
    classes, base, *rest = iteration_arguments(algorithm.name, base, n_classes)
    if not algorithm.sequential_residuals:
        result = trainer.train_iteration(classes, base, *rest)
    else:
        results = [trainer.train_iteration([k], base, *rest) for k in classes]
        result = joined([s for s in results if s.changed] or results)
    return Iteration(result, base, trainer.class_losses())


def best_iteration(
    trainer: Any, algorithm: Algorithm, tried: list[int], n_classes: int
) -> Iteration:
    if len(tried) == 1:
        return one_iteration(trainer, algorithm, tried[0], n_classes)
    result = trainer.search(tried)
    return Iteration(result, result.base, trainer.class_losses())


def boost(trainer: Any, algorithm: Algorithm, n_classes: int, max_iter: int) -> list[Iteration]:
    """Train with this module's `Trainer` or with the core's."""
    iterations: list[Iteration] = []
    base = -1
    accuracy = 2e-14 * min(1.0, trainer.total_weight)
    while len(iterations) < max_iter and not trainer.loss() < accuracy:
        tried = candidates_of(algorithm, len(iterations), base, trainer.class_losses())
        trainer.number = len(iterations)
        this = best_iteration(trainer, algorithm, tried, n_classes)
        if tried == [base] and not this.result.changed:  # perhaps only kept by the gap
            tried = candidates_of(algorithm, len(iterations), -1, trainer.class_losses())
            this = best_iteration(trainer, algorithm, tried, n_classes)
        if not this.result.changed:
            break
        base = this.base if tried != [-1] else -1
        iterations.append(this)
    return iterations


# --------------------------------------------------------------------------------------- prediction


def left_codes(tree: dict[str, Sequence[Any]], node: int) -> set[int]:
    sizes = tree["left_set_size"]
    start = sum(int(size) for size in sizes[:node])
    words = [int(word) for word in tree["left_set"][start : start + int(sizes[node])]]
    return {64 * w + c for w, word in enumerate(words) for c in range(64) if word >> c & 1}


def tree_value(tree: dict[str, Sequence[Any]], x: Sequence[float]) -> float:
    return tree["value"][tree_leaf(tree, x)]


def tree_leaf(tree: dict[str, Sequence[Any]], x: Sequence[float]) -> int:
    """Return the leaf of a row."""
    node = 0
    while tree["feature"][node] >= 0:
        node = tree["left"][node] + (0 if goes_left(tree, node, x) else 1)
    return node


def goes_left(tree: dict[str, Sequence[Any]], node: int, x: Sequence[float]) -> bool:
    """Return whether a row goes left at a split."""
    value = x[tree["feature"][node]]
    if math.isnan(value):
        return bool(tree["missing_left"][node])
    if tree["left_set_size"][node] > 0:
        is_known = 0 <= value < 64 * tree["left_set_size"][node]
        return bool(
            int(value) in left_codes(tree, node) if is_known else tree["missing_left"][node]
        )
    return bool(value <= tree["threshold"][node])
