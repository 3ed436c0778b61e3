#include "tree/split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr double kRounding = 0x1p-50;
// More than rounding can take from the best of 2^16 cuts when each is compared with the best
// before.
constexpr double kSlack = 0x1p-32;

/// The nearest double of any 64-bit integer, one or several, in operations that every SIMD level
/// has: the halves are set into the digits of 2^84 and 2^52, and their exact difference is rounded
/// once.
template <class T>
[[gnu::always_inline]] inline T to_double(IntegersOf<T> x) {
  using Unsigned = UnsignedOf<T>;
  const Unsigned u = bits_as<Unsigned>(x) ^ (std::uint64_t{1} << 63);
  const T high = bits_as<T>((u >> 32) | 0x4530000000000000u);
  const T low = bits_as<T>((u & 0xffffffffu) | 0x4330000000000000u);
  return (high - 0x1.00000801p84) + low;  // 2^84 + 2^63 + 2^52
}

/// The same for 0 <= x < 2^52, as every sum of weights is.
template <class T>
[[gnu::always_inline]] inline T small_to_double(IntegersOf<T> x) {
  return bits_as<T>(x | 0x4330000000000000) - 0x1p52;
}

/// Some cuts of a node, by what is left of them.
template <int W>
struct Cuts {
  std::size_t n;
  const Sums<W>* left;
  Sums<W> node;
  double l2;  // only with hessian sums
};

/// The parts of a cut's score (from_left - from_right)^2 / (a b), the gain up to the node's weight:
/// of one cut, or of one in each of several lanes.
template <int W, class T>
struct ScoreParts {
  using Ints = IntegersOf<T>;

  [[gnu::always_inline]] ScoreParts(const Sums<W>& node, double l2, Ints residual, Ints weight) {
    if constexpr (W == 2) {
      a = small_to_double<T>(weight);
      b = small_to_double<double>(node[1]) - a;  // which is exact
    } else {
      a = to_double<T>(weight) + l2;
      b = to_double<T>(node[2] - weight) + l2;
    }
    from_left = to_double<T>(residual) * b;
    from_right = to_double<T>(node[0] - residual) * a;
  }

  T a;
  T b;
  T from_left;
  T from_right;
};

/// What is left of a cut, in N lanes.
template <int W, std::size_t N>
using LaneSums = std::array<typename Wide<N>::Integers, W>;

/// Bin t of N ways.
template <int W, std::size_t N>
[[gnu::always_inline]] inline LaneSums<W, N> lanes(
    const std::array<const Sums<W>*, kWaysTogether>& bins, std::size_t first, std::size_t t) {
  using Two = Wide<2>::Integers;
  const auto two = [&](std::size_t lane) { return load<Two>(bins[first + lane][t].data()); };
  LaneSums<W, N> sums;
  if constexpr (N == 2) {
    sums[0] = __builtin_shufflevector(two(0), two(1), 0, 2);
    sums[1] = __builtin_shufflevector(two(0), two(1), 1, 3);
  } else {
    const auto even = __builtin_shufflevector(two(0), two(2), 0, 1, 2, 3);
    const auto odd = __builtin_shufflevector(two(1), two(3), 0, 1, 2, 3);
    sums[0] = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
    sums[1] = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
  }
  if constexpr (W == 3) {
    for (std::size_t lane = 0; lane < N; ++lane) sums[2][lane] = bins[first + lane][t][2];
  }
  return sums;
}

/// About the largest score of each way's cuts. Fractions are compared without a division, so it may
/// fall short by what rounding takes. A way whose bins are at an end goes on with empty ones, which
/// repeat its last cut; one without any has no score.
template <int W>
struct Best {
  template <std::size_t N>
  struct Kernel {
    static constexpr std::size_t kLanes = std::min(N, kWaysTogether);
    using Doubles = typename Wide<kLanes>::Doubles;
    using Integers = typename Wide<kLanes>::Integers;

    [[gnu::always_inline]] static inline void run(const Ways<W>* ways, const Sums<W>* none,
                                                  const NodeToCut<W>* given, double* scores) {
      const Sums<W> node = given->sums;
      const SplitRules rules = given->rules;
      for (std::size_t first = 0; first < kWaysTogether; first += kLanes) {
        store(best_of(*ways, none, first, node, rules), scores + first);
      }
    }

