// The cuts along the bins of numeric features, several features at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "loss/sums.hpp"

namespace abcgbm {

/// What a cut must leave on each side, in the units of the integer sums.
struct SplitRules {
  std::int64_t min_weight = 1;
  std::int64_t min_hessian = 1;  // only with hessian sums
  double l2 = 0.0;               // only with hessian sums
  double smoothing = 0.0;        // weight that each category is given at the node's mean
  /// The gain of a cut of categories by chance, for each unit of CategoryPenalties; without hessian
  /// sums it is to be multiplied by the size of the residuals.
  double category_penalty = 0.0;

  /// Whether a category has too little weight for a place of its own.
  bool is_light(std::int64_t weight) const { return static_cast<double>(weight) < 0.5 * smoothing; }
};

/// The bins of a numeric feature from the lowest on: added up, on top of `start`, there is a cut
/// after each of the first n.
template <int W>
struct Scan {
  const Sums<W>* bins = nullptr;
  std::size_t n = 0;
  Sums<W> start{};  // the missing values, where these go left
  std::uint32_t feature = 0;
  bool missing_left = false;
};

/// Scans that are made side by side, one to a lane of a register.
inline constexpr std::size_t kScans = 4;
template <int W>
using Scans = std::array<Scan<W>, kScans>;

/// Some cuts of a node, by what is left of them.
template <int W>
struct SplitCandidates {
  std::size_t n;
  const Sums<W>* left;
  Sums<W> node;
  double l2;  // only with hessian sums
};

/// The score of each cut; 0 where the sides' means differ by rounding alone.
template <int W>
void score_splits(const SplitCandidates<W>& splits, std::span<double> scores);

/// About the largest score along each scan, of the cuts that the rules allow: it may fall short by
/// no more than this part of it. `empty` are empty bins, as many as a scan has at most.
inline constexpr double kBestMayFallShort = 0x1p-32;
template <int W>
std::array<double, kScans> best_scores(const Scans<W>& scans, std::span<const Sums<W>> empty,
                                       const Sums<W>& node, const SplitRules& rules);

}  // namespace abcgbm
