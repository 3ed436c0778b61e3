"""The slow, obvious twin of the native core, written from docs/arithmetic.md alone.

Sums over rows are Python integers, everything else is one float operation after the other in the order
of that page, so the results are the specification's to the last bit. `Trainer` and `Step` look like
those of `abcgbm._core`, so that one driver (`boost`) and one comparison serve both.
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
    """The largest power of two, up to 1, that divides every weight."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    return min(Fraction(1), *(Fraction(n & -n, d) for n, d in ratios))


def balanced(sample_weight: Sequence[float], y: Sequence[int], n_classes: int) -> list[float]:
    """The factors that give all classes with rows the same sum; 1 for the others."""
    of_class = class_sums(sample_weight, y, n_classes)
    n_present = sum(of > 0 for of in of_class)
    return [float(sum(of_class) / (n_present * of)) if of else 1.0 for of in of_class]


def class_sums(sample_weight: Sequence[float], y: Sequence[int], n_classes: int) -> list[Fraction]:
    rows = list(zip(sample_weight, y, strict=True))
    return [
        sum((Fraction(s) for s, k in rows if k == this), Fraction()) for this in range(n_classes)
    ]


def mean_factor(sample_weight: Sequence[float], y: Sequence[int], factor: Sequence[float]) -> float:
    """f of the specification."""
    of_class = class_sums(sample_weight, y, len(factor))
    counted = [(Fraction(f), of) for f, of in zip(factor, of_class, strict=True) if f > 0]
    return float(sum(f * of for f, of in counted) / sum(of for _, of in counted))


@dataclass(frozen=True)
class Weights:
    weight: list[int]
    unit: float
    lost: float  # the largest part of its weight that a row has lost by rounding


def weigh(sample_weight: Sequence[float], y: Sequence[int], factor: Sequence[float]) -> Weights:
    """Weights as integers, and the unit that they count."""
    s, f = [float(w) for w in sample_weight], [float(factor[k]) for k in y]
    common = f[0] if len(set(f)) == 1 else 1.0
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
    return Weights(weight, float(unit) * common, lost)


def integer_weights(sample_weight: Sequence[float]) -> tuple[list[int], float]:
    """Without class weights."""
    weights = weigh(sample_weight, [0] * len(sample_weight), [1.0])
    return weights.weight, weights.unit


def min_weight(min_samples_leaf: float, unit: float, lost: float = 0.0, factor: float = 1.0) -> int:
    slack = 2.0**-40 + min(2.0**-10, lost)
    return max(1, math.ceil(min_samples_leaf * factor * (1 - slack) / unit))


# --------------------------------------------------------------------------------------------- bins


def distinct_values(column: Sequence[float], weight: Sequence[int]) -> list[tuple[float, int]]:
    """Ascending distinct values with the weight of each; missing ones left out."""
    total: dict[float, int] = {}
    for x, w in zip(column, weight, strict=True):
        if not math.isnan(x):
            value = float(x) + 0.0  # -0.0 becomes 0.0
            total[value] = total.get(value, 0) + int(w)
    return sorted(total.items())


def first_values_of_bins(weight: Sequence[int], max_bins: int) -> list[int]:
    """Index of the first value of every bin but the first."""
    firsts = []
    bins_left, rest, acc = max_bins, sum(weight), 0
    for j, w in enumerate(weight):
        values_fit = len(weight) - j <= bins_left - 1
        is_full = (2 * acc + w) * bins_left > 2 * rest
        if j > 0 and bins_left > 1 and (values_fit or is_full):
            bins_left, rest, acc = bins_left - 1, rest - acc, 0
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
    codes: list[list[int]]  # one list a row
    n_bins: list[int]  # value bins and the one for missing values
    categorical: Sequence[bool]  # features whose cuts are sets of codes


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
    drawn = mix(seed)
    for part in key:
        drawn = mix(drawn ^ part)
    return drawn


def is_drawn(seed: int, step: int, row: int, share: float) -> bool:
    return math.ldexp(draw(seed, ROWS, step, row) >> 11, -53) < share


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
    """exp(F_k - max F), the class of that maximum, and the sum of the others."""
    m = max(F)
    top = list(F).index(m)
    e = [exp(F_k - m) for F_k in F]
    return e, top, ordered_sum(e, without=top)


