// Distinct values of columns, counted batch by batch; the thresholds are cut from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/binning.hpp"

namespace abcgbm {

/// Ascending distinct values and their weights, in separate arrays as files hold them.
struct ValueRun {
  std::vector<double> value;
  std::vector<std::int64_t> weight;

  std::size_t size() const { return value.size(); }
};

/// A view of a run.
struct RunView {
  std::span<const double> value;
  std::span<const std::int64_t> weight;
};

/// The values of some columns in the rows so far. The merged runs do not depend on the batches or
/// their order.
class ValueCounts {
 public:
  explicit ValueCounts(std::size_t n_columns) : runs_(n_columns), digest_(n_columns) {}

  /// Counts the rows from `first_row` on; rows of weight 0 and NaN are ignored.
  void add(const TableView& table, std::span<const std::int64_t> weight, std::size_t first_row,
           int n_threads);

  /// Adds the counts of other rows of the same columns.
  void merge(const ValueCounts& other, int n_threads);

  /// Returns one merged run for each column, and clears the counts.
  std::vector<ValueRun> take(int n_threads);

  /// The thresholds of each column, from the stored runs and the given ones.
  Thresholds thresholds(std::span<const std::vector<RunView>> further, std::size_t max_bins,
                        int n_threads) const;

  std::size_t n_columns() const { return runs_.size(); }
  std::size_t n_values() const;  // stored values, over all columns

  /// Digests of all rows, including those of weight 0; see `column_digest`.
  std::span<const std::uint64_t> digests() const { return digest_; }

 private:
  std::vector<std::vector<ValueRun>>
      runs_;                           // by column; each run at most half as long as the one before
  std::vector<std::uint64_t> digest_;  // by column
};

}  // namespace abcgbm
