// The binned table that trees are trained on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/storage.hpp"
#include "data/layout.hpp"

namespace abcgbm {

/// Codes by column, [n_columns][n_rows].
template <class Code>
using Columns = std::vector<LargeVector<Code>>;

/// A code takes one byte if every feature has at most 256 bins, else two.
using AnyColumns = std::variant<Columns<std::uint8_t>, Columns<std::uint16_t>>;

/// The rows of a sparse feature whose code is not the common one, ascending.
struct SparseColumn {
  SparseColumn() = default;
  explicit SparseColumn(const Storage& storage) : row(storage), code(storage) {}

  LargeVector<std::uint32_t> row;
  LargeVector<std::uint16_t> code;
};

/// The listed features, stored twice: by column to split nodes, by row to build histograms.
struct ListedCodes {
  std::vector<SparseColumn> by_column;
  LargeVector<std::size_t> row_start;  // n_rows + 1; empty if no feature is listed
  LargeVector<std::uint32_t> bin;      // of each row, ascending; numbered over all features

  std::span<const std::uint32_t> bins_of_row(std::size_t row) const {
    return {bin.data() + row_start[row], row_start[row + 1] - row_start[row]};
  }
};

/// A layout, and the codes of a set of rows in that layout.
struct Binned {
  std::size_t n_rows = 0;
  Layout layout;
  AnyColumns columns;  // of dense features, then of bundles
  ListedCodes listed;
};

/// Builds the bundles' columns, and the row-wise lists, from a column for each dense feature and a
/// list for each sparse one.
Binned make_binned(std::size_t n_rows, Layout layout, std::span<const Bundle> bundles,
                   AnyColumns dense, std::vector<SparseColumn> sparse);

/// Builds the table from codes that already are in the layout.
Binned stored_binned(std::size_t n_rows, Layout layout, AnyColumns columns,
                     std::vector<SparseColumn> listed);

/// A subset of the rows, in the storage of the table; the row numbers must be valid.
Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows);

/// The codes of a subset of the features, [n_rows][n_features].
std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features);

}  // namespace abcgbm