    [[gnu::always_inline]] static inline Doubles best_of(const Ways<W>& ways, const Sums<W>* none,
                                                         std::size_t first, const Sums<W>& node,
                                                         const SplitRules& rules) {
      std::array<const Sums<W>*, kWaysTogether> bins;
      for (std::size_t i = 0; i < kWaysTogether; ++i) bins[i] = &ways[i].start;
      LaneSums<W, kLanes> left = lanes<W, kLanes>(bins, first, 0);
      for (std::size_t i = 0; i < kWaysTogether; ++i) bins[i] = ways[i].n > 0 ? ways[i].bins : none;
      Doubles numerator{};
      Doubles denominator = Doubles{} + 1.0;
      for (std::size_t t = 0, end = next_end(ways, first, t); t < end;
           end = next_end(ways, first, t)) {
        for (; t < end; ++t) {
          const LaneSums<W, kLanes> more = lanes<W, kLanes>(bins, first, t);
          for (std::size_t w = 0; w < W; ++w) left[w] += more[w];
          take_better(left, node, rules, numerator, denominator);
        }
        for (std::size_t i = first; i < first + kLanes; ++i) {
          if (ways[i].n <= t) bins[i] = none;
        }
      }
      return numerator / denominator;
    }

    /// Where the next of the ways ends; t if all have ended.
    static std::size_t next_end(const Ways<W>& ways, std::size_t first, std::size_t t) {
      std::size_t end = t;
      for (std::size_t i = first; i < first + kLanes; ++i) {
        if (ways[i].n > t && (end == t || ways[i].n < end)) end = ways[i].n;
      }
      return end;
    }

    /// Whether there is enough on both sides; so written, it is two comparisons.
    [[gnu::always_inline]] static inline Integers leaves_enough(Integers left, std::int64_t node,
                                                                std::int64_t least) {
      return (left > least - 1) & (left < node - least + 1);
    }

    [[gnu::always_inline]] static inline void take_better(const LaneSums<W, kLanes>& left,
                                                          const Sums<W>& node,
                                                          const SplitRules& rules,
                                                          Doubles& numerator,
                                                          Doubles& denominator) {
      const ScoreParts<W, Doubles> parts(node, rules.l2, left[0], left[W - 1]);
      const Doubles d = parts.from_left - parts.from_right;
      const Doubles over = d * d;
      const Doubles under = parts.a * parts.b;
      Integers is_better = over * denominator > numerator * under;
      is_better &= leaves_enough(left[1], node[1], rules.min_weight);
      if constexpr (W == 3) is_better &= leaves_enough(left[2], node[2], rules.min_hessian);
      numerator = is_better ? over : numerator;
      denominator = is_better ? under : denominator;
    }
  };
};

/// The scores; 0 where the sides' means differ by rounding alone.
template <int W>
struct ScoreKernel {
  [[gnu::always_inline]] static inline void run(const Cuts<W>* given, double* score) {
    const Cuts<W> cuts = *given;
    for (std::size_t i = 0; i < cuts.n; ++i) {
      const Sums<W>& left = cuts.left[i];
      const ScoreParts<W, double> parts(cuts.node, cuts.l2, left[0], left[W - 1]);
      const double d = parts.from_left - parts.from_right;
      const double noise = kRounding * (std::abs(parts.from_left) + std::abs(parts.from_right));
      score[i] = std::abs(d) <= noise ? 0.0 : (d * d) / (parts.a * parts.b);
    }
  }
};

template <int W>
bool is_enough(const Sums<W>& side, const SplitRules& rules) {
  return side[1] >= rules.min_weight && (W == 2 || side[W - 1] >= rules.min_hessian);
}

template <int W>
Sums<W> rest_of(const Sums<W>& node, const Sums<W>& left) {
  Sums<W> rest;
  for (std::size_t w = 0; w < W; ++w) rest[w] = node[w] - left[w];
  return rest;
}

/// How many of the first cuts have a property that no later one has; without branches.
template <int W, class Has>
std::size_t count_first(std::span<const Sums<W>> left, const Has& has) {
  std::size_t n = 0;
  for (std::size_t step = std::bit_floor(left.size()); step > 0; step /= 2) {
    const std::size_t next = std::min(n + step, left.size());
    n = has(left[next - 1]) ? next : n;
  }
  return n;
}

std::size_t most_bins(const Binned& binned) {
  std::size_t most = 0;
  for (const Feature& feature : binned.features) {
    most = std::max<std::size_t>(most, feature.n_bins);
  }
  return most;
}

}  // namespace

template <int W>
CutSearch<W>::CutSearch(const Binned& binned)
    : binned_(binned), none_(most_bins(binned)), left_(none_.size()), score_(none_.size()) {}