def softmax(F: Sequence[float]) -> list[float]:
    e, _, rest = softmax_terms(F)
    inv = 1.0 / (1.0 + rest)
    return [e_k * inv for e_k in e]


def residuals_and_loss(F: Sequence[float], y: int) -> tuple[list[float], float]:
    """r - p of every class, and - log p_y, for the scores of one row."""
    e, top, rest = softmax_terms(F)
    inv = 1.0 / (1.0 + rest)
    R = [-(e_k * inv) for e_k in e]
    R[y] = ordered_sum(e, without=y) * inv
    return R, log1p(rest) + (F[top] - F[y])


def exp_of_move(value: float) -> float:
    return exp(value) if value < 0 else 1.0 / exp(-value)


def loss_after_move(F: Sequence[float], y: int, move: Sequence[float], base: int) -> float:
    """- log p_y of a row whose scores move: as a search computes it, from the exponentials before."""
    e, top, _ = softmax_terms(F)
    own, others = 0.0, 0.0
    for k in [*(k for k in range(len(F)) if k != base), base]:
        moved = e[k] * exp_of_move(move[k])
        if k == y:
            own = moved
        else:
            others = others + moved
    if own > others:
        return log1p(others / own)
    return log(others + own) + ((F[top] - F[y]) - move[y])


def grid_shift(bits: int, largest: float) -> int:
    return min(bits - exponent(largest), 1000) if largest > 0 else 0


def on_grid(x: float, shift: int) -> int:
    """rint(x * 2^shift)"""
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
    max_path_features: int = 0  # that may meet on a path; 0: no bound
    interaction_groups: Sequence[Sequence[int]] = ()  # none: all features may meet
    seed: int = 0
    multi_output: bool = False  # one tree for all classes: see reference_shared
    n_projections: int = 0  # in which a shared tree is cut; 0: all classes
    base_line_search: bool = False  # how far the base class moves is sought at every step


@dataclass(frozen=True)
class Sums:
    """Integer sums over rows: residual, weight, hessian. (G and H are arrays where trees are shared.)"""

    G: int = 0
    W: int = 0
    H: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.G + other.G, self.W + other.W, self.H + other.H)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.G - other.G, self.W - other.W, self.H - other.H)


@dataclass(frozen=True)
class Target:
    """What one tree is grown on: the table, and the sums of every single row."""

    table: Binned
    rows: list[Sums]
    shift: int
    unit: float
    leaf_scale: float
    params: TrainParams
    key: int = 0  # of the draws of features
    size_per_hessian: float = 2.0  # how large a residual is expected to be

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

    # What is another matter where trees are shared.

    def categorical_cuts(self, feature: int, sums: list[Sums], node: "Node") -> Iterator["Cut"]:
        unit = self.chance_unit(node)
        for cut in categorical_cuts(feature, sums, node.sums, self):
            yield replace(cut, price=unit * cut.price)

    def chance_unit(self, node: "Node") -> float:
        """The score that a cut which says nothing is expected to have."""
        if self.params.hessian_split:
            return self.penalty * (float(node.sums.H) + 2 * self.l2)
        size = sum(abs(self.rows[i].G) for i in node.rows)
        return (self.penalty / self.size_per_hessian) * float(size)

    def is_large_enough(self, child: Sums) -> bool:
        return is_large_enough(child, self)

    def score_and_gain(self, left: Sums, right: Sums, price: float = 0.0) -> tuple[float, float]:
        return score_and_gain(left, right, self, price)


@dataclass(frozen=True)
class Cut:
    feature: int
    bin: int
    missing_left: bool
    left: Sums
    score: float = 0.0
    gain: float = 0.0
    left_codes: frozenset[int] = frozenset()  # of a categorical feature
    price: float = 0.0  # what chance alone would give to its score


