// Small trees over a chunk of rows at once, without a walk.
//
// A tree is read as the list of its splits, parents first. Each cuts one region in two: what goes
// left keeps the region's number, what goes right gets the next free one. All rows of a chunk go
// through all splits together:
//
//     region[row] = region[row] == split.region && code[row] > split.code ? next : region[row]
//
// So every split is looked at, where a walk looks at few; but without a jump, and 32 rows to an
// AVX2 instruction. Values are compared by small codes, found once for all trees: how many of the
// feature's thresholds lie below a value, or a category's own code.
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
  std::uint16_t code = 0;  // those above it go right
};

/// Where the parts of a tree begin. One that is not small has none.
struct RegionTree {
  std::uint32_t n_splits = 0;
  std::uint32_t first_split = 0;
  std::uint32_t first_value = 0;
  std::uint32_t first_word = 0;
  bool is_small = false;
};

/// A feature that is cut by thresholds. It has two columns of codes: missing values lie below all
/// others in the first one, above in the second one; a split uses that which sends them its way.
struct RankedFeature {
  std::uint32_t feature = 0;
  std::uint32_t n_thresholds = 0;
  std::uint32_t first = 0;     // its thresholds, ascending,
  std::uint32_t n_padded = 0;  // and infinities up to a power of two less one
};

/// A feature that is cut by sets, of n_words words each. It has one column; what no set can hold
/// has the first code of the last word.
struct CodedFeature {
  std::uint32_t feature = 0;
  std::uint32_t n_words = 0;
};

/// The small trees of a forest.
struct RegionTrees {
  std::vector<RankedFeature> ranked;
  std::vector<double> thresholds;  // of all ranked features
  std::vector<CodedFeature> coded;
  std::vector<RegionTree> trees;
  std::vector<RegionSplit> splits;
  std::vector<std::uint64_t> left_sets;  // in the order of the splits that have one
  std::vector<double> values;            // by tree and region
  bool has_wide_codes = false;           // 16 bits rather than 8

  std::size_t n_columns() const { return 2 * ranked.size() + coded.size(); }
};

/// No tree is small if a feature has more codes than 16 bits can tell apart.
RegionTrees make_region_trees(const PackedTrees& packed);

/// The codes of a chunk of rows, column after column, in the width that the trees have.
struct CodeChunk {
  std::vector<std::uint8_t> narrow;
  std::vector<std::uint16_t> wide;
};

/// Finds the codes of at most kRowsAtOnce rows with n_features each.
void code_rows(const RegionTrees& trees, const double* rows, std::size_t n_rows,
               std::size_t n_features, CodeChunk& codes);

/// The values of a small tree for a chunk of coded rows.
void leaf_values(const RegionTrees& trees, const RegionTree& tree, const CodeChunk& codes,
                 std::size_t n_rows, ChunkValues values);

}  // namespace abcgbm
