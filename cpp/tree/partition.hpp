// The rows of each node: a permutation of all rows in which every node is a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/storage.hpp"
#include "data/binned.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

struct RowSets {
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  LargeVector<std::uint32_t> rows;
  LargeVector<std::uint32_t> scratch;
  LargeVector<std::uint8_t> marks;  // all 0 between splits
  std::vector<Range> nodes;         // by node id

  explicit RowSets(const Storage& storage = {}) : rows(storage), scratch(storage), marks(storage) {}

  std::span<const std::uint32_t> in_node(std::size_t node) const {
    return {rows.data() + nodes[node].begin, nodes[node].end - nodes[node].begin};
  }
};

/// Bytes for each row.
inline constexpr std::size_t kRowSetBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint8_t);

/// Puts all rows into the root.
void reset(RowSets& sets, std::size_t n_rows);

/// Splits the rows of `node` into two new nodes, left then right, preserving the order of rows.
///
///   node   [ a b c d e f g ]    codes <= bin: a c f
///   after  [ a c f | b d e g ]
void split_rows(RowSets& sets, std::size_t node, const Binned& binned, const TreeNode& split);

/// Writes the leaf of each row.
void write_leaves(const RowSets& sets, std::span<const TreeNode> nodes,
                  std::span<std::uint16_t> node_of_row);

/// Finds the leaf of each row of a table in a finished tree.
void apply_tree(const Binned& binned, std::span<const TreeNode> nodes, RowSets& sets,
                std::span<std::uint16_t> node_of_row);

}  // namespace abcgbm
