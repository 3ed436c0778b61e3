#include "tree/level_price.hpp"

#include <algorithm>

#include "base/elementary.hpp"

namespace abcgbm {

LevelPrices::LevelPrices(const Layout& layout) {
  std::size_t most = 2;
  for (const Feature& feature : layout.features) {
    if (feature.is_categorical) most = std::max<std::size_t>(most, feature.n_bins);
  }
  log_factorial_.assign(most + 1, 0.0);
  for (std::size_t n = 2; n <= most; ++n) {
    log_factorial_[n] = log_factorial_[n - 1] + log_positive(static_cast<double>(n));
  }
}

std::span<const double> LevelPrices::of(std::size_t n, double unit) {
  prices_.resize(n - 1);
  const double all = log_factorial_[n] - log_factorial_[2];  // left and right may change places
  const double in_order = log_factorial_[n - 1] - log_factorial_[n - 2];
  for (std::size_t left = 1; left < n; ++left) {
    const double ways = ((all - in_order) - log_factorial_[left]) - log_factorial_[n - left];
    prices_[left - 1] = unit * std::max(0.0, ways);
  }
  return prices_;
}

}  // namespace abcgbm
