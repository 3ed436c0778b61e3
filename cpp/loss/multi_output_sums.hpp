// The sums that a multi-output tree takes over rows, for a bin or a node. 32 bits suffice to rank
// splits; leaf values come from 64-bit sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"

namespace abcgbm {

/// The sums of a bin: residuals by projection, hessians by projection if wanted, and the weight.
/// Bins are `stride` apart.
///
///   3 projections  [ G G G | H H H | W | . ]
struct SumLayout {
  std::size_t n_projections = 0;
  bool has_hessian = false;

  std::size_t hessians_at() const { return n_projections; }
  std::size_t weight_at() const { return has_hessian ? 2 * n_projections : n_projections; }
  std::size_t stride() const { return (weight_at() + 1 + kLane - 1) / kLane * kLane; }
  bool operator==(const SumLayout&) const = default;

  static constexpr std::size_t kLane = 8;  // 32 bytes
};

/// The sums of a node.
using MultiOutputSums = std::vector<std::int32_t>;

/// The sums of all bins of a node, or of several rows.
using MultiOutputBins = AlignedVector<std::int32_t>;

inline void add(MultiOutputSums& sums, const std::int32_t* more) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
}

template <class Int>
std::vector<Int> difference(std::vector<Int> sums, const std::vector<Int>& part) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= part[i];
  return sums;
}

}  // namespace abcgbm
