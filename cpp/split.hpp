// A node's histogram to its best cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "binned.hpp"
#include "histogram.hpp"
#include "tree.hpp"

namespace abcgbm {

/// What a cut must leave on each side, in the units of the integer sums.
struct SplitRules {
  std::int64_t min_weight = 1;
  std::int64_t min_hessian = 1;  // only with hessian sums
  double l2 = 0.0;               // only with hessian sums
  double smoothing = 0.0;        // weight that each category is given at the node's mean
};

/// One of the sides of a cut on a categorical feature has at most so many of the node's categories.
inline constexpr std::size_t kMostCategories = 64;

/// Left are codes 0..bin of the feature or, if it is categorical, a set, and missing values if
/// `missing_left`.
template <int W>
struct Cut {
  double score = 0.0;  // grows with the gain within a node; 0: no cut
  int feature = -1;
  std::uint32_t bin = 0;
  CodeSet left_set;
  bool missing_left = false;
  Sums<W> left{};
};

/// A category of a node, to be sorted.
struct Category {
  double mean = 0.0;  // of its residuals, smoothed
  std::uint32_t code = 0;
};

/// The allowed cuts of one feature: what is left of each, and its score. A buffer to use again.
struct CutList {
  std::size_t n = 0;
  std::vector<std::uint32_t> bin;
  std::vector<std::int64_t> residual;
  std::vector<std::int64_t> weight;  // as in the gain
  std::vector<double> score;
  std::vector<Category> categories;
};

/// The first cut with the largest score: the given features in order, missing values right before
/// left, bins in order. Categories, missing values among them, are sorted by the mean of their
/// residuals, and cut like bins.
template <int W>
Cut<W> best_cut(const Binned& binned, std::span<const std::uint32_t> features,
                std::span<const Sums<W>> histogram, const Sums<W>& node, const SplitRules& rules,
                CutList& buffer);

/// Gain of a cut in a node, `G_L^2/W_L + G_R^2/W_R - G^2/W`, in units of the integer sums.
template <int W>
double gain_of(const Cut<W>& cut, const Sums<W>& node, const SplitRules& rules) {
  // With hessian sums each child is shrunk by l2, and so the parent by twice that.
  const double shrink = W == 3 ? 2.0 * rules.l2 : 0.0;
  return cut.score / (static_cast<double>(node[W - 1]) + shrink);
}

}  // namespace abcgbm
