// Softmax residuals and losses of several rows at a time; docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/base_class.hpp"

namespace abcgbm {

/// Rows of class-major arrays; pointers are to the first row.
struct ScoreRows {
  std::size_t n;
  std::size_t stride;  // between classes, of scores and residuals
  int n_classes;
  const double* raw;
  const std::int32_t* y = nullptr;
  BaseClass left_out{};  // a class to leave out, if any

  const double* of_class(int k) const { return raw + static_cast<std::size_t>(k) * stride; }
};

/// The largest residual and loss so far.
struct Largest {
  double residual = 0.0;
  double loss = 0.0;
};

/// Residuals in multiples of 1 / scale, and losses. Residuals may overwrite the scores. A residual
/// of 2^51 multiples or more is not computed correctly; `largest` reveals it.
void residuals_and_losses(const ScoreRows& rows, double scale, std::int64_t* residual,
                          double* row_loss, Largest& largest);

/// Losses and, unless it is nullptr, the class of each row's largest score, the first among equals.
void losses_and_leaders(const ScoreRows& rows, double* row_loss, std::int32_t* leading);

/// Where to store parts of a softmax; nullptr: nowhere.
struct SoftmaxTerms {
  double* exponential = nullptr;  // exp(F_k - max F), class-major
  std::size_t stride = 0;         // between classes, of the exponentials
  double* largest = nullptr;      // score of each row
  double* rest = nullptr;         // sum of a row's exponentials, without that of its largest score
};
void softmax_terms(const ScoreRows& rows, const SoftmaxTerms& out);

}  // namespace abcgbm
