// The distinct values of columns, counted part by part: what thresholds are cut from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/binning.hpp"

namespace abcgbm {

/// Distinct values, ascending, and the sums of their weights: side by side, as files hold them.
struct ValueRun {
  std::vector<double> value;
  std::vector<std::int64_t> weight;

  std::size_t size() const { return value.size(); }
};

/// A run that somebody else holds.
struct RunView {
  std::span<const double> value;
  std::span<const std::int64_t> weight;
};

/// The values of some columns in the rows so far. Whatever parts the rows come in, and in which
/// order, the runs of a column merge to the same values and weights.
class ValueCounts {
 public:
  explicit ValueCounts(std::size_t n_columns) : runs_(n_columns), digest_(n_columns) {}

  /// Counts the rows from `first_row` on; those of weight 0 are absent, and so is NaN.
  void add(const TableView& table, std::span<const std::int64_t> weight, std::size_t first_row,
           int n_threads);

  /// Counts the rows that another has counted, of the same columns.
  void merge(const ValueCounts& other, int n_threads);

  /// Hands over what is held as one run a column, and begins anew.
  std::vector<ValueRun> take(int n_threads);

  /// The thresholds of each column, of what is held and of further runs of the column.
  Thresholds thresholds(std::span<const std::vector<RunView>> further, std::size_t max_bins,
                        int n_threads) const;

  std::size_t n_columns() const { return runs_.size(); }
  std::size_t n_values() const;  // values, of all columns

  /// What the rows make of each column, those of weight 0 too; see `column_digest`.
  std::span<const std::uint64_t> digests() const { return digest_; }

 private:
  std::vector<std::vector<ValueRun>> runs_;  // by column; each at most half as long as the last
  std::vector<std::uint64_t> digest_;        // by column
};

}  // namespace abcgbm
