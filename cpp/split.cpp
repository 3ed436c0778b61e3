#include "split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr double kRounding = 0x1p-50;

/// The nearest double of any 64-bit integer, in operations that every SIMD level has: the halves
/// are set into the digits of 2^84 and 2^52, and their exact difference is rounded once.
[[gnu::always_inline]] inline double to_double(std::int64_t x) {
  const std::uint64_t u = static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63);
  const double high = std::bit_cast<double>((u >> 32) | 0x4530000000000000u);
  const double low = std::bit_cast<double>((u & 0xffffffffu) | 0x4330000000000000u);
  return (high - 0x1.00000801p84) + low;  // 2^84 + 2^63 + 2^52
}

/// The same for 0 <= x < 2^52, as every sum of weights is.
[[gnu::always_inline]] inline double small_to_double(std::int64_t x) {
  return std::bit_cast<double>(x | 0x4330000000000000) - 0x1p52;
}

/// Some cuts of a node, by what is left of them.
template <int W>
struct Cuts {
  std::size_t n;
  const Sums<W>* left;
  Sums<W> node;
  double l2;
};

/// The parts of a cut's score (from_left - from_right)^2 / (a b): the gain up to the node's weight.
template <int W>
struct ScoreParts {
  [[gnu::always_inline]] ScoreParts(const Cuts<W>& cuts, std::size_t i)
      : a(weight_of(cuts.left[i][W - 1]) + cuts.l2),
        b(weight_of(cuts.node[W - 1] - cuts.left[i][W - 1]) + cuts.l2),
        from_left(to_double(cuts.left[i][0]) * b),
        from_right(to_double(cuts.node[0] - cuts.left[i][0]) * a) {}

  [[gnu::always_inline]] static inline double weight_of(std::int64_t sum) {
    return W == 2 ? small_to_double(sum) : to_double(sum);
  }

  double a;
  double b;
  double from_left;
  double from_right;
};

/// Whether the score of some cut may be as large as `least`, on the safe side of rounding. There is
/// no division in it, and most features go no further.
template <int W>
struct ReachKernel {
  [[gnu::always_inline]] static inline void run(const Cuts<W>* given, double least,
                                                std::int64_t* reaches) {
    const Cuts<W> cuts = *given;
    const double a_bit_less = least * (1.0 - 0x1p-48);
    std::int64_t any = 0;
    for (std::size_t i = 0; i < cuts.n; ++i) {
      const ScoreParts<W> parts(cuts, i);
      const double d = parts.from_left - parts.from_right;
      any |= d * d >= a_bit_less * (parts.a * parts.b) ? 1 : 0;
    }
    *reaches = any;
  }
};

/// The scores; 0 where the sides' means differ by rounding alone.
template <int W>
struct ScoreKernel {
  [[gnu::always_inline]] static inline void run(const Cuts<W>* given, double* score) {
    const Cuts<W> cuts = *given;
    for (std::size_t i = 0; i < cuts.n; ++i) {
      const ScoreParts<W> parts(cuts, i);
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

template <int W>
Cuts<W> cuts_of(std::span<const Sums<W>> left, const NodeToCut<W>& node) {
  return {
      .n = left.size(), .left = left.data(), .node = node.sums, .l2 = W == 3 ? node.rules.l2 : 0.0};
}

}  // namespace

/// Sums up what is left of the cuts after the bins in(0) .. in(n - 1), on top of `start`, and finds
/// the allowed ones. Weights are not negative, so these are the cuts from the first with enough on
/// its left to the last with enough on its right. The cut after an empty bin repeats the one
/// before: it has the same score, and is never the first with it.
template <int W>
template <class Bins>
void CutSearch<W>::find_cuts(const Bins& in, std::size_t n, const Sums<W>& start,
                             const NodeToCut<W>& node) {
  if (left_.size() < n) {
    left_.resize(n);
    score_.resize(n);
  }
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
bool CutSearch<W>::may_reach(double least, const NodeToCut<W>& node) const {
  const Cuts<W> cuts = cuts_of<W>(std::span(left_).subspan(first_, n_), node);
  std::int64_t reaches = 0;
  dispatch<ReachKernel<W>>(&cuts, least, &reaches);
  return reaches != 0;
}

template <int W>
void CutSearch<W>::score_cuts(const NodeToCut<W>& node) {
  const Cuts<W> cuts = cuts_of<W>(std::span(left_).subspan(first_, n_), node);
  dispatch<ScoreKernel<W>>(&cuts, score_.data());
}

/// Takes the first cut of the largest score if it is better than the best so far.
template <int W>
bool CutSearch<W>::take_best(std::uint32_t feature, bool missing_left, Cut<W>& best) const {
  const auto scores = std::span(score_).first(n_);
  const auto largest = std::ranges::max_element(scores);
  const auto f = static_cast<int>(feature);
  if (largest == scores.end() || !best.is_beaten_by(*largest, f)) return false;
  best.score = *largest;
  best.feature = f;
  best.bin =
      static_cast<std::uint32_t>(first_) + static_cast<std::uint32_t>(largest - scores.begin());
  best.missing_left = missing_left;
  return true;
}

template <int W>
void CutSearch<W>::try_numeric(std::uint32_t f, std::span<const Sums<W>> bins,
                               const NodeToCut<W>& node, Cut<W>& best) {
  const std::size_t n_values = bins.size() - 1;
  const Sums<W>& missing = bins[n_values];
  const auto in_order = [&](std::size_t t) -> const Sums<W>& { return bins[t]; };
  const auto try_cuts = [&](std::size_t n, const Sums<W>& start, bool missing_left) {
    find_cuts(in_order, n, start, node);
    if (!may_reach(best.score, node)) return;
    score_cuts(node);
    take_best(f, missing_left, best);
  };
  try_cuts(n_values, Sums<W>{}, false);
  if (missing[1] != 0) try_cuts(n_values - 1, missing, true);
}

/// The categories of a node in the order of their mean residuals, each as if it had some more
/// weight at the node's mean. The direction is such that residuals of opposite sign have the same
/// order.
template <int W>
void CutSearch<W>::sort_categories(std::span<const Sums<W>> bins, const NodeToCut<W>& node) {
  const double node_weight = to_double(node.sums[1]);
  const double smoothing = node.rules.smoothing;
  const double more_residual = smoothing * (to_double(node.sums[0]) / node_weight);
  const double more_weight = smoothing * (to_double(node.sums[W - 1]) / node_weight);
  categories_.clear();
  double direction = 0.0;
  for (std::uint32_t code = 0; code < bins.size(); ++code) {
    if (bins[code][1] == 0) continue;
    const double weight = to_double(bins[code][W - 1]) + more_weight;
    const double mean = weight > 0.0 ? (to_double(bins[code][0]) + more_residual) / weight : 0.0;
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

template <int W>
void CutSearch<W>::try_feature(std::uint32_t f, const NodeToCut<W>& node, Cut<W>& best) {
  const Feature& feature = binned_.features[f];
  const auto bins = node.histogram.subspan(feature.offset, feature.n_bins);
  // One side of any cut is without the common bin: what is in the others must be enough for it.
  if (feature.is_sparse && node.sums[1] - bins[feature.common][1] < node.rules.min_weight) return;
  if (feature.is_categorical) {
    try_categorical(f, bins, node, best);
  } else {
    try_numeric(f, bins, node, best);
  }
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
