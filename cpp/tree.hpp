// A grown tree over bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace abcgbm {

/// One node; a leaf has no feature. Right is left + 1.
struct TreeNode {
  int feature = -1;
  std::uint32_t bin = 0;
  int left = -1;
  bool missing_left = false;
  double value = 0.0;  // of a leaf, learning rate included
  double gain = 0.0;   // of a split
  double weight = 0.0;

  bool is_leaf() const { return feature < 0; }
};

/// Nodes in order of creation. Adds its value to tree_class, and takes it, times base_scale, from
/// base if there is one.
struct Tree {
  int tree_class = 0;
  int base = -1;
  double base_scale = 1.0;
  std::vector<TreeNode> nodes;
};

}  // namespace abcgbm
