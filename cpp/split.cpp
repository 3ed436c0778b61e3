#include "split.hpp"

#include <bit>
#include <cmath>

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
  [[gnu::always_inline]] static inline void run(const Scoring* scoring) {
    for (std::size_t i = 0; i < scoring->n; ++i) {
      const double gl = to_double(scoring->residual[i]);
      const double gr = to_double(scoring->node_residual - scoring->residual[i]);
      const double a = to_double(scoring->weight[i]) + scoring->l2;
      const double b = to_double(scoring->node_weight - scoring->weight[i]) + scoring->l2;
      const double from_left = gl * b;
      const double from_right = gr * a;
      const double d = from_left - from_right;
      const bool is_noise = std::abs(d) <= kRounding * (std::abs(from_left) + std::abs(from_right));
      scoring->score[i] = is_noise ? 0.0 : (d * d) / (a * b);
    }
  }
};

/// Whether both sides have enough of one sum, as 0 or 1.
std::size_t is_enough(std::int64_t left, std::int64_t node, std::int64_t least) {
  return std::size_t{left >= least} & std::size_t{node - left >= least};
}

/// Lists the allowed cuts after value bins 0 .. n_cuts - 1, without branches; `left` starts as what
/// is left of all of them. An empty bin repeats the cut before it and is left out.
template <int W>
void list_cuts(std::span<const Sums<W>> bins, std::size_t n_cuts, Sums<W> left, const Sums<W>& node,
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
    for (std::size_t w = 0; w < W; ++w) left[w] += bins[t][w];
    bin[n] = static_cast<std::uint32_t>(t);
    residual[n] = left[0];
    weight[n] = left[W - 1];
    std::size_t is_cut =
        std::size_t{bins[t][1] != 0} & is_enough(left[1], node[1], rules.min_weight);
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
void take_best(const CutList& cuts, int feature, bool missing_left, Cut<W>& best) {
  for (std::size_t i = 0; i < cuts.n; ++i) {
    if (cuts.score[i] > best.score) {
      best.score = cuts.score[i];
      best.feature = feature;
      best.bin = cuts.bin[i];
      best.missing_left = missing_left;
    }
  }
}

/// What lies left of the cut; where nothing is missing, missing values go to the heavier side.
template <int W>
void finish(const Binned& binned, std::span<const Sums<W>> histogram, const Sums<W>& node,
            Cut<W>& cut) {
  const auto f = static_cast<std::size_t>(cut.feature);
  const auto bins = histogram.subspan(binned.offset[f], binned.n_bins(f));
  if (cut.missing_left) cut.left = bins.back();
  for (std::size_t t = 0; t <= cut.bin; ++t) {
    for (std::size_t w = 0; w < W; ++w) cut.left[w] += bins[t][w];
  }
  if (bins.back()[1] == 0) cut.missing_left = cut.left[1] >= node[1] - cut.left[1];
}

}  // namespace

template <int W>
Cut<W> best_cut(const Binned& binned, std::span<const Sums<W>> histogram, const Sums<W>& node,
                const SplitRules& rules, CutList& buffer) {
  Cut<W> best;
  for (std::size_t f = 0; f < binned.n_features; ++f) {
    const auto bins = histogram.subspan(binned.offset[f], binned.n_bins(f));
    const std::size_t n_values = bins.size() - 1;
    const Sums<W>& missing = bins[n_values];
    list_cuts<W>(bins, n_values, Sums<W>{}, node, rules, buffer);
    score_cuts<W>(node, rules, buffer);
    take_best<W>(buffer, static_cast<int>(f), false, best);
    if (missing[1] == 0) continue;
    list_cuts<W>(bins, n_values - 1, missing, node, rules, buffer);
    score_cuts<W>(node, rules, buffer);
    take_best<W>(buffer, static_cast<int>(f), true, best);
  }
  if (best.feature >= 0) finish<W>(binned, histogram, node, best);
  return best;
}

template Cut<2> best_cut<2>(const Binned&, std::span<const Sums<2>>, const Sums<2>&,
                            const SplitRules&, CutList&);
template Cut<3> best_cut<3>(const Binned&, std::span<const Sums<3>>, const Sums<3>&,
                            const SplitRules&, CutList&);

}  // namespace abcgbm
