// Values to bin codes: learn the thresholds of each column, then code a table.
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

/// Copies columns [first, last) side by side, tile by tile, so that each cache line is read once.
void copy_columns(const TableView& table, std::size_t first, std::size_t last,
                  std::vector<double>& out);

/// Calls each(f, values) for every column, groups of neighbouring columns in parallel. Those whose
/// values lie side by side are not copied.
template <class Each>
void for_each_column(const TableView& table, int n_threads, const Each& each) {
  constexpr std::size_t kColumnsPerTask = 8;   // those that share a cache line of a row-major table
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

/// Codes a table, some columns at a time, and perhaps some rows at a time. Thresholds may be known
/// of all features before, or be learned and set one after the other: a value's code is the
/// number of thresholds below it, NaN has the last code. The codes of a categorical column are its
/// values, with thresholds between.
class BinnedBuilder {
 public:
  BinnedBuilder(std::size_t n_rows, std::span<const std::uint8_t> is_categorical,
                Storage storage = {});

  /// Says what the bins of a feature are, before its values are added.
  void set_thresholds(std::size_t f, std::vector<double> thresholds);

  /// Says how a feature is stored where its rows are a part of more: what the common code of all
  /// rows is, and how many of them have another. Else it follows from the rows that are added.
  void set_common_code(std::size_t f, std::uint32_t common, std::size_t n_listed,
                       std::size_t n_rows);

  /// Columns of the view are the given features, and its rows are all rows.
  void add(const TableView& table, std::span<const std::int32_t> features, int n_threads);
  void add(const SparseView& table, std::span<const std::int32_t> features, int n_threads);

  /// The same for the rows from `first_row` on. When all rows have come, `finish_features` says so;
  /// the digests of columns are then those of all rows.
  void add_rows(const TableView& table, std::span<const std::int32_t> features,
                std::size_t first_row, int n_threads);
  void finish_features(std::span<const std::int32_t> features, int n_threads);

  /// Once every feature has been added: the bundles of sparse ones by the rows that are here, and
  /// which features meet another one of their bundle in some row, with 1.
  std::vector<Bundle> bundles() const;
  std::vector<std::int32_t> conflicts(std::span<const Bundle> bundles) const;

  /// The table with these bundles; the builder is then empty.
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
  AnyColumns dense_;                    // by feature; of one byte a code as long as that will do
  std::vector<SparseColumn> sparse_;    // by feature
  std::vector<std::uint8_t> is_added_;  // by feature
  std::vector<std::uint8_t> is_layout_known_;  // by feature, whether it is known how it is stored
  std::vector<std::uint64_t> digest_;          // by feature
};

}  // namespace abcgbm