@dataclass
class Node:
    rows: list[int]
    sums: Sums
    depth: int
    path: tuple[int, ...] = ()  # features cut above
    cut: Cut | None = None
    left: int = -1
    by_class: Sequence[Sums] = ()  # of a shared tree: exact sums, as its leaves need them


def score_and_gain(
    left: Sums, right: Sums, target: Target, price: float = 0.0
) -> tuple[float, float]:
    """G_L^2/W_L + G_R^2/W_R - G^2/W without cancellation, less a price."""
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
    if abs(d) <= 2.0**-50 * (abs(t) + abs(u)):  # a difference by rounding alone
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
    """The features that a node may be cut on."""
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


def numeric_cuts(feature: int, sums: list[Sums]) -> Iterator[Cut]:
    *values, missing = sums
    lefts = list(itertools.accumulate(values))
    for t, left in enumerate(lefts):
        yield Cut(feature, t, False, left)
    if missing.W > 0:
        for t, left in enumerate(lefts[:-1]):
            yield Cut(feature, t, True, left + missing)


def mean_residual(sums: Sums, node: Sums, target: Target) -> float:
    """Of a category, which is given some more weight at the node's mean."""
    of_weight = (lambda s: s.H) if target.params.hessian_split else (lambda s: s.W)
    more_residual = target.smoothing * (float(node.G) / float(node.W))
    more_weight = target.smoothing * (float(of_weight(node)) / float(node.W))
    weight = float(of_weight(sums)) + more_weight
    return (float(sums.G) + more_residual) / weight if weight > 0 else 0.0


def places(sums: list[Sums], target: Target) -> list[list[int]]:
    """The codes with weight, in order; those too light for a place of their own share the first's."""
    own: list[list[int]] = []
    light: list[int] = []
    for code, s in enumerate(sums):
        if s.W == 0:
            continue
        if float(s.W) >= 0.5 * target.smoothing:
            own.append([code])
        else:
            own += [] if light else [light]
            light.append(code)
    return own


LOG_FACTORIAL = list(itertools.accumulate(log(float(max(1, n))) for n in range(2000)))


def log_ways(n_left: int, n: int) -> float:
    """The logarithm of the number of ways to part n places so, less that of n - 1 cuts in order."""
    all_ways = LOG_FACTORIAL[n] - LOG_FACTORIAL[2]
    in_order = LOG_FACTORIAL[n - 1] - LOG_FACTORIAL[n - 2]
    ways = ((all_ways - in_order) - LOG_FACTORIAL[n_left]) - LOG_FACTORIAL[n - n_left]
    return max(0.0, ways)


def categorical_cuts(feature: int, sums: list[Sums], node: Sums, target: Target) -> Iterator[Cut]:
    """Categories in the order of their means, missing values among them, cut like bins."""
    codes = places(sums, target)
    total = [sum((sums[c] for c in place), Sums()) for place in codes]
    means = [mean_residual(s, node, target) for s in total]
    first = next((mean for mean in means if mean != 0), 0.0)
    sign = -1.0 if first > 0 else 1.0
    order = sorted(range(len(codes)), key=lambda p: (sign * means[p], p))
    lefts = itertools.accumulate(total[p] for p in order[:-1])
    for n, left in enumerate(lefts, start=1):
        on_left = frozenset(c for p in order[:n] for c in codes[p])
        price = log_ways(n, len(order))
        yield Cut(feature, 0, len(sums) - 1 in on_left, left, left_codes=on_left, price=price)


def all_cuts(node: Node, node_id: int, target: Target) -> Iterator[Cut]:
    """Every cut of a node, in the order in which ties are settled."""
    for feature in features_of(node, node_id, target):
        sums = bin_sums(node, feature, target)
        if target.table.categorical[feature]:
            yield from target.categorical_cuts(feature, sums, node)
        else:
            yield from numeric_cuts(feature, sums)


def allowed_cuts(node: Node, node_id: int, target: Target) -> Iterator[Cut]:
    for cut in all_cuts(node, node_id, target):
        right = node.sums - cut.left
        if target.is_large_enough(cut.left) and target.is_large_enough(right):
            score, gain = target.score_and_gain(cut.left, right, cut.price)
            yield replace(cut, score=score, gain=gain)


