// Softmax of class-major scores, several rows at a time; docs/arithmetic.md states the formulas.
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

struct Largest {
  double residual = 0.0;
  double loss = 0.0;
};

/// Residuals in multiples of 1 / scale, and losses. `largest` is of this and all earlier calls;
/// where a residual times scale is above 2^51 they are not what they should be.
void softmax(const ScoreRows& rows, double scale, std::int64_t* residual, double* row_loss,
             Largest& largest);

/// Losses, and the class of each row's largest score, the first among equals.
void losses(const ScoreRows& rows, double* row_loss, std::int32_t* leading);

/// exp(F_k - max F) of rows, class-major with `stride`, and for each row how far the score of its
/// own class lies below the largest.
void exponentials(const ScoreRows& rows, std::size_t stride, double* out, double* below);

}  // namespace abcgbm
