// Values to bin codes: learn the thresholds of each column, then code a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "binned.hpp"

namespace abcgbm {

/// A table of doubles with any strides (counted in elements).
struct TableView {
  const double* data = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 0;
};

/// The thresholds between at most `max_bins` value bins of each column; weighted quantiles over all
/// rows. With no more distinct values than bins every cut between two values is there.
std::vector<std::vector<double>> find_thresholds(const TableView& table,
                                                 std::span<const std::int64_t> weight,
                                                 std::size_t max_bins, int n_threads);

/// Codes a table: a value's code is the number of thresholds below it, NaN has the last code.
Binned bin_table(const TableView& table, const std::vector<std::vector<double>>& thresholds,
                 int n_threads);

/// The given rows of a binned table; each must exist.
Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows);

}  // namespace abcgbm
