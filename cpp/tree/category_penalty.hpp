// Penalty on categorical splits. Categories sorted by their mean residual seem to differ even if
// they do not, so a split must gain more than this selection gains by chance.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/layout.hpp"

namespace abcgbm {

/// The logarithm of the number of ways to divide n categories into two sets of given sizes, less
/// that of the n - 1 ways of a numeric feature with n values. Sorting selects one of these ways,
/// and by chance alone gains about that much, in units of the expected gain of an uninformative
/// split.
class CategoryPenalties {
 public:
  explicit CategoryPenalties(const Layout& layout);

  /// The penalties, times `unit`, of the splits that send the first 1, 2, ... of n categories left.
  std::span<const double> of(std::size_t n, double unit);

 private:
  std::vector<double> log_factorial_;
  std::vector<double> penalties_;
};

}  // namespace abcgbm
