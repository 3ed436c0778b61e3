// Trees packed for prediction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"

namespace abcgbm {

/// A node in 16 bytes. A leaf has feature -1; its threshold is its value or, in a multi-output
/// tree, its number among the leaves of all multi-output trees. The threshold of a categorical
/// split holds the bits of a SetPlace.
struct PackedNode {
  double threshold = 0.0;
  std::int32_t feature = -1;
  std::uint32_t left_and_flags = 0;  // left child (index among all nodes) * 4 + flags

  bool is_leaf() const { return feature < 0; }
  std::uint32_t left() const { return left_and_flags >> 2; }
  bool missing_left() const { return (left_and_flags & 1u) != 0; }
  bool is_set() const { return (left_and_flags & 2u) != 0; }
};
inline constexpr std::uint32_t kMissingLeft = 1;
inline constexpr std::uint32_t kIsSet = 2;

/// The words of a node's set in `PackedTrees::left_set`.
struct SetPlace {
  std::uint32_t start = 0;
  std::uint32_t n_words = 0;
};

/// Trees as flat arrays. A single-output tree adds its value to its class and subtracts base_scale
/// times the value from its base class; a multi-output tree adds the values of a leaf to all
/// classes. Children follow their parent.
struct PackedTrees {
  std::vector<PackedNode> nodes;
  std::vector<std::uint64_t> left_set;  // of all categorical splits, 64 codes to a word
  std::vector<std::uint32_t> root;      // by tree, and the end
  std::vector<std::int32_t> tree_class;
  std::vector<BaseClass> tree_base;
  std::vector<double> tree_base_scale;
  std::vector<float> leaf_value;  // of all multi-output trees, [n_leaves][n_classes]
  std::size_t n_features = 0;
  std::size_t n_classes = 0;

  bool is_multi_output(std::size_t t) const { return tree_class[t] == kAllClasses; }
  const float* values_of_leaf(double leaf) const {
    return leaf_value.data() + static_cast<std::size_t>(leaf) * n_classes;
  }
  std::size_t n_trees() const { return tree_class.size(); }
  std::span<const PackedNode> tree(std::size_t t) const {
    return {nodes.data() + root[t], nodes.data() + root[t + 1]};
  }
  std::span<const std::uint64_t> set_of(const PackedNode& node) const {
    const auto place = std::bit_cast<SetPlace>(node.threshold);
    return {left_set.data() + place.start, place.n_words};
  }
};

}  // namespace abcgbm
