// Prediction: all trees of an ensemble over blocks of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// A node of the packed form: 16 bytes. A leaf has feature -1 and its value as threshold. A
/// categorical split has, in the bits of its threshold, where its set of codes is.
struct PackedNode {
  double threshold = 0.0;
  std::int32_t feature = -1;
  std::uint32_t left_and_flags = 0;  // left child (index in the forest) * 4, and the flags
};
inline constexpr std::uint32_t kMissingLeft = 1;
inline constexpr std::uint32_t kIsSet = 2;

/// The words of a node's set in `Forest::left_set`.
struct SetPlace {
  std::uint32_t start = 0;
  std::uint32_t n_words = 0;
};

/// Trees as flat arrays, and what each adds to: +value to its class, -base_scale * value to its
/// base class.
struct Forest {
  std::vector<PackedNode> nodes;
  std::vector<std::uint64_t> left_set;  // of all categorical splits, 64 codes to a word
  std::vector<std::uint32_t> root;      // by tree
  std::vector<std::int32_t> tree_class;
  std::vector<std::int32_t> tree_base;  // -1: none
  std::vector<double> tree_base_scale;
  std::size_t n_features = 0;
  std::size_t n_classes = 0;
};

/// Trees [first, last) are added to row-major scores [n_rows][n_classes]. Values are multiples of
/// 2^-32, so the sums are exact and depend on neither threads nor blocks.
void add_trees(const Forest& forest, const double* rows, std::size_t n_rows, double* raw,
               std::size_t first, std::size_t last, int n_threads);

}  // namespace abcgbm
