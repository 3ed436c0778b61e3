// A grown tree over bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/base_class.hpp"

namespace abcgbm {

/// A set of codes, one bit each.
using CodeSet = std::vector<std::uint64_t>;

inline CodeSet empty_set(std::size_t n_codes) { return CodeSet((n_codes + 63) / 64, 0); }
inline void insert(CodeSet& set, std::uint32_t code) {
  set[code / 64] |= std::uint64_t{1} << (code % 64);
}
inline bool contains(const CodeSet& set, std::uint32_t code) {
  return ((set[code / 64] >> (code % 64)) & 1u) != 0;
}

/// A node; a leaf has no feature. The right child is left + 1. Codes 0..bin of the feature go left
/// or, if it is categorical, those of a set; and missing values if `missing_left`.
struct TreeNode {
  int feature = -1;
  std::uint32_t bin = 0;
  CodeSet left_set;
  int left = -1;
  bool missing_left = false;
  double value = 0.0;  // of a leaf, learning rate included
  double gain = 0.0;   // of a split
  double weight = 0.0;

  bool is_leaf() const { return feature < 0; }
};

/// What a multi-output tree has instead of node values.
struct MultiOutputValues {
  std::vector<float> of_leaf;  // [n_leaves][n_classes], leaves in the order of their nodes
  std::vector<int> feature;    // split features, ascending
  std::vector<double> gain;    // of all splits on each of them, [feature.size()][n_classes]
};

/// Nodes in order of creation. A single-output tree adds its value to tree_class and, if there is a
/// base class, subtracts base_scale times the value from that; a multi-output tree adds a value to
/// every class.
struct Tree {
  int tree_class = 0;
  BaseClass base;
  double base_scale = 1.0;
  std::vector<TreeNode> nodes;
  MultiOutputValues multi_output{};

  bool is_multi_output() const { return tree_class == kAllClasses; }
};

/// The number of each leaf among the leaves, by node; 0 for inner nodes.
inline std::vector<std::uint16_t> leaf_numbers(const std::vector<TreeNode>& nodes) {
  std::vector<std::uint16_t> numbers(nodes.size(), 0);
  std::uint16_t n = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_leaf()) numbers[i] = n++;
  }
  return numbers;
}

}  // namespace abcgbm
