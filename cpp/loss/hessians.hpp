// Second derivatives of the loss, from the residuals; docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base_class.hpp"
#include "loss/scores.hpp"

namespace abcgbm {

/// Hessian of the rows [first, first + out.size()) for a class against its base, or alone where
/// there is none, on the residuals' grid, without weights.
void hessian(const Scores& scores, const Labels& labels, const ClassPair& pair, std::size_t first,
             std::span<std::int64_t> out);

/// The residuals of some rows for a class and, unless there is none, for its base class.
struct Residuals {
  std::span<const std::int64_t> of_class;
  std::span<const std::int64_t> of_base;
  std::span<const std::int32_t> y;
};

/// The same for rows that lie anywhere.
void hessian(const Scores& scores, const Residuals& rows, const ClassPair& pair,
             std::span<std::int64_t> out);

}  // namespace abcgbm
