// Prediction of small trees for a chunk of rows at once, without traversal.
//
// A tree is a list of splits, parents first. Each divides one region: the left part keeps the
// region's number, the right part gets the next free one. All rows of a chunk pass all splits
// together:
//
//     region[row] = region[row] == split.region && code[row] > split.code ? next : region[row]
//
// A traversal visits few splits, while this visits all; but it has no jumps, and one AVX2
// instruction handles 32 rows. Values are compared by small codes, computed once for all trees: the
// number of the feature's thresholds below a value, or a category's own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "predict/packed_trees.hpp"

namespace abcgbm {

inline constexpr std::size_t kRowsAtOnce = 128;
using ChunkValues = std::span<double, kRowsAtOnce>;

struct RegionSplit {
  std::uint32_t column = 0;
  std::uint16_t region = 0;
  std::uint16_t code = 0;  // larger ones go right
};

/// The start of each part of a tree; unused if it is not small.
struct RegionTree {
  std::uint32_t n_splits = 0;
  std::uint32_t first_split = 0;
  std::uint32_t first_value = 0;
  std::uint32_t first_word = 0;
  bool is_small = false;
};

/// A feature with thresholds. It has two columns of codes: missing values are below all others in
/// the first, and above in the second. A split uses the one that sends them its way.
struct NumericFeature {
  std::uint32_t feature = 0;
  std::uint32_t n_thresholds = 0;
  std::uint32_t first = 0;     // ascending thresholds,
  std::uint32_t n_padded = 0;  // padded with infinities to a power of two minus one
};

/// A feature with sets, of n_words words each. It has one column; a value that no set can contain
/// has the first code of the last word.
struct CategoricalFeature {
  std::uint32_t feature = 0;
  std::uint32_t n_words = 0;
};

/// The small trees of a forest.
struct RegionTrees {
  std::vector<NumericFeature> numeric;
  std::vector<double> thresholds;  // of all numeric features
  std::vector<CategoricalFeature> categorical;
  std::vector<RegionTree> trees;
  std::vector<RegionSplit> splits;
  std::vector<std::uint64_t> left_sets;  // in the order of the splits with sets
  std::vector<double> values;            // by tree and region
  bool has_wide_codes = false;           // 16 bits instead of 8

  std::size_t n_columns() const { return 2 * numeric.size() + categorical.size(); }
};

/// No tree is small if a feature needs codes of more than 16 bits.
RegionTrees make_region_trees(const PackedTrees& packed);

/// The column-major codes of a chunk of rows, in the width of the trees' codes.
struct CodeChunk {
  std::vector<std::uint8_t> narrow;
  std::vector<std::uint16_t> wide;
};

/// Computes the codes of at most kRowsAtOnce rows with n_features each.
void code_rows(const RegionTrees& trees, const double* rows, std::size_t n_rows,
               std::size_t n_features, CodeChunk& codes);

/// Computes the values of a small tree for a chunk of coded rows.
void leaf_values(const RegionTrees& trees, const RegionTree& tree, const CodeChunk& codes,
                 std::size_t n_rows, ChunkValues values);

}  // namespace abcgbm
