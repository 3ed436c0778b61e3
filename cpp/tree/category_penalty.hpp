// What a cut on a category must gain beyond chance: levels sorted by what their rows say seem to
// differ even where they do not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/layout.hpp"

namespace abcgbm {

/// The logarithm of the number of ways to part n levels into two sets of some sizes, less that of
/// the n - 1 cuts that a number of so many values has for nothing. Sorting picks one of these ways,
/// and chance alone gains about as much by that, in units of the gain that is expected of a cut
/// that says nothing.
class CategoryPenalties {
 public:
  explicit CategoryPenalties(const Layout& layout);

  /// The prices of the cuts that put the first 1, 2, ... of n levels left, times `unit`.
  std::span<const double> of(std::size_t n, double unit);

 private:
  std::vector<double> log_factorial_;
  std::vector<double> penalties_;
};

}  // namespace abcgbm