/// Sums up what is left of the cuts after the bins in(0) .. in(n - 1), on top of `start`, and finds
/// the allowed ones. Weights are not negative, so these are the cuts from the first with enough on
/// its left to the last with enough on its right. The cut after an empty bin repeats the one
/// before: it has the same score, and is never the first with it.
template <int W>
template <class Bins>
void CutSearch<W>::find_cuts(const Bins& in, std::size_t n, const Sums<W>& start,
                             const NodeToCut<W>& node) {
  Sums<W>* out = left_.data();
  Sums<W> left = start;
  for (std::size_t t = 0; t < n; ++t) {
    const Sums<W>& sums = in(t);
    for (std::size_t w = 0; w < W; ++w) left[w] += sums[w];
    out[t] = left;
  }
  const auto all = std::span<const Sums<W>>(left_).first(n);
  first_ = count_first<W>(all, [&](const Sums<W>& sums) {
    return !is_enough<W>(sums, node.rules) || sums[1] == start[1];
  });
  const std::size_t last = count_first<W>(all, [&](const Sums<W>& sums) {
    return is_enough<W>(rest_of<W>(node.sums, sums), node.rules);
  });
  n_ = last > first_ ? last - first_ : 0;
}

template <int W>
void CutSearch<W>::score_cuts(const NodeToCut<W>& node) {
  const Cuts<W> cuts{
      .n = n_, .left = left_.data() + first_, .node = node.sums, .l2 = node.rules.l2};
  dispatch<ScoreKernel<W>>(&cuts, score_.data());
}

/// Takes the first cut of the largest score if it is better than the best so far.
template <int W>
bool CutSearch<W>::take_best(std::uint32_t feature, bool missing_left, Cut<W>& best) const {
  const auto scores = std::span(score_).first(n_);
  const auto largest = std::ranges::max_element(scores);
  const auto f = static_cast<int>(feature);
  if (largest == scores.end() || !best.is_beaten_by(*largest, f, missing_left)) return false;
  best.score = *largest;
  best.feature = f;
  best.bin =
      static_cast<std::uint32_t>(first_) + static_cast<std::uint32_t>(largest - scores.begin());
  best.missing_left = missing_left;
  return true;
}

/// Keeps a way until there are enough to look at together.
template <int W>
void CutSearch<W>::add_way(const Way<W>& way, const NodeToCut<W>& node, Cut<W>& best) {
  ways_[n_ways_++] = way;
  if (n_ways_ == kWaysTogether) try_ways(node, best);
}

/// Computes the scores of a way only if its best may be the best of all; of several ways the most
/// promising first.
template <int W>
void CutSearch<W>::try_ways(const NodeToCut<W>& node, Cut<W>& best) {
  for (std::size_t i = n_ways_; i < kWaysTogether; ++i) ways_[i] = {};
  std::array<double, kWaysTogether> promised;
  dispatch_wide<Best<W>::template Kernel>(&ways_, none_.data(), &node, promised.data());
  for (std::size_t n = 0; n < n_ways_; ++n) {
    const auto most = std::ranges::max_element(std::span(promised).first(n_ways_));
    if (*most == 0.0 || *most * (1.0 + kSlack) < best.score) break;
    *most = 0.0;
    try_way(ways_[static_cast<std::size_t>(&*most - promised.data())], node, best);
  }
  n_ways_ = 0;
}

template <int W>
void CutSearch<W>::try_way(const Way<W>& way, const NodeToCut<W>& node, Cut<W>& best) {
  find_cuts([&](std::size_t t) -> const Sums<W>& { return way.bins[t]; }, way.n, way.start, node);
  score_cuts(node);
  take_best(way.feature, way.missing_left, best);
}

/// The categories of a node in the order of their mean residuals, each as if it had some more
/// weight at the node's mean. The direction is such that residuals of opposite sign have the same
/// order.
template <int W>
void CutSearch<W>::sort_categories(std::span<const Sums<W>> bins, const NodeToCut<W>& node) {
  const double node_weight = to_double<double>(node.sums[1]);
  const double smoothing = node.rules.smoothing;
  const double more_residual = smoothing * (to_double<double>(node.sums[0]) / node_weight);
  const double more_weight = smoothing * (to_double<double>(node.sums[W - 1]) / node_weight);
  categories_.clear();
  double direction = 0.0;
  for (std::uint32_t code = 0; code < bins.size(); ++code) {
    if (bins[code][1] == 0) continue;
    const double weight = to_double<double>(bins[code][W - 1]) + more_weight;
    const double mean =
        weight > 0.0 ? (to_double<double>(bins[code][0]) + more_residual) / weight : 0.0;
    if (direction == 0.0 && mean != 0.0) direction = mean > 0.0 ? -1.0 : 1.0;
    categories_.push_back({.mean = mean * direction, .code = code});
  }
  std::ranges::sort(categories_, [](const Category& a, const Category& b) {
    return a.mean != b.mean ? a.mean < b.mean : a.code < b.code;
  });
}

