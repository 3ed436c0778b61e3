#include "split.hpp"

#include <cmath>

namespace abcgbm {
namespace {

template <int W>
Sums<W> minus(const Sums<W>& a, const Sums<W>& b) {
  Sums<W> out;
  for (std::size_t w = 0; w < W; ++w) out[w] = a[w] - b[w];
  return out;
}

constexpr double kRounding = 0x1p-50;

/// The gain up to the node's own weight; 0 if the sides' means differ by rounding alone.
template <int W>
double score_of(const Sums<W>& left, const Sums<W>& right, const SplitRules& rules) {
  const double l2 = W == 3 ? rules.l2 : 0.0;
  const double a = static_cast<double>(left[W - 1]) + l2;
  const double b = static_cast<double>(right[W - 1]) + l2;
  const double from_left = static_cast<double>(left[0]) * b;
  const double from_right = static_cast<double>(right[0]) * a;
  const double d = from_left - from_right;
  const bool is_noise = std::abs(d) <= kRounding * (std::abs(from_left) + std::abs(from_right));
  return is_noise ? 0.0 : (d * d) / (a * b);
}

template <int W>
bool is_heavy_enough(const Sums<W>& side, const SplitRules& rules) {
  if constexpr (W == 3) {
    if (side[2] < rules.min_hessian) return false;
  }
  return side[1] >= rules.min_weight;
}

/// Tries the cuts after value bins 0 .. n_cuts - 1; `left` starts as what is left of all of them.
template <int W>
void scan(std::span<const Sums<W>> bins, std::size_t n_cuts, Sums<W> left, const Sums<W>& node,
          const SplitRules& rules, Cut<W>& candidate, Cut<W>& best) {
  for (std::size_t t = 0; t < n_cuts; ++t) {
    if (bins[t][1] == 0) continue;  // an empty bin repeats the cut before it
    for (std::size_t w = 0; w < W; ++w) left[w] += bins[t][w];
    const Sums<W> right = minus<W>(node, left);
    if (right[1] < rules.min_weight) return;
    if (!is_heavy_enough<W>(left, rules) || !is_heavy_enough<W>(right, rules)) continue;
    const double score = score_of<W>(left, right, rules);
    if (score > best.score) {
      candidate.score = score;
      candidate.bin = static_cast<std::uint32_t>(t);
      candidate.left = left;
      best = candidate;
    }
  }
}

}  // namespace

template <int W>
Cut<W> best_cut(const Binned& binned, std::span<const Sums<W>> histogram, const Sums<W>& node,
                const SplitRules& rules) {
  Cut<W> best;
  for (std::size_t f = 0; f < binned.n_features; ++f) {
    const auto bins = histogram.subspan(binned.offset[f], binned.n_bins(f));
    const std::size_t n_values = bins.size() - 1;
    const Sums<W>& missing = bins[n_values];
    Cut<W> candidate{.feature = static_cast<int>(f)};
    scan<W>(bins, n_values, Sums<W>{}, node, rules, candidate, best);
    if (missing[1] > 0) {
      candidate.missing_left = true;
      scan<W>(bins, n_values - 1, missing, node, rules, candidate, best);
    } else if (best.feature == candidate.feature) {
      best.missing_left = best.left[1] >= node[1] - best.left[1];
    }
  }
  return best;
}

template Cut<2> best_cut<2>(const Binned&, std::span<const Sums<2>>, const Sums<2>&,
                            const SplitRules&);
template Cut<3> best_cut<3>(const Binned&, std::span<const Sums<3>>, const Sums<3>&,
                            const SplitRules&);

}  // namespace abcgbm
