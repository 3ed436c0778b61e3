// Walks of rows down packed trees, several at once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "predict/packed_trees.hpp"

namespace abcgbm {

inline constexpr std::size_t kWalksAtOnce = 8;

/// Whether a category goes left; one beyond the set's words goes where missing values go.
inline bool is_in_set(const PackedTrees& trees, const PackedNode& node, double x) {
  const std::span<const std::uint64_t> set = trees.set_of(node);
  if (!(x >= 0.0 && x < 64.0 * static_cast<double>(set.size()))) return node.missing_left();
  const auto code = static_cast<std::uint32_t>(x);
  return ((set[code / 64] >> (code % 64)) & 1u) != 0;
}

/// Some walks that go on together: while one waits for a node, others find theirs.
struct Walks {
  std::array<std::uint32_t, kWalksAtOnce> at;
  std::array<const double*, kWalksAtOnce> row;
};

/// One step of a walk; one that is at its leaf stays there.
inline std::uint32_t next_node(const PackedTrees& trees, std::uint32_t at, const double* row) {
  const PackedNode& node = trees.nodes[at];
  const double x = row[std::max(node.feature, 0)];
  // Without a branch: which way it goes is a guess.
  const std::uint32_t is_missing_left = std::isnan(x) ? node.left_and_flags & kMissingLeft : 0u;
  std::uint32_t is_left = (x <= node.threshold ? 1u : 0u) | is_missing_left;
  if (node.is_set()) is_left = is_in_set(trees, node, x) ? 1u : 0u;
  return node.is_leaf() ? at : node.left() + 1u - is_left;
}

/// Goes on until all are at a leaf.
inline void finish(const PackedTrees& trees, Walks& walks) {
  for (std::uint32_t moved = 1; moved != 0;) {
    moved = 0;
    for (std::size_t j = 0; j < kWalksAtOnce; ++j) {
      const std::uint32_t next = next_node(trees, walks.at[j], walks.row[j]);
      moved |= next ^ walks.at[j];
      walks.at[j] = next;
    }
  }
}

}  // namespace abcgbm
