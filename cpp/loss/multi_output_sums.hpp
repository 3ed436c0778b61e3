// What is summed over rows for a shared tree: in a bin, in a node. In 32 bits, which is enough to
// tell cuts apart; the values of leaves come from other sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"

namespace abcgbm {

/// The sums of a bin, side by side: of residuals in each direction, of hessians in each, where
/// wanted, and of weights. Bins lie `stride` apart.
///
///   3 directions  [ G G G | H H H | W | . ]
struct SumLayout {
  std::size_t n_projections = 0;
  bool has_hessian = false;

  std::size_t hessians_at() const { return n_projections; }
  std::size_t weight_at() const { return has_hessian ? 2 * n_projections : n_projections; }
  std::size_t stride() const { return (weight_at() + 1 + kLane - 1) / kLane * kLane; }
  bool operator==(const SumLayout&) const = default;

  static constexpr std::size_t kLane = 8;  // 32 bytes
};

/// Those of a node.
using MultiOutputSums = std::vector<std::int32_t>;

/// Those of all bins of a node, or of some rows.
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