def best_cut(node: Node, node_id: int, target: Target) -> Cut | None:
    """The best cut of a node, or None if the node must stay a leaf."""
    params = target.params
    cuts = allowed_cuts(node, node_id, target)
    best = max(cuts, key=lambda cut: cut.score, default=None)  # first of ties
    if best is None or not best.gain > params.min_gain:
        return None
    return best if params.max_depth == 0 or node.depth < params.max_depth else None


def sides(node: Node, cut: Cut, target: Target) -> list[bool]:
    """Whether each code goes left; what weighs nothing in the node goes to the heavier side."""
    table, feature = target.table, cut.feature
    missing = table.n_bins[feature] - 1
    heavier = cut.left.W >= node.sums.W - cut.left.W
    sums = bin_sums(node, feature, target)
    if table.categorical[feature]:
        return [c in cut.left_codes if s.W > 0 else heavier for c, s in enumerate(sums)]
    of_missing = cut.missing_left if sums[missing].W > 0 else heavier
    return [code <= cut.bin for code in range(missing)] + [of_missing]


def make_node(
    rows: list[int], depth: int, path: tuple[int, ...], node_id: int, target: Target
) -> Node:
    node = Node(rows, sum((target.rows[i] for i in rows), Sums()), depth, path)
    if node.sums.W > 0:
        node.cut = best_cut(node, node_id, target)
    return node


def children(node: Node, target: Target) -> list[Node]:
    cut, table = node.cut, target.table
    is_left = sides(node, cut, target)
    made = []
    for node_id, side in ((node.left, True), (node.left + 1, False)):
        rows = [i for i in node.rows if is_left[table.codes[i][cut.feature]] == side]
        path = (*node.path, cut.feature)
        made.append(make_node(rows, node.depth + 1, path, node_id, target))
    return made


def grow(target: Target) -> list[Node]:
    """Best first: the nodes of a tree in the order of their creation."""
    nodes = [make_node(list(range(len(target.rows))), 0, (), 0, target)]
    for _ in range(target.params.max_leaf_nodes - 1):
        open_leaves = [n for n in nodes if n.left < 0 and n.cut is not None]
        if not open_leaves:
            break
        best = max(open_leaves, key=lambda n: n.cut.gain)  # the first, so the lowest id, of ties
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


# ------------------------------------------------------------------------------------------- a step


@dataclass(frozen=True)
class Shortening:
    """The step (j, i) of the specification."""

    j: int = 0  # all values times 2^-j
    i: int = 0  # the base class moves by 2^-i of them

    def base_value(self, value: float) -> float:
        return off_grid(on_grid(value, 32 - self.j - self.i), 32)

    def value(self, value: float) -> float:
        return math.ldexp(self.base_value(value), self.i)


@dataclass
class Step:
    """The trees of a step, one after the other, as flat arrays (see `abcgbm._core.IterationResult`)."""

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
    # Of a shared tree: a row for each leaf, and for each feature that it is cut on.
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
        """The codes that go left in a categorical split, 64 to a word."""
        if node.left < 0 or not self.target.table.categorical[node.cut.feature]:
            return []
        *is_left, _ = sides(node, node.cut, self.target)
        words = [is_left[start : start + 64] for start in range(0, len(is_left), 64)]
        return [sum(2**c for c, left in enumerate(word) if left) for word in words]

    def flat_node(self, node: Node, by: Shortening) -> tuple[Any, ...]:
        """feature, bin, left, missing_left, value, gain, weight, left_set_size"""
        weight = float(node.sums.W) * self.target.unit
        if node.left < 0:
            value = by.value(leaf_value(node.sums, self.target))
            return -1, 0, -1, False, value, 0.0, weight, 0
        cut, n_words = node.cut, len(self.left_set(node))
        missing_left = sides(node, cut, self.target)[-1]
        return cut.feature, cut.bin, node.left, missing_left, 0.0, cut.gain, weight, n_words


NODE_TYPES = (np.int32, np.int32, np.int32, np.bool_, np.float64, np.float64, np.float64, np.int32)


