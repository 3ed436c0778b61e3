// Hessians of the softmax loss, computed from the residuals, as p = |r - p| or 1 - |r - p|;
// docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base_class.hpp"
#include "loss/scores.hpp"

namespace abcgbm {

/// Hessians of the rows [first, first + out.size()) for a class, against its base class if there is
/// one; on the grid of the residuals, without weights.
void hessian(const Scores& scores, const Labels& labels, const ClassPair& pair, std::size_t first,
             std::span<std::int64_t> out);

/// Residuals of some rows for a class and, if there is one, its base class.
struct Residuals {
  std::span<const std::int64_t> of_class;
  std::span<const std::int64_t> of_base;
  std::span<const std::int32_t> y;
};

/// The same for rows that need not be consecutive.
void hessian(const Scores& scores, const Residuals& rows, const ClassPair& pair,
             std::span<std::int64_t> out);

}  // namespace abcgbm
