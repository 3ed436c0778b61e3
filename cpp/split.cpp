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

struct Scoring {
  std::size_t n;
  const std::int64_t* residual;
  const std::int64_t* weight;
  std::int64_t node_residual;
  std::int64_t node_weight;
  double l2;
  double* score;
};

/// The gain up to the node's own weight; 0 if the sides' means differ by rounding alone.
struct ScoreKernel {
  [[gnu::always_inline]] static inline void run(const Scoring* given) {
    const Scoring scoring = *given;
    for (std::size_t i = 0; i < scoring.n; ++i) {
      const double gl = to_double(scoring.residual[i]);
      const double gr = to_double(scoring.node_residual - scoring.residual[i]);
      const double a = to_double(scoring.weight[i]) + scoring.l2;
      const double b = to_double(scoring.node_weight - scoring.weight[i]) + scoring.l2;
      const double from_left = gl * b;
      const double from_right = gr * a;
      const double d = from_left - from_right;
      const bool is_noise = std::abs(d) <= kRounding * (std::abs(from_left) + std::abs(from_right));
      scoring.score[i] = is_noise ? 0.0 : (d * d) / (a * b);
    }
  }
};

/// Whether both sides have enough of one sum, as 0 or 1.
std::size_t is_enough(std::int64_t left, std::int64_t node, std::int64_t least) {
  return std::size_t{left >= least} & std::size_t{node - left >= least};
}

/// Lists the allowed cuts after the bins in(0) .. in(n_cuts - 1), without branches; `left` starts
/// as what is left of all of them. An empty bin repeats the cut before it and is left out.
template <int W, class Bins>
void list_cuts(const Bins& in, std::size_t n_cuts, Sums<W> left, const Sums<W>& node,
               const SplitRules& rules, CutList& cuts) {
  if (cuts.bin.size() < n_cuts) {
    cuts.bin.resize(n_cuts);
    cuts.residual.resize(n_cuts);
    cuts.weight.resize(n_cuts);
    cuts.score.resize(n_cuts);
  }
  std::uint32_t* bin = cuts.bin.data();
  std::int64_t* residual = cuts.residual.data();
  std::int64_t* weight = cuts.weight.data();
  std::size_t n = 0;
  for (std::size_t t = 0; t < n_cuts; ++t) {
    const Sums<W>& sums = in(t);
    for (std::size_t w = 0; w < W; ++w) left[w] += sums[w];
    bin[n] = static_cast<std::uint32_t>(t);
    residual[n] = left[0];
    weight[n] = left[W - 1];
    std::size_t is_cut = std::size_t{sums[1] != 0} & is_enough(left[1], node[1], rules.min_weight);
    if constexpr (W == 3) is_cut &= is_enough(left[2], node[2], rules.min_hessian);
    n += is_cut;
  }
  cuts.n = n;
}

template <int W>
void score_cuts(const Sums<W>& node, const SplitRules& rules, CutList& cuts) {
  const Scoring scoring{.n = cuts.n,
                        .residual = cuts.residual.data(),
                        .weight = cuts.weight.data(),
                        .node_residual = node[0],
                        .node_weight = node[W - 1],
                        .l2 = W == 3 ? rules.l2 : 0.0,
                        .score = cuts.score.data()};
  dispatch<ScoreKernel>(&scoring);
}

/// Takes the best of the listed cuts if it is better than the best so far.
template <int W>
bool take_best(const CutList& cuts, std::uint32_t feature, bool missing_left, Cut<W>& best) {
  bool is_better = false;
  for (std::size_t i = 0; i < cuts.n; ++i) {
    if (cuts.score[i] > best.score) {
      best.score = cuts.score[i];
      best.feature = static_cast<int>(feature);
      best.bin = cuts.bin[i];
      best.missing_left = missing_left;
      is_better = true;
    }
  }
  return is_better;
}

template <int W>
void try_numeric(std::span<const Sums<W>> bins, std::uint32_t feature, const Sums<W>& node,
                 const SplitRules& rules, CutList& cuts, Cut<W>& best) {
  const std::size_t n_values = bins.size() - 1;
  const Sums<W>& missing = bins[n_values];
  const auto in_order = [&](std::size_t t) -> const Sums<W>& { return bins[t]; };
  list_cuts<W>(in_order, n_values, Sums<W>{}, node, rules, cuts);
  score_cuts<W>(node, rules, cuts);
  take_best<W>(cuts, feature, false, best);
  if (missing[1] == 0) return;
  list_cuts<W>(in_order, n_values - 1, missing, node, rules, cuts);
  score_cuts<W>(node, rules, cuts);
  take_best<W>(cuts, feature, true, best);
}

