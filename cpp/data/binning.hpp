// Values to bin codes: learn the thresholds of each column, then code a table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "data/binned.hpp"
#include "data/reductions.hpp"

namespace abcgbm {

/// A table of doubles with any strides (counted in elements).
struct TableView {
  const double* data = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 0;
};

/// Columns that list the values of some rows, rows ascending; the others have the column's `fill`.
struct SparseView {
  std::size_t n_rows = 0;
  std::span<const double> fill;         // by column
  std::span<const std::int64_t> start;  // n_columns + 1
  std::span<const std::int32_t> row;
  std::span<const double> value;

  std::size_t n_columns() const { return fill.size(); }
};

/// For each feature the thresholds between its value bins, ascending.
using Thresholds = std::vector<std::vector<double>>;

/// The thresholds between at most `max_bins` value bins of each column; weighted quantiles over all
/// rows. With no more distinct values than bins every cut between two values is there.
Thresholds find_thresholds(const TableView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads);
Thresholds find_thresholds(const SparseView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads);

/// Cuts the ascending distinct values of a column into at most `max_bins` bins of about equal
/// weight, greedily; docs/arithmetic.md, "Bins". It is told how many values will come, and what
/// they weigh together.
class Cutter {
 public:
  Cutter(std::size_t n_values, std::int64_t total, std::size_t max_bins)
      : n_left_(n_values), rest_(total), bins_left_(max_bins) {}

  void add(const WeightedValue& item);
  std::vector<double> take() { return std::move(thresholds_); }

 private:
  std::size_t n_left_;     // values that are still to come
  std::int64_t rest_;      // what the bin at hand, and all after it, weigh
  std::size_t bins_left_;  // that one, and all after it
  std::int64_t acc_ = 0;   // what the bin at hand weighs so far
  double last_ = 0.0;      // the value before
  std::vector<double> thresholds_;
};

/// Copies columns [first, last) side by side, tile by tile, so that each cache line is read once.
void copy_columns(const TableView& table, std::size_t first, std::size_t last,
                  std::vector<double>& out);

/// Calls each(f, values) for every column, groups of neighbouring columns in parallel.
template <class Each>
void for_each_column(const TableView& table, int n_threads, const Each& each) {
  constexpr std::size_t kColumnsPerTask = 8;  // those that share a cache line of a row-major table
  constexpr std::size_t kMostValues = 1 << 20;  // copied by one thread at a time
  const std::size_t n_together = std::clamp<std::size_t>(
      kMostValues / std::max<std::size_t>(table.n_rows, 1), 1, kColumnsPerTask);
  const std::size_t n_groups = (table.n_features + n_together - 1) / n_together;
  parallel_for(n_groups, n_threads, [&](std::size_t group, std::size_t) {
    const std::size_t first = group * n_together;
    const std::size_t last = std::min(first + n_together, table.n_features);
    std::vector<double> columns;
    copy_columns(table, first, last, columns);
    for (std::size_t f = first; f < last; ++f) {
      check_interrupt();
      each(f, std::span<const double>(columns.data() + (f - first) * table.n_rows, table.n_rows));
    }
  });
}

/// Codes a table, some columns at a time, and perhaps some rows at a time: a value's code is the
/// number of thresholds below it, NaN has the last code. The codes of a categorical column are its
/// values, with thresholds between.
class BinnedBuilder {
 public:
  BinnedBuilder(std::size_t n_rows, Thresholds thresholds,
                std::span<const std::uint8_t> is_categorical);

  /// Columns of the view are the given features, and its rows are all rows.
  void add(const TableView& table, std::span<const std::int32_t> features, int n_threads);
  void add(const SparseView& table, std::span<const std::int32_t> features, int n_threads);

  /// The same for the rows from `first_row` on. When all rows have come, `settle` says so; the
  /// digests of columns are then those of all rows.
  void add_rows(const TableView& table, std::span<const std::int32_t> features,
                std::size_t first_row, int n_threads);
  void settle(std::span<const std::int32_t> features, int n_threads);

  /// The table, once every feature has been added; the builder is then empty.
  Binned finish();
  bool has_all() const;
  bool has(std::size_t feature) const { return is_added_[feature] != 0; }

  std::uint64_t digest(std::size_t feature) const { return digest_[feature]; }
  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_features() const { return features_.size(); }

 private:
  template <class Code>
  void set_codes(std::size_t f, std::vector<Code> codes);
  template <class Code>
  void fill_codes(std::size_t f, std::span<const double> column, std::span<Code> codes) const;
  void set_all_codes(std::size_t f, const SparseColumn& column);
  void mark_added(std::span<const std::int32_t> features);

  std::size_t n_rows_;
  Thresholds thresholds_;
  std::vector<Feature> features_;
  AnyColumns dense_;                    // by feature
  std::vector<SparseColumn> sparse_;    // by feature
  std::vector<std::uint8_t> is_added_;  // by feature
  std::vector<std::uint64_t> digest_;   // by feature
};

}  // namespace abcgbm
