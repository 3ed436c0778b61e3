#include "loss/hessians.hpp"

#include <cmath>

#include "base/elementary.hpp"
#include "base/simd.hpp"

namespace abcgbm {
namespace {

/// Residuals of consecutive rows for a class, or for a class and its base class.
struct HessianRows {
  std::size_t n;
  const std::int64_t* residual;
  const std::int64_t* base_residual;
  const std::int32_t* y;
  int k;
  int base;
  double scale;
  double inverse_scale;
  std::int64_t* out;
};

/// |r - p| as a double; magnitudes are below 2^51, where the magic number converts exactly.
[[gnu::always_inline]] inline double size_of(std::int64_t residual, double inverse_scale) {
  const double value =
      bits_as<double>(residual + bits_as<std::int64_t>(kRoundingMagic)) - kRoundingMagic;
  return (value < 0.0 ? -value : value) * inverse_scale;
}

struct PlainHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianRows* given) {
    const HessianRows rows = *given;
    for (std::size_t i = 0; i < rows.n; ++i) {
      const double a = size_of(rows.residual[i], rows.inverse_scale);
      rows.out[i] = round_to_int((a * (1.0 - a)) * rows.scale);
    }
  }
};

struct BaseHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianRows* given) {
    const HessianRows rows = *given;
    for (std::size_t i = 0; i < rows.n; ++i) {
      const double a = size_of(rows.residual[i], rows.inverse_scale);
      const double a_base = size_of(rows.base_residual[i], rows.inverse_scale);
      const double p = rows.y[i] == rows.k ? 1.0 - a : a;
      const double p_base = rows.y[i] == rows.base ? 1.0 - a_base : a_base;
      const double h = (a_base * (1.0 - a_base) + a * (1.0 - a)) + 2.0 * (p_base * p);
      rows.out[i] = round_to_int(h * rows.scale);
    }
  }
};

}  // namespace

void hessian(const Scores& scores, const Labels& labels, const ClassPair& pair, std::size_t first,
             std::span<std::int64_t> out) {
  const std::size_t n = out.size();
  const auto residuals = [&](int k) {
    return std::span(residuals_of(scores, labels, k) + first, n);
  };
  hessian(scores,
          {.of_class = residuals(pair.tree_class),
           .of_base = residuals(pair.base.number_or(pair.tree_class)),
           .y = std::span(labels.y).subspan(first, n)},
          pair, out);
}

void hessian(const Scores& scores, const Residuals& given, const ClassPair& pair,
             std::span<std::int64_t> out) {
  const HessianRows rows{.n = out.size(),
                         .residual = given.of_class.data(),
                         .base_residual = given.of_base.data(),
                         .y = given.y.data(),
                         .k = pair.tree_class,
                         .base = pair.base.number_or(pair.tree_class),
                         .scale = std::ldexp(1.0, scores.exponent),
                         .inverse_scale = std::ldexp(1.0, -scores.exponent),
                         .out = out.data()};
  if (pair.base.exists()) {
    dispatch<BaseHessianKernel>(&rows);
  } else {
    dispatch<PlainHessianKernel>(&rows);
  }
}

}  // namespace abcgbm
