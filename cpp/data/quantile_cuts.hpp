// The thresholds of one column: weighted quantile cuts; docs/arithmetic.md, "Bins".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "data/reductions.hpp"

namespace abcgbm {

/// Cuts ascending distinct values into at most `max_bins` bins of about equal weight, greedily,
/// given their number and total weight.
class QuantileCutter {
 public:
  QuantileCutter(std::size_t n_values, std::int64_t total, std::size_t max_bins)
      : n_left_(n_values), rest_(total), bins_left_(max_bins) {}

  void add(const WeightedValue& item);

  /// Whether the current bin ends before this value if it comes next.
  bool ends_before(const WeightedValue& item) const;
  std::vector<double> take() { return std::move(thresholds_); }

  /// Whether no bin can end among the next values of this total weight if at least `n_after` others
  /// follow. Such values can be skipped; the last of them is set later.
  bool may_skip(std::int64_t weight, std::size_t n_after) const;
  bool has_many_left(std::size_t n_after) const { return n_after + 2 > bins_left_; }
  void skip(std::int64_t weight) { acc_ += weight; }
  void set_last(double value) { last_ = value; }

  /// Sets the number of remaining values if it was unknown at first.
  void set_left(std::size_t n_values) { n_left_ = n_values; }
  bool is_done() const { return bins_left_ == 1; }

  /// The weight of the current bin so far; the weight of it and all later bins; and their number.
  std::tuple<double, double, double> state() const {
    return {static_cast<double>(acc_), static_cast<double>(rest_), static_cast<double>(bins_left_)};
  }

 private:
  std::size_t n_left_;     // remaining values
  std::int64_t rest_;      // weight of the current bin and all later ones
  std::size_t bins_left_;  // the current bin and all later ones
  std::int64_t acc_ = 0;   // weight of the current bin so far
  double last_ = 0.0;      // the previous value
  std::vector<double> thresholds_;
};

/// Thresholds between at most `max_bins` bins of ascending distinct values.
std::vector<double> cut_values(const std::vector<WeightedValue>& values, std::size_t max_bins);

/// The weights of rows and their properties, found once for all columns.
struct KnownWeights {
  static constexpr std::int64_t kAny = -1;

  explicit KnownWeights(std::span<const std::int64_t> weight);

  std::span<const std::int64_t> weight;
  std::int64_t common;  // the weight of every row; kAny if they differ
  bool has_absent;      // whether any weight is 0
};

/// Thresholds between at most `max_bins` value bins of a column; rows of weight 0 are ignored.
std::vector<double> column_thresholds(std::span<const double> column, const KnownWeights& weights,
                                      std::size_t max_bins);

/// The same by sorting all values; the fast path above must give equal thresholds.
std::vector<double> sorted_thresholds(std::span<const double> column,
                                      std::span<const std::int64_t> weight, std::size_t max_bins);

}  // namespace abcgbm
