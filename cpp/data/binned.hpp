// The binned table: the form in which training sees the data.
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

/// Codes take one byte while every feature has at most 256 bins, else two.
using AnyColumns = std::variant<Columns<std::uint8_t>, Columns<std::uint16_t>>;

/// The rows of a sparse feature whose code is not the common one, ascending.
struct SparseColumn {
  SparseColumn() = default;
  explicit SparseColumn(const Storage& storage) : row(storage), code(storage) {}

  LargeVector<std::uint32_t> row;
  LargeVector<std::uint16_t> code;
};

/// The listed features, twice: to split nodes by column, to count them by row.
struct ListedCodes {
  std::vector<SparseColumn> by_column;
  LargeVector<std::size_t> row_start;  // n_rows + 1, or none
  LargeVector<std::uint32_t> bin;      // of each row, among all bins of the table, ascending

  std::span<const std::uint32_t> bins_of_row(std::size_t row) const {
    return {bin.data() + row_start[row], row_start[row + 1] - row_start[row]};
  }
};

/// A layout, and the codes of some rows stored by it.
struct Binned {
  std::size_t n_rows = 0;
  Layout layout;
  AnyColumns columns;  // of dense features, then of bundles
  ListedCodes listed;
};

/// The table of a layout with these bundles, of which no columns are there yet. Dense features have
/// a column each; those that are sparse have a sparse one.
Binned make_binned(std::size_t n_rows, Layout layout, std::span<const Bundle> bundles,
                   AnyColumns dense, std::vector<SparseColumn> sparse);

/// The table of codes that are stored by a layout already.
Binned stored_binned(std::size_t n_rows, Layout layout, AnyColumns columns,
                     std::vector<SparseColumn> listed);

/// The given rows of a binned table; each must exist. Their codes lie where the table's do.
Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows);

/// The codes of some features, [n_rows][n_features].
std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features);

}  // namespace abcgbm
