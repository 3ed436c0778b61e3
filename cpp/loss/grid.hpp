// Integer grids for residuals, losses and leaf values; docs/arithmetic.md specifies them. Sums of
// multiples of a power of two are exact, so they depend neither on the order of the rows nor on
// threads and ranks.
#pragma once

#include "data/labels.hpp"

namespace abcgbm {

/// Residuals are multiples of 2^-exponent, given the largest residual of all rows.
inline constexpr int kResidualBits = 48;
inline constexpr int kMultiOutputResidualBits =
    30;  // of multi-output trees, which store 32-bit residuals
int residual_exponent(const Labels& labels, double largest, int max_bits);

/// Losses of rows are multiples of 2^-exponent, given the largest loss of all rows.
int loss_exponent(const Labels& labels, double largest);
double loss_unit(const Labels& labels, double largest);

/// Rounds to the nearest multiple of 2^-32, the grid of leaf values. Scores are sums of leaf
/// values, hence exact in any order: a warm start or a resumed fit computes the same scores from
/// the trees.
double on_leaf_grid(double value);

}  // namespace abcgbm
