// The binned table: the form in which training sees the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace abcgbm {

/// One column of the table. The last of its bins holds its missing values.
struct Feature {
  std::uint32_t offset = 0;  // of its first bin among all bins of the table
  std::uint32_t n_bins = 0;
  std::uint32_t column = 0;  // its number among the columns, or among the sparse ones
  std::uint32_t common = 0;  // the code of the rows that a sparse feature does not list
  bool is_sparse = false;
  bool is_bundled = false;      // sparse, and its codes are in a bundle's column
  bool is_categorical = false;  // cuts are sets of codes

  std::uint32_t missing_code() const { return n_bins - 1; }

  /// Whether it has a sparse column of its own; else its codes are in a dense one, or in a bundle.
  bool is_listed() const { return is_sparse && !is_bundled; }
};

/// Codes by column, [n_columns][n_rows].
template <class Code>
using Columns = std::vector<std::vector<Code>>;

/// The rows of a sparse column whose code is not the common one, ascending.
struct SparseColumn {
  std::vector<std::uint32_t> row;
  std::vector<std::uint16_t> code;
};

/// Columns in which one code is so common that only the other rows are kept.
struct SparseCodes {
  std::vector<SparseColumn> by_column;
  // The same by row: the bins among all of the table, ascending.
  std::vector<std::size_t> row_start;  // n_rows + 1, or none
  std::vector<std::uint32_t> bin;

  std::span<const std::uint32_t> bins_of(std::size_t row) const {
    return {bin.data() + row_start[row], row_start[row + 1] - row_start[row]};
  }
};

/// Columns whose bins lie side by side and are counted together: few enough for the histogram to
/// stay in the nearest cache. Sparse features without a bundle make one block, without columns.
struct Block {
  std::size_t first_column = 0;  // columns [first_column, last_column)
  std::size_t last_column = 0;
  std::size_t first_bin = 0;  // bins [first_bin, last_bin)
  std::size_t last_bin = 0;
  std::span<const std::uint32_t> features;

  bool is_sparse() const { return first_column == last_column; }
};

/// Codes of dense columns take one byte while every feature has at most 256 bins, else two. Sparse
/// features of which no two list the same row may be bundled: one more dense column says of each
/// row which bin it has in any of them, if not the common one of all. Histograms count bundles like
/// other columns. Bins of dense features come first, then those of bundled ones, then the others'.
struct Binned {
  std::size_t n_rows = 0;
  std::size_t total_bins = 0;
  std::vector<Feature> features;
  std::vector<std::uint32_t> sparse;      // sparse features, ascending
  std::vector<std::uint32_t> by_bin;      // all features, in the order of their bins
  std::vector<std::uint32_t> column_bin;  // n_columns + 1: first bin of each column
  std::variant<Columns<std::uint8_t>, Columns<std::uint16_t>> columns;  // dense ones, then bundles
  SparseCodes sparse_codes;

  std::size_t n_features() const { return features.size(); }
  std::size_t n_columns() const { return column_bin.size() - 1; }

  /// The first of a feature's codes among those of its column: 0 but in a bundle.
  std::uint32_t begin_in_column(const Feature& feature) const {
    return feature.offset - column_bin[feature.column];
  }
};

/// Completes a table that has its features, their dense and their sparse columns.
void arrange(Binned& binned);

/// The same for a table whose bundles are known and have their columns already; the sparse columns
/// of bundled features are not looked at.
void arrange(Binned& binned, const std::vector<std::vector<std::uint32_t>>& bundles);

/// The blocks of a table, at least `n_wanted` of them if there are so many columns.
std::vector<Block> blocks_of(const Binned& binned, std::size_t n_wanted);

/// The given rows of a binned table; each must exist.
Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows);

/// The codes of some features, [n_rows][n_features].
std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features);

}  // namespace abcgbm
