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

/// One node; a leaf has no feature. Right is left + 1. Left go the codes 0..bin of the feature, or
/// those of a set if it is categorical, and missing values if `missing_left`.
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

/// What a shared tree has in place of the values of its nodes.
struct MultiOutputValues {
  std::vector<float> of_leaf;  // [n_leaves][n_classes], leaves in the order of their nodes
  std::vector<int> feature;    // that the tree is cut on, ascending
  std::vector<double> gain;    // of all cuts on each of them, [feature.size()][n_classes]
};

/// Nodes in order of creation. Adds its value to tree_class, and takes it, times base_scale, from
/// base if there is one; or, if it is shared, adds a value to every class.
struct Tree {
  int tree_class = 0;
  BaseClass base;
  double base_scale = 1.0;
  std::vector<TreeNode> nodes;
  MultiOutputValues multi_output{};

  bool is_multi_output() const { return tree_class == kAllClasses; }
};

/// The number of each leaf among the leaves, by node; 0 for the others.
inline std::vector<std::uint16_t> leaf_numbers(const std::vector<TreeNode>& nodes) {
  std::vector<std::uint16_t> numbers(nodes.size(), 0);
  std::uint16_t n = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_leaf()) numbers[i] = n++;
  }
  return numbers;
}

}  // namespace abcgbm
