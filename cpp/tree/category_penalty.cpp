#include "tree/category_penalty.hpp"

#include <algorithm>

#include "base/elementary.hpp"

namespace abcgbm {

CategoryPenalties::CategoryPenalties(const Layout& layout) {
  std::size_t max_categories = 2;
  for (const Feature& feature : layout.features) {
    if (feature.is_categorical)
      max_categories = std::max<std::size_t>(max_categories, feature.n_bins);
  }
  log_factorial_.assign(max_categories + 1, 0.0);
  for (std::size_t n = 2; n <= max_categories; ++n) {
    log_factorial_[n] = log_factorial_[n - 1] + log_positive(static_cast<double>(n));
  }
}

std::span<const double> CategoryPenalties::of(std::size_t n, double unit) {
  penalties_.resize(n - 1);
  const double all = log_factorial_[n] - log_factorial_[2];  // left and right are interchangeable
  const double in_order = log_factorial_[n - 1] - log_factorial_[n - 2];
  for (std::size_t left = 1; left < n; ++left) {
    const double ways = ((all - in_order) - log_factorial_[left]) - log_factorial_[n - left];
    penalties_[left - 1] = unit * std::max(0.0, ways);
  }
  return penalties_;
}

}  // namespace abcgbm
