// Scores to residuals and losses, several rows at a time; docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/base_class.hpp"

namespace abcgbm {

/// Rows of class-major arrays; pointers are to the first row.
struct ScoreRows {
  std::size_t n;
  std::size_t stride;  // from a class to the next, in the scores and in the residuals
  int n_classes;
  const double* raw;
  const std::int32_t* y = nullptr;
  BaseClass left_out{};  // a class that does not count, if any

  const double* of_class(int k) const { return raw + static_cast<std::size_t>(k) * stride; }
};

/// The largest so far.
struct Largest {
  double residual = 0.0;
  double loss = 0.0;
};

/// Residuals in multiples of 1 / scale, and losses. Residuals may take the place of the scores.
/// Residuals that are not below 2^51 multiples
/// become some other numbers; `largest` tells.
void residuals_and_losses(const ScoreRows& rows, double scale, std::int64_t* residual,
                          double* row_loss, Largest& largest);

/// Losses and, unless it is nullptr, the class of each row's largest score, the first among equals.
void losses_and_leaders(const ScoreRows& rows, double* row_loss, std::int32_t* leading);

/// Where the parts of a softmax go; nullptr: nowhere.
struct SoftmaxTerms {
  double* exponential = nullptr;  // exp(F_k - max F), class-major
  std::size_t stride = 0;         // from a class to the next, of the exponentials
  double* largest = nullptr;      // score of each row
  double* rest = nullptr;         // sum of the row's exponentials but that of the largest score
};
void softmax_terms(const ScoreRows& rows, const SoftmaxTerms& out);

}  // namespace abcgbm