def flat_step(trees: Sequence[Tree], by: Shortening, changed: bool) -> Step:
    nodes = [tree.flat_node(node, by) for tree in trees for node in tree.nodes]
    columns = [np.array(c, t) for c, t in zip(zip(*nodes, strict=True), NODE_TYPES, strict=True)]
    sets = [word for tree in trees for node in tree.nodes for word in tree.left_set(node)]
    columns.append(np.array(sets, np.uint64))
    start = np.cumsum([0] + [len(tree.nodes) for tree in trees])
    classes = np.array([tree.tree_class for tree in trees], np.int32)
    return Step(*columns, start.astype(np.int64), classes, 2.0**-by.i, by.j, changed)


@dataclass(frozen=True)
class Labels:
    y: Sequence[int]
    weight: Sequence[int]
    unit: float
    n_classes: int


class Trainer:
    """Scores of the training rows, and steps that change them."""

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
        self.number = 0  # of the step that is being made
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
        """The sum of the losses of rows, each with its weight."""
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

    def drawn_loss(self) -> float:
        """Of the rows that the trees of this step are grown on: what a step is judged by."""
        return self.summed(self.losses, self.drawn_weight())

    def target(self, k: int, base: int, leaf_scale: float) -> Target:
        """The derivatives of class k; base = -1 means the plain ones."""
        Rint, shift = self.residual_grid()
        rows = []
        for R, y, w in zip(Rint, self.y, self.drawn_weight(), strict=True):
            if base < 0:
                g, h = plain_derivatives(R, k, shift)
            else:
                g, h = base_derivatives(R, y, k, base, shift)
            rows.append(Sums(g * w, w, h * w))
        low, high = sorted((k, k if base < 0 else base))
        key = draw(self.params.seed, FEATURES, self.number, low * self.n_classes + high)
        size = 2.0 if base < 0 else 1.0
        return Target(self.binned, rows, shift, self.unit, leaf_scale, self.params, key, size)

    def drawn_weight(self) -> list[int]:
        """Of each row in the trees of this step."""
        seed, share = self.params.seed, self.params.subsample
        rows = enumerate(self.weight)
        return [w if is_drawn(seed, self.number, i, share) else 0 for i, w in rows]

    def grow_tree(self, k: int, base: int, leaf_scale: float) -> Tree:
        target = self.target(k, base, leaf_scale)
        return Tree(target, k, grow(target))

    def added(self, trees: Sequence[Tree], base: int, by: Shortening) -> np.ndarray:
        """What the trees add to the scores."""
        added = np.zeros_like(self._raw)
        for tree in trees:
            for leaf in tree.leaves():
                value = leaf_value(leaf.sums, tree.target)
                added[tree.tree_class, leaf.rows] += by.value(value)
                if base >= 0:
                    added[base, leaf.rows] -= by.base_value(value)
        return added

    def step(
        self, classes: Sequence[int], base: int, base_derivatives: bool, leaf_scale: float
    ) -> Step:
        against = base if base_derivatives else -1
        trees = [self.grow_tree(k, against, leaf_scale) for k in classes]
        if all(len(tree.nodes) == 1 for tree in trees):
            return flat_step(trees, Shortening(), changed=False)
        step = flat_step(trees, self.apply_guarded(trees, base), changed=True)
        step.changed = bool(np.any(step.value != 0))
        return step

    def search(self, candidates: Sequence[int]) -> Step:
        """A step against the candidate that leaves the smallest loss."""
        losses = [self.loss_after_step(base) for base in candidates]
        smallest = min(losses) * (1 + 1e-12)
        best = next(b for b, loss in zip(candidates, losses, strict=True) if loss <= smallest)
        step = self.step([k for k in range(self.n_classes) if k != best], best, True, 1.0)
        step.base, step.candidate_losses = best, losses
        return step

    def loss_after_step(self, base: int) -> float:
        """After the step that the guard would take; infinite if no tree has a split."""
        trees = [self.grow_tree(k, base, 1.0) for k in range(self.n_classes) if k != base]
        if all(len(tree.nodes) == 1 for tree in trees):
            return math.inf

        def loss_after(by: Shortening) -> float:
            rows = zip(self._raw.T, self.y, self.added(trees, base, by).T, strict=True)
            moved = [loss_after_move(F.tolist(), y, move.tolist(), base) for F, y, move in rows]
            return self.summed(moved, self.drawn_weight())

        when = self.when_to_shorten_base(trees, base)
        return loss_after(line_search(loss_after, self.drawn_loss(), when))

    def apply_guarded(self, trees: Sequence[Tree], base: int) -> Shortening:
        """Adds the trees such that the loss does not rise; how they were shortened for that."""
        before, loss_before = self.raw(), self.drawn_loss()

        def loss_after(by: Shortening) -> float:
            self.set_raw(before + self.added(trees, base, by))
            return self.drawn_loss()

        by = line_search(loss_after, loss_before, self.when_to_shorten_base(trees, base))
        loss_after(by)
        return by

    def when_to_shorten_base(self, trees: Sequence[Tree], base: int) -> str:
        if base < 0 or len(trees) == 1:
            return "never"
        return "always" if self.params.base_line_search else "if the loss rises"


