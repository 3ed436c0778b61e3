// Scores to residuals and losses, several rows at a time; docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// Rows of class-major arrays; pointers are to the first row.
struct ScoreRows {
  std::size_t n;
  std::size_t stride;  // from a class to the next, in the scores and in the residuals
  int n_classes;
  const double* raw;
  const std::int32_t* y;
};

/// The largest so far.
struct Largest {
  double residual = 0.0;
  double loss = 0.0;
};

/// Residuals in multiples of 1 / scale, and losses. Residuals that are not below 2^51 multiples
/// become some other numbers; `largest` tells.
void residuals_and_losses(const ScoreRows& rows, double scale, std::int64_t* residual,
                          double* row_loss, Largest& largest);

/// Losses and, unless it is nullptr, the class of each row's largest score, the first among equals.
void losses_and_leaders(const ScoreRows& rows, double* row_loss, std::int32_t* leading);

/// exp(F_k - max F) of rows, class-major with `stride`, and for each row how far the score of its
/// own class lies below the largest.
void exponentials(const ScoreRows& rows, std::size_t stride, double* out, double* below);

}  // namespace abcgbm