/// The categories of a node in the order of their mean residuals, each as if it had some more
/// weight at the node's mean. The direction is such that residuals of opposite sign have the same
/// order.
template <int W>
void sort_categories(std::span<const Sums<W>> bins, const Sums<W>& node, const SplitRules& rules,
                     std::vector<Category>& categories) {
  const double node_weight = to_double(node[1]);
  const double more_residual = rules.smoothing * (to_double(node[0]) / node_weight);
  const double more_weight = rules.smoothing * (to_double(node[W - 1]) / node_weight);
  categories.clear();
  double direction = 0.0;
  for (std::uint32_t code = 0; code < bins.size(); ++code) {
    if (bins[code][1] == 0) continue;
    const double weight = to_double(bins[code][W - 1]) + more_weight;
    const double mean = weight > 0.0 ? (to_double(bins[code][0]) + more_residual) / weight : 0.0;
    if (direction == 0.0 && mean != 0.0) direction = mean > 0.0 ? -1.0 : 1.0;
    categories.push_back({.mean = mean * direction, .code = code});
  }
  std::ranges::sort(categories, [](const Category& a, const Category& b) {
    return a.mean != b.mean ? a.mean < b.mean : a.code < b.code;
  });
}

template <int W>
void try_categorical(std::span<const Sums<W>> bins, std::uint32_t feature, const Sums<W>& node,
                     const SplitRules& rules, CutList& cuts, Cut<W>& best) {
  std::vector<Category>& categories = cuts.categories;
  sort_categories<W>(bins, node, rules, categories);
  if (categories.size() < 2) return;
  const auto sorted = [&](std::size_t t) -> const Sums<W>& { return bins[categories[t].code]; };
  list_cuts<W>(sorted, categories.size() - 1, Sums<W>{}, node, rules, cuts);
  score_cuts<W>(node, rules, cuts);
  for (std::size_t i = 0; i < cuts.n; ++i) {
    const std::size_t n_left = cuts.bin[i] + 1;
    if (std::min(n_left, categories.size() - n_left) > kMostCategories) cuts.score[i] = 0.0;
  }
  if (!take_best<W>(cuts, feature, false, best)) return;
  best.left_set = empty_set(bins.size());
  for (std::size_t t = 0; t <= best.bin; ++t) insert(best.left_set, categories[t].code);
}

/// What lies left of the cut. What the node has none of, a category or missing values, goes to the
/// heavier side.
template <int W>
void finish(const Feature& feature, std::span<const Sums<W>> bins, const Sums<W>& node,
            Cut<W>& cut) {
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
  const bool left_is_heavier = cut.left[1] >= node[1] - cut.left[1];
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

}  // namespace

template <int W>
Cut<W> best_cut(const Binned& binned, std::span<const std::uint32_t> features,
                std::span<const Sums<W>> histogram, const Sums<W>& node, const SplitRules& rules,
                CutList& buffer) {
  Cut<W> best;
  const auto bins_of = [&](const Feature& feature) {
    return histogram.subspan(feature.offset, feature.n_bins);
  };
  for (const std::uint32_t f : features) {
    const Feature& feature = binned.features[f];
    const auto bins = bins_of(feature);
    // One side of any cut is without the common bin: what is in the others must be enough for it.
    if (feature.is_sparse && node[1] - bins[feature.common][1] < rules.min_weight) continue;
    if (feature.is_categorical) {
      try_categorical<W>(bins, f, node, rules, buffer, best);
    } else {
      try_numeric<W>(bins, f, node, rules, buffer, best);
    }
  }
  if (best.feature >= 0) {
    const Feature& feature = binned.features[static_cast<std::size_t>(best.feature)];
    finish<W>(feature, bins_of(feature), node, best);
  }
  return best;
}

template Cut<2> best_cut<2>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<2>>,
                            const Sums<2>&, const SplitRules&, CutList&);
template Cut<3> best_cut<3>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<3>>,
                            const Sums<3>&, const SplitRules&, CutList&);

}  // namespace abcgbm