template <int W>
void CutSearch<W>::try_categorical(std::uint32_t f, std::span<const Sums<W>> bins,
                                   const NodeToCut<W>& node, Cut<W>& best) {
  sort_categories(bins, node);
  const std::size_t n = categories_.size();
  if (n < 2) return;
  find_cuts([&](std::size_t t) -> const Sums<W>& { return bins[categories_[t].code]; }, n - 1,
            Sums<W>{}, node);
  score_cuts(node);
  for (std::size_t i = 0; i < n_; ++i) {
    const std::size_t n_left = first_ + i + 1;
    if (std::min(n_left, n - n_left) > kMostCategories) score_[i] = 0.0;
  }
  if (!take_best(f, false, best)) return;
  best.left_set = empty_set(bins.size());
  for (std::size_t t = 0; t <= best.bin; ++t) insert(best.left_set, categories_[t].code);
}

/// Whether a feature need not be looked at. One side of any cut on a sparse column is without the
/// common bin: what is in the others must be enough for it.
template <int W>
bool CutSearch<W>::is_hopeless(std::uint32_t f, const NodeToCut<W>& node) const {
  if (!node.may_cut.empty() && node.may_cut[f] == 0) return true;
  const Feature& feature = binned_.features[f];
  if (!feature.is_sparse) return false;
  const Sums<W>& common = node.histogram[feature.offset + feature.common];
  return node.sums[1] - common[1] < node.rules.min_weight;
}

template <int W>
void CutSearch<W>::try_features(std::span<const std::uint32_t> features, const NodeToCut<W>& node,
                                Cut<W>& best) {
  n_ways_ = 0;
  for (const std::uint32_t f : features) {
    if (is_hopeless(f, node)) continue;
    const Feature& feature = binned_.features[f];
    const auto bins = node.histogram.subspan(feature.offset, feature.n_bins);
    if (feature.is_categorical) {
      try_categorical(f, bins, node, best);
      continue;
    }
    Way<W> way{.bins = bins.data(), .n = bins.size() - 1, .feature = f};
    add_way(way, node, best);
    if (bins.back()[1] == 0 || way.n == 1)
      continue;  // nothing is missing, or nothing else is there
    way.n -= 1;
    way.start = bins.back();
    way.missing_left = true;
    add_way(way, node, best);
  }
  try_ways(node, best);
}

/// What the node has none of, a category or missing values, goes to the heavier side.
template <int W>
void CutSearch<W>::finish(const NodeToCut<W>& node, Cut<W>& cut) const {
  if (cut.feature < 0) return;
  const Feature& feature = binned_.features[static_cast<std::size_t>(cut.feature)];
  const auto bins = node.histogram.subspan(feature.offset, feature.n_bins);
  const std::uint32_t missing = feature.missing_code();
  if (feature.is_categorical) {
    cut.bin = 0;
    cut.missing_left = contains(cut.left_set, missing);
  }
  const auto is_left = [&](std::uint32_t code) {
    if (feature.is_categorical) return contains(cut.left_set, code);
    return code == missing ? cut.missing_left : code <= cut.bin;
  };
  for (std::uint32_t code = 0; code < bins.size(); ++code) {
    if (!is_left(code)) continue;
    for (std::size_t w = 0; w < W; ++w) cut.left[w] += bins[code][w];
  }
  const bool left_is_heavier = cut.left[1] >= node.sums[1] - cut.left[1];
  if (bins[missing][1] == 0) cut.missing_left = left_is_heavier;
  if (!feature.is_categorical) {
    cut.left_set.clear();
    return;
  }
  CodeSet left_set = empty_set(missing);
  for (std::uint32_t code = 0; code < missing; ++code) {
    if (bins[code][1] == 0 ? left_is_heavier : is_left(code)) insert(left_set, code);
  }
  cut.left_set = std::move(left_set);
}

template class CutSearch<2>;
template class CutSearch<3>;

}  // namespace abcgbm
