#include "loss/grid.hpp"

#include <algorithm>
#include <cmath>

#include "base/elementary.hpp"

namespace abcgbm {
namespace {

/// The exponent of the power of two that scales values up to `largest` to integers of `n_bits`; at
/// most 1000, so that the power and its inverse are normal doubles.
int scale_exponent(int n_bits, double largest) {
  if (largest <= 0.0) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::min(n_bits - exponent, 1000);
}

}  // namespace

int residual_exponent(const Labels& labels, double largest, int max_bits) {
  return scale_exponent(std::min(max_bits, 60 - labels.total_bits), largest);
}

int loss_exponent(const Labels& labels, double largest) {
  return scale_exponent(std::min(50, 62 - labels.total_bits), largest);
}

double loss_unit(const Labels& labels, double largest) {
  return std::ldexp(1.0, -loss_exponent(labels, largest));
}

double on_leaf_grid(double value) {
  constexpr double kGrid = 4294967296.0;  // 2^32
  return round_even(value * kGrid) / kGrid;
}

}  // namespace abcgbm
