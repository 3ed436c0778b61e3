// Split search of single-output trees along the bins of numeric features, four features side by
// side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "loss/sums.hpp"

namespace abcgbm {

/// Constraints and regularisation of splits, in the units of the integer sums.
struct SplitRules {
  std::int64_t min_weight = 1;
  std::int64_t min_hessian = 1;  // only with hessian sums
  double l2 = 0.0;               // only with hessian sums
  double smoothing = 0.0;        // weight that shrinks each category towards the node's mean
  /// The expected gain by chance of a categorical split, for each unit of CategoryPenalties;
  /// without hessian sums, to be multiplied by the sum of absolute residuals.
  double category_penalty = 0.0;

  /// Whether a category has too little weight to be ranked on its own.
  bool is_rare(std::int64_t weight) const { return static_cast<double>(weight) < 0.5 * smoothing; }
};

/// The bins of a numeric feature in ascending order, summed up on top of `start`; each of the first
/// n ends a possible split.
template <int W>
struct Scan {
  const Sums<W>* bins = nullptr;
  std::size_t n = 0;
  Sums<W> start{};  // missing values, if they go left
  std::uint32_t feature = 0;
  bool missing_left = false;
};

/// Scans that run side by side, one to a lane.
inline constexpr std::size_t kScans = 4;
template <int W>
using Scans = std::array<Scan<W>, kScans>;

/// Some splits of a node, by their left-hand sums.
template <int W>
struct SplitCandidates {
  std::size_t n;
  const Sums<W>* left;
  Sums<W> node;
  double l2;  // only with hessian sums
};

/// The score of each split; 0 if the sides' means differ by rounding only.
template <int W>
void score_splits(const SplitCandidates<W>& splits, std::span<double> scores);

/// Nearly the largest score along each scan, over the splits that the rules allow; too small by at
/// most this fraction. `empty` has at least as many empty bins as the longest scan.
inline constexpr double kBestMayFallShort = 0x1p-32;
template <int W>
std::array<double, kScans> best_scores(const Scans<W>& scans, std::span<const Sums<W>> empty,
                                       const Sums<W>& node, const SplitRules& rules);

}  // namespace abcgbm
