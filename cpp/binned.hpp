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
  std::uint32_t column = 0;  // its number among the dense columns, or among the sparse ones
  std::uint32_t common = 0;  // the code of the rows that a sparse column does not list
  bool is_sparse = false;
  bool is_categorical = false;  // cuts are sets of codes

  std::uint32_t missing_code() const { return n_bins - 1; }
};

/// Codes of the dense columns in both orders: by row for histograms, by column for partition.
template <class Code>
struct DenseCodes {
  std::vector<Code> by_row;                  // [n_rows][n_dense]
  std::vector<std::vector<Code>> by_column;  // [n_dense][n_rows]
};

/// The rows of a sparse column whose code is not the common one, ascending.
struct SparseColumn {
  std::vector<std::uint32_t> row;
  std::vector<std::uint16_t> code;
};

/// Columns in which one code is so common that only the other rows are kept, in both orders.
struct SparseCodes {
  std::vector<std::size_t> row_start;  // n_rows + 1
  std::vector<std::uint32_t> bin;  // of each row in turn: bins among all of the table, ascending
  std::vector<SparseColumn> by_column;

  std::span<const std::uint32_t> bins_of(std::size_t row) const {
    return {bin.data() + row_start[row], row_start[row + 1] - row_start[row]};
  }
};

/// Codes of dense columns take one byte while every feature has at most 256 bins, else two. Bins of
/// dense columns come before those of sparse ones.
struct Binned {
  std::size_t n_rows = 0;
  std::size_t total_bins = 0;
  std::vector<Feature> features;
  std::vector<std::uint32_t> dense_offset;  // n_dense + 1: first bin of each dense column
  std::vector<std::uint32_t> sparse;        // features with a sparse column, ascending
  std::variant<DenseCodes<std::uint8_t>, DenseCodes<std::uint16_t>> dense_codes;
  SparseCodes sparse_codes;

  std::size_t n_features() const { return features.size(); }
  std::size_t n_dense() const { return dense_offset.size() - 1; }
};

/// Lays out by row what is there by column.
void fill_by_row(Binned& binned, int n_threads);

/// The given rows of a binned table; each must exist.
Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows);

/// The codes of some features, [n_rows][n_features].
std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features);

}  // namespace abcgbm
