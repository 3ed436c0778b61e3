// The grids of integers that residuals and losses are rounded to; docs/arithmetic.md states them.
// They follow from the largest residual or loss of all rows.
#pragma once

#include "data/labels.hpp"

namespace abcgbm {

/// Residuals are multiples of 2^-exponent when the largest is this.
inline constexpr int kResidualBits = 48;
inline constexpr int kMultiOutputResidualBits =
    30;  // of shared trees, which keep residuals in 32 bits
int residual_exponent(const Labels& labels, double largest, int max_bits);

/// Losses of rows are rounded to multiples of 2^-exponent when the largest is this.
int loss_exponent(const Labels& labels, double largest);
double loss_unit(const Labels& labels, double largest);

/// Rounds to the nearest multiple of 2^-32. Leaf values are on this grid, so their sums are exact.
double on_leaf_grid(double value);

}  // namespace abcgbm