def line_search(
    loss_after: Callable[[Shortening], float], loss_before: float, when_to_shorten_base: str
) -> Shortening:
    """The step to take, after which the loss is not larger than before."""
    by = Shortening()
    if when_to_shorten_base == "always":
        by = falling(loss_after, [Shortening(0, i) for i in range(11)])
    elif when_to_shorten_base == "if the loss rises" and loss_after(by) > loss_before:
        by = falling(loss_after, [Shortening(0, i) for i in range(11)])
        by = falling(loss_after, [Shortening(by.j - n, by.i) for n in range(3)])
    while by.j < 64 and loss_after(by) > loss_before:
        by = Shortening(by.j + 1, by.i)
    return by


def falling(loss_after: Callable[[Shortening], float], path: Sequence[Shortening]) -> Shortening:
    """How far down a path the loss falls strictly at every step."""
    for here, there in itertools.pairwise(path):
        if not loss_after(there) < loss_after(here):
            return here
    return path[-1]


# -------------------------------------------------------------------------------- a whole training


@dataclass(frozen=True)
class Search:
    """Try the classes of largest loss as base; keep the best for some steps, after a warm-up."""

    n_candidates: int
    gap: int = 0
    warmup: int = 0


@dataclass(frozen=True)
class Algorithm:
    """A point in the space of DESIGN: derivatives, base class, refresh."""

    name: str = "abc-mart"  # or "mart", or "shared"
    base_class: str | int | Search | None = "worst"  # a class, or None
    refresh: str = "step"  # or "class"
    first_base: int = 0


@dataclass
class Round:
    step: Step  # with refresh="class" the steps of all classes, joined
    base: int  # -1: none
    class_losses: np.ndarray  # after the step


NODE_ARRAYS = ("feature", "bin", "left", "missing_left", "value", "gain", "weight", "left_set_size")


def joined(steps: Sequence[Step]) -> Step:
    """Steps of one round as one."""
    arrays = {
        name: np.concatenate([getattr(s, name) for s in steps])
        for name in (*NODE_ARRAYS, "left_set")
    }
    sizes = np.concatenate([np.diff(s.tree_start) for s in steps])
    return Step(
        **arrays,
        tree_start=np.concatenate([[0], np.cumsum(sizes)]),
        tree_class=np.concatenate([s.tree_class for s in steps]),
        base_scale=steps[0].base_scale,  # the same: a base class has all trees in one step
        n_halvings=max(s.n_halvings for s in steps),
        changed=any(s.changed for s in steps),
        leaf_value=_joined_leaves(steps),
    )


def _joined_leaves(steps: Sequence[Step]) -> np.ndarray | None:
    """The leaves of shared trees; the twin's trees per class do not say that they have none."""
    known = [s.leaf_value for s in steps if s.leaf_value is not None]
    return np.concatenate(known) if known else None


