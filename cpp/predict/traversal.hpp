// Traversal of packed trees, several at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "predict/packed_trees.hpp"

namespace abcgbm {

inline constexpr std::size_t kTraversalsAtOnce = 8;

/// Whether a category goes left; one beyond the set's words goes where missing values go.
inline bool is_in_set(const PackedTrees& trees, const PackedNode& node, double x) {
  const std::span<const std::uint64_t> set = trees.set_of(node);
  if (!(x >= 0.0 && x < 64.0 * static_cast<double>(set.size()))) return node.missing_left();
  const auto code = static_cast<std::uint32_t>(x);
  return ((set[code / 64] >> (code % 64)) & 1u) != 0;
}

/// Interleaved traversals, to hide the latency of loading nodes.
struct Traversals {
  std::array<std::uint32_t, kTraversalsAtOnce> at;
  std::array<const double*, kTraversalsAtOnce> row;
};

/// The next node; a leaf is its own successor.
inline std::uint32_t next_node(const PackedTrees& trees, std::uint32_t at, const double* row) {
  const PackedNode& node = trees.nodes[at];
  const double x = row[std::max(node.feature, 0)];
  // Without branches, as the direction is unpredictable.
  const std::uint32_t is_missing_left = std::isnan(x) ? node.left_and_flags & kMissingLeft : 0u;
  std::uint32_t is_left = (x <= node.threshold ? 1u : 0u) | is_missing_left;
  if (node.is_set()) is_left = is_in_set(trees, node, x) ? 1u : 0u;
  return node.is_leaf() ? at : node.left() + 1u - is_left;
}

/// Advances until all traversals are at a leaf.
inline void finish(const PackedTrees& trees, Traversals& traversals) {
  for (std::uint32_t moved = 1; moved != 0;) {
    moved = 0;
    for (std::size_t j = 0; j < kTraversalsAtOnce; ++j) {
      const std::uint32_t next = next_node(trees, traversals.at[j], traversals.row[j]);
      moved |= next ^ traversals.at[j];
      traversals.at[j] = next;
    }
  }
}

}  // namespace abcgbm
