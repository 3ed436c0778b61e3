// Where the bins and codes of each feature are stored. A layout follows from counts over all rows
// in a fixed order, so it is the same on every rank.
//
// Codes are stored by column only: a column-wise histogram reads a row's sums once for four
// columns, which is faster than a row-wise one except for tiny nodes of huge tables, and the
// row-wise copy is saved. A feature whose most common code has at least 80 % of the rows is sparse:
// only its other rows are stored, and the sums of its common bin are the node's minus the rest,
// exactly, as sums are integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// A column of the user's table. Its last bin holds the missing values.
struct Feature {
  std::uint32_t offset = 0;  // first of its bins, numbered over all features
  std::uint32_t n_bins = 0;
  std::uint32_t column = 0;  // number of its column, or its place among the listed features
  std::uint32_t common = 0;  // code of the rows that a sparse feature does not list
  bool is_sparse = false;
  bool is_bundled = false;      // sparse, with its codes in the column of a bundle
  bool is_categorical = false;  // splits are sets of codes

  std::uint32_t missing_code() const { return n_bins - 1; }

  /// Whether the feature is stored as a list of rows; otherwise it is in a column of its own or of
  /// a bundle.
  bool is_listed() const { return is_sparse && !is_bundled; }
};

/// Sparse features that never list the same row, such as the one-hot columns of one category.
using Bundle = std::vector<std::uint32_t>;

/// A column holds a code for each row, of a dense feature or of a bundle. The code of a bundle is
/// the row's bin in any of its features or, if all are at their common code, the common bin of the
/// first. So a bundle needs no bins of its own, and histograms treat it like any other column. The
/// bins of dense features come first, then those of bundled ones, then those of listed ones.
struct Layout {
  std::size_t total_bins = 0;
  std::vector<Feature> features;
  std::vector<std::uint32_t> sparse_features;  // ascending
  std::vector<std::uint32_t> by_bin;           // all features in the order of their bins
  std::vector<std::uint32_t> column_bin;       // n_columns + 1: first bin of each column

  std::size_t n_features() const { return features.size(); }
  std::size_t n_columns() const { return column_bin.size() - 1; }

  /// The first code of a feature in its column; 0 except in a bundle.
  std::uint32_t begin_in_column(const Feature& feature) const {
    return feature.offset - column_bin[feature.column];
  }

  /// The index in by_bin of the first feature whose bins start at `bin` or later.
  std::size_t first_feature_from(std::size_t bin) const;
};

/// Adjacent columns that are counted together. A block's part of the histogram fits into the L1
/// cache, and while it is there the lighter child is counted, its sibling subtracted, and both are
/// searched for splits. All listed features form one block without columns.
struct Block {
  std::size_t first_column = 0;  // columns [first_column, last_column)
  std::size_t last_column = 0;
  std::size_t first_bin = 0;  // bins [first_bin, last_bin)
  std::size_t last_bin = 0;
  std::span<const std::uint32_t> features;

  bool is_listed() const { return first_column == last_column; }
};

/// Whether a list of the rows that do not have the most common code takes less memory than a column
/// of codes.
bool is_sparse(std::size_t n_listed, std::size_t n_rows);

/// Lays out features whose bins, common codes and sparsity are known.
Layout make_layout(std::vector<Feature> features, std::span<const Bundle> bundles);

/// Divides a table into blocks of at most `max_bins`, except for single columns with more. There
/// are at least `n_requested` of them if there are as many columns. They point into the layout.
inline constexpr std::size_t kBinsPerBlock = 2048;  // 32 kB of histogram with two sums a bin
std::vector<Block> blocks_of(const Layout& layout, std::size_t n_requested,
                             std::size_t max_bins = kBinsPerBlock);

}  // namespace abcgbm