def candidates_of(algorithm: Algorithm, n_rounds: int, base: int, losses: np.ndarray) -> list[int]:
    """The base classes to try, given the base and the class losses before; [-1] for none."""
    search = algorithm.base_class
    if search is None or isinstance(search, int):
        return [-1 if search is None else search]
    if search == "worst":
        search = Search(1)
    if n_rounds < search.warmup:
        return [-1]
    if base >= 0 and (n_rounds - search.warmup) % (search.gap + 1) != 0:
        return [base]
    if n_rounds == 0 and search.n_candidates == 1:
        return [algorithm.first_base]
    by_loss = sorted(range(len(losses)), key=lambda k: (-losses[k], k))
    return sorted(by_loss[: search.n_candidates])


def step_arguments(name: str, base: int, n_classes: int) -> tuple[list[int], int, bool, float]:
    """classes, base, base_derivatives, leaf_scale"""
    if name != "shared" and base < 0 and n_classes == 2:  # one tree, against class 0
        return [1], 0, True, 1.0
    if base < 0:
        return list(range(n_classes)), -1, False, (n_classes - 1) / n_classes
    return [k for k in range(n_classes) if k != base], base, name == "abc-mart", 1.0


def one_round(trainer: Any, algorithm: Algorithm, base: int, n_classes: int) -> Round:
    classes, base, *rest = step_arguments(algorithm.name, base, n_classes)
    if algorithm.refresh == "step":
        step = trainer.step(classes, base, *rest)
    else:
        steps = [trainer.step([k], base, *rest) for k in classes]
        step = joined([s for s in steps if s.changed] or steps)
    return Round(step, base, trainer.class_losses())


def best_round(trainer: Any, algorithm: Algorithm, tried: list[int], n_classes: int) -> Round:
    if len(tried) == 1:
        return one_round(trainer, algorithm, tried[0], n_classes)
    step = trainer.search(tried)
    return Round(step, step.base, trainer.class_losses())


def boost(trainer: Any, algorithm: Algorithm, n_classes: int, max_iter: int) -> list[Round]:
    """A whole training with this module's `Trainer` or with the core's."""
    rounds: list[Round] = []
    base = -1
    accuracy = 2e-14 * min(1.0, trainer.total_weight)
    while len(rounds) < max_iter and not trainer.loss() < accuracy:
        tried = candidates_of(algorithm, len(rounds), base, trainer.class_losses())
        trainer.number = len(rounds)
        this = best_round(trainer, algorithm, tried, n_classes)
        if tried == [base] and not this.step.changed:  # perhaps only kept
            tried = candidates_of(algorithm, len(rounds), -1, trainer.class_losses())
            this = best_round(trainer, algorithm, tried, n_classes)
        if not this.step.changed:
            break
        base = this.base if tried != [-1] else -1
        rounds.append(this)
    return rounds


# --------------------------------------------------------------------------------------- prediction


def left_codes(tree: dict[str, Sequence[Any]], node: int) -> set[int]:
    sizes = tree["left_set_size"]
    start = sum(int(size) for size in sizes[:node])
    words = [int(word) for word in tree["left_set"][start : start + int(sizes[node])]]
    return {64 * w + c for w, word in enumerate(words) for c in range(64) if word >> c & 1}


def tree_value(tree: dict[str, Sequence[Any]], x: Sequence[float]) -> float:
    return tree["value"][tree_leaf(tree, x)]


def tree_leaf(tree: dict[str, Sequence[Any]], x: Sequence[float]) -> int:
    """Walks a row of the table down one tree."""
    node = 0
    while tree["feature"][node] >= 0:
        node = tree["left"][node] + (0 if goes_left(tree, node, x) else 1)
    return node


def goes_left(tree: dict[str, Sequence[Any]], node: int, x: Sequence[float]) -> bool:
    """Tells which way a row of the table goes at a split."""
    value = x[tree["feature"][node]]
    if math.isnan(value):
        return bool(tree["missing_left"][node])
    if tree["left_set_size"][node] > 0:
        is_known = 0 <= value < 64 * tree["left_set_size"][node]
        return bool(
            int(value) in left_codes(tree, node) if is_known else tree["missing_left"][node]
        )
    return bool(value <= tree["threshold"][node])
