// The grids of integers that residuals and losses are rounded to; docs/arithmetic.md states them.
// They follow from the largest residual or loss of all rows.
#pragma once

#include "data/labels.hpp"

namespace abcgbm {

/// Residuals are multiples of 2^-exponent when the largest is this.
int residual_exponent(const Labels& labels, double largest);

/// Losses of rows are rounded to multiples of 2^-exponent when the largest is this.
int loss_exponent(const Labels& labels, double largest);
double loss_unit(const Labels& labels, double largest);

}  // namespace abcgbm
