// Values to bin codes: learn the thresholds of each column, then code a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/binned.hpp"

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
  std::span<const std::uint32_t> row;
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

/// Codes a table, some columns at a time: a value's code is the number of thresholds below it, NaN
/// has the last code. The codes of a categorical column are its values, with thresholds between.
class BinnedBuilder {
 public:
  BinnedBuilder(std::size_t n_rows, Thresholds thresholds,
                std::span<const std::uint8_t> is_categorical, Storage storage = {});

  /// Columns of the view are the given features.
  void add(const TableView& table, std::span<const std::int32_t> features, int n_threads);
  void add(const SparseView& table, std::span<const std::int32_t> features, int n_threads);

  /// The table, once every feature has been added; the builder is then empty.
  Binned finish();
  bool has_all() const;
  bool has(std::size_t feature) const { return is_added_[feature] != 0; }

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_features() const { return features_.size(); }

 private:
  template <class Code>
  void set_codes(std::size_t f, LargeVector<Code> codes);
  void set_all_codes(std::size_t f, const SparseColumn& column);
  void mark_added(std::span<const std::int32_t> features);

  std::size_t n_rows_;
  Thresholds thresholds_;
  std::vector<Feature> features_;
  Storage storage_;                     // of the codes
  AnyColumns dense_;                    // by feature
  std::vector<SparseColumn> sparse_;    // by feature
  std::vector<std::uint8_t> is_added_;  // by feature
};

}  // namespace abcgbm
