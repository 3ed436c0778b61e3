// Where the bins and codes of each feature are. A layout follows from counts over all rows, in an
// order that depends on nothing else: it is the same for whoever holds some of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// One column of the user's table. The last of its bins holds its missing values.
struct Feature {
  std::uint32_t offset = 0;  // of its first bin among all bins of the table
  std::uint32_t n_bins = 0;
  std::uint32_t column = 0;  // its number among the columns, or among the listed features
  std::uint32_t common = 0;  // the code of the rows that a sparse feature does not list
  bool is_sparse = false;
  bool is_bundled = false;      // sparse, and its codes are in a bundle's column
  bool is_categorical = false;  // cuts are sets of codes

  std::uint32_t missing_code() const { return n_bins - 1; }

  /// Whether its rows are listed; else its codes are in a column of its own, or in a bundle's.
  bool is_listed() const { return is_sparse && !is_bundled; }
};

/// Sparse features of which no two list the same row, such as the one-hot columns of one category.
using Bundle = std::vector<std::uint32_t>;

/// A column holds a code for each row, and belongs to a dense feature or to a bundle. A bundle's
/// code of a row is its bin in any of the features, if not the common one of all. Histograms count
/// bundles like other columns. Bins of dense features come first, then those of bundled ones, then
/// those of listed ones.
struct Layout {
  std::size_t total_bins = 0;
  std::vector<Feature> features;
  std::vector<std::uint32_t> sparse_features;  // ascending
  std::vector<std::uint32_t> by_bin;           // all features, in the order of their bins
  std::vector<std::uint32_t> column_bin;       // n_columns + 1: first bin of each column

  std::size_t n_features() const { return features.size(); }
  std::size_t n_columns() const { return column_bin.size() - 1; }

  /// The first of a feature's codes among those of its column: 0 but in a bundle.
  std::uint32_t begin_in_column(const Feature& feature) const {
    return feature.offset - column_bin[feature.column];
  }

  /// The place in by_bin of the first feature whose bins do not lie before `bin`.
  std::size_t first_feature_from(std::size_t bin) const;
};

/// Columns whose bins lie side by side and are counted together: few enough for the histogram to
/// stay in the nearest cache. Listed features make one block, without columns.
struct Block {
  std::size_t first_column = 0;  // columns [first_column, last_column)
  std::size_t last_column = 0;
  std::size_t first_bin = 0;  // bins [first_bin, last_bin)
  std::size_t last_bin = 0;
  std::span<const std::uint32_t> features;

  bool is_listed() const { return first_column == last_column; }
};

/// Whether a feature is sparse, given how many rows do not have its most common code: where a list
/// of those takes less memory than a code for each row.
bool is_sparse(std::size_t n_listed, std::size_t n_rows);

/// Lays out features of which the bins, the common code and whether they are sparse are known.
Layout make_layout(std::vector<Feature> features, std::span<const Bundle> bundles);

/// The blocks of a table, at least `n_requested` of them if there are so many columns, and of no
/// more than `most_bins` but for columns that have more. They point into the layout.
inline constexpr std::size_t kBinsPerBlock = 2048;  // 32 kB of histogram, at two sums a bin
std::vector<Block> blocks_of(const Layout& layout, std::size_t n_requested,
                             std::size_t max_bins = kBinsPerBlock);

}  // namespace abcgbm
