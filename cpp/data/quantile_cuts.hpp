// The thresholds of one column; docs/arithmetic.md, "Bins".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "data/reductions.hpp"

namespace abcgbm {

/// Cuts the ascending distinct values of a column into at most `max_bins` bins of about equal
/// weight, greedily. It is told how many values will come, and what they weigh together.
class QuantileCutter {
 public:
  QuantileCutter(std::size_t n_values, std::int64_t total, std::size_t max_bins)
      : n_left_(n_values), rest_(total), bins_left_(max_bins) {}

  void add(const WeightedValue& item);

  /// Whether the bin at hand ends before this value, if it comes next.
  bool ends_before(const WeightedValue& item) const;
  std::vector<double> take() { return std::move(thresholds_); }

  /// Whether no bin can end among the next values, that weigh so much together, if at least
  /// `n_after` others follow them. Such values can be skipped; the last of them is known later.
  bool may_skip(std::int64_t weight, std::size_t n_after) const;
  bool has_many_left(std::size_t n_after) const { return n_after + 2 > bins_left_; }
  void skip(std::int64_t weight) { acc_ += weight; }
  void set_last(double value) { last_ = value; }

  /// Says how many values are left, where that was not known at first.
  void set_left(std::size_t n_values) { n_left_ = n_values; }
  bool is_done() const { return bins_left_ == 1; }

  /// What the bin at hand weighs so far, what it and all after it weigh, and how many these are.
  std::tuple<double, double, double> state() const {
    return {static_cast<double>(acc_), static_cast<double>(rest_), static_cast<double>(bins_left_)};
  }

 private:
  std::size_t n_left_;     // values that are still to come
  std::int64_t rest_;      // what the bin at hand, and all after it, weigh
  std::size_t bins_left_;  // that one, and all after it
  std::int64_t acc_ = 0;   // what the bin at hand weighs so far
  double last_ = 0.0;      // the value before
  std::vector<double> thresholds_;
};

/// The thresholds between at most `max_bins` bins of distinct values, ascending.
std::vector<double> cut_values(const std::vector<WeightedValue>& values, std::size_t max_bins);

/// The weights of rows, and what is known of all of them: looked at once for all columns.
struct KnownWeights {
  static constexpr std::int64_t kAny = -1;

  explicit KnownWeights(std::span<const std::int64_t> weight);

  std::span<const std::int64_t> weight;
  std::int64_t common;  // the weight that all rows have; kAny if they differ
  bool has_absent;      // whether any is 0
};

/// The thresholds between at most `max_bins` value bins of a column; rows of weight 0 are absent.
std::vector<double> column_thresholds(std::span<const double> column, const KnownWeights& weights,
                                      std::size_t max_bins);

/// The same by sorting all values: what the quicker way above must equal.
std::vector<double> sorted_thresholds(std::span<const double> column,
                                      std::span<const std::int64_t> weight, std::size_t max_bins);

}  // namespace abcgbm
