// From values to bin codes: find the thresholds of each column, then code the table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "data/bin_search.hpp"
#include "data/binned.hpp"

namespace abcgbm {

/// A table of doubles with arbitrary strides, in elements.
struct TableView {
  const double* data = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 0;
};

/// Columns that list the values of some rows, in ascending order; all other rows have the column's
/// `fill`.
struct SparseView {
  std::size_t n_rows = 0;
  std::span<const double> fill;         // by column
  std::span<const std::int64_t> start;  // n_columns + 1
  std::span<const std::uint32_t> row;
  std::span<const double> value;

  std::size_t n_columns() const { return fill.size(); }
};

/// Ascending thresholds between the value bins of each feature.
using Thresholds = std::vector<std::vector<double>>;

/// Thresholds between at most `max_bins` value bins of each column: weighted quantiles over all
/// rows. If there are no more distinct values than bins, every value gets a bin.
Thresholds find_thresholds(const TableView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads);
Thresholds find_thresholds(const SparseView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads);

/// Copies columns [first, last) into contiguous memory, tile by tile, so that each cache line is
/// read once.
void copy_columns(const TableView& table, std::size_t first, std::size_t last,
                  std::vector<double>& out);

/// Calls each(f, values) for every column, groups of adjacent columns in parallel. Contiguous
/// columns are not copied.
template <class Each>
void for_each_column(const TableView& table, int n_threads, const Each& each) {
  constexpr std::size_t kColumnsPerTask = 8;   // they share the cache lines of a row-major table
  constexpr std::size_t kMaxValues = 1 << 20;  // copied by one thread at a time
  const std::size_t n_together = std::clamp<std::size_t>(
      kMaxValues / std::max<std::size_t>(table.n_rows, 1), 1, kColumnsPerTask);
  const std::size_t n_groups = (table.n_features + n_together - 1) / n_together;
  parallel_for(n_groups, n_threads, [&](std::size_t group, std::size_t) {
    const std::size_t first = group * n_together;
    const std::size_t last = std::min(first + n_together, table.n_features);
    std::vector<double> copies;
    if (table.row_stride != 1) copy_columns(table, first, last, copies);
    for (std::size_t f = first; f < last; ++f) {
      check_interrupt();
      const double* values = table.row_stride == 1
                                 ? table.data + static_cast<std::ptrdiff_t>(f) * table.column_stride
                                 : copies.data() + (f - first) * table.n_rows;
      each(f, std::span<const double>(values, table.n_rows));
    }
  });
}

/// Codes a table, a few columns at a time and perhaps a few rows at a time. The thresholds of a
/// feature are set at any time before its values are added. A value's code is the number of
/// thresholds below it; NaN has the last code. Categories arrive as codes with thresholds between
/// them (0.5, 1.5, ...), so that bins and storage need no second kind of column.
class BinnedBuilder {
 public:
  BinnedBuilder(std::size_t n_rows, std::span<const std::uint8_t> is_categorical,
                Storage storage = {});

  /// Sets the bins of a feature; to be called before its values are added.
  void set_thresholds(std::size_t f, std::vector<double> thresholds);

  /// Fixes how a feature is stored when these rows are a shard: its common code over all rows, and
  /// how many of all rows have another. Otherwise both follow from the rows that are added.
  void set_common_code(std::size_t f, std::uint32_t common, std::size_t n_listed,
                       std::size_t n_rows);

  /// Adds all rows of the given features, which are the columns of the view.
  void add(const TableView& table, std::span<const std::int32_t> features, int n_threads);
  void add(const SparseView& table, std::span<const std::int32_t> features, int n_threads);

  /// Adds the rows from `first_row` on. After the last ones, `finish_features` settles the layout
  /// of the features; their digests are then those of all rows.
  void add_rows(const TableView& table, std::span<const std::int32_t> features,
                std::size_t first_row, int n_threads);
  void finish_features(std::span<const std::int32_t> features, int n_threads);

  /// Once every feature has been added: bundles of sparse features that have no conflict in these
  /// rows; and for each feature 1 if it conflicts with an earlier one of its bundle in some row.
  std::vector<Bundle> bundles() const;
  std::vector<std::int32_t> conflicts(std::span<const Bundle> bundles) const;

  /// Returns the table with these bundles, and empties the builder.
  Binned finish(std::span<const Bundle> bundles);
  bool has_all() const;
  bool has(std::size_t feature) const { return is_added_[feature] != 0; }

  bool has_bins(std::size_t feature) const { return features_[feature].n_bins > 0; }
  std::uint32_t n_bins(std::size_t feature) const { return features_[feature].n_bins; }
  bool is_sparse(std::size_t feature) const {
    return feature < features_.size() && features_[feature].is_sparse;
  }
  bool fit_a_code(std::span<const Bundle> bundles) const;
  std::uint64_t digest(std::size_t feature) const { return digest_[feature]; }
  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_features() const { return features_.size(); }

 private:
  template <class Code>
  void set_codes(std::size_t f, LargeVector<Code> codes);
  void widen();
  std::size_t max_bins() const { return dense_.index() == 0 ? 1u << 8 : 1u << 16; }
  void set_all_codes(std::size_t f, const SparseColumn& column, std::uint32_t fill);
  void mark_added(std::span<const std::int32_t> features);

  std::size_t n_rows_;
  Thresholds thresholds_;
  std::vector<Feature> features_;
  Storage storage_;                     // of the codes
  AnyColumns dense_;                    // by feature; one byte a code until a feature needs two
  std::vector<SparseColumn> sparse_;    // by feature
  std::vector<std::uint8_t> is_added_;  // by feature
  std::vector<std::uint8_t> is_layout_known_;  // by feature: dense or sparse
  std::vector<std::uint64_t> digest_;          // by feature
};

}  // namespace abcgbm
