#include "loss/hessians.hpp"

#include <algorithm>
#include <cmath>

#include "base/elementary.hpp"
#include "base/simd.hpp"

namespace abcgbm {
namespace {

/// The residuals of one class, or of a class and its base, for consecutive rows.
struct HessianBlock {
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

/// |r - p| as a double; sizes stay below 2^51, where the magic number converts exactly.
[[gnu::always_inline]] inline double size_of(std::int64_t residual, double inverse_scale) {
  const double value =
      bits_as<double>(residual + bits_as<std::int64_t>(kRoundingMagic)) - kRoundingMagic;
  return (value < 0.0 ? -value : value) * inverse_scale;
}

struct PlainHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianBlock* given) {
    const HessianBlock block = *given;
    for (std::size_t i = 0; i < block.n; ++i) {
      const double a = size_of(block.residual[i], block.inverse_scale);
      block.out[i] = round_to_int((a * (1.0 - a)) * block.scale);
    }
  }
};

struct BaseHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianBlock* given) {
    const HessianBlock block = *given;
    for (std::size_t i = 0; i < block.n; ++i) {
      const double a = size_of(block.residual[i], block.inverse_scale);
      const double a_base = size_of(block.base_residual[i], block.inverse_scale);
      const double p = block.y[i] == block.k ? 1.0 - a : a;
      const double p_base = block.y[i] == block.base ? 1.0 - a_base : a_base;
      const double h = (a_base * (1.0 - a_base) + a * (1.0 - a)) + 2.0 * (p_base * p);
      block.out[i] = round_to_int(h * block.scale);
    }
  }
};

}  // namespace

void hessian(const Scores& scores, const Labels& labels, int k, int base, std::size_t first,
             std::span<std::int64_t> out) {
  const std::size_t n = out.size();
  const auto of = [&](int of_class) {
    return std::span(scores.residual)
        .subspan(static_cast<std::size_t>(of_class) * labels.n_rows() + first, n);
  };
  hessian(scores,
          {.of_class = of(k),
           .of_base = of(std::max(base, 0)),
           .y = std::span(labels.y).subspan(first, n)},
          k, base, out);
}

void hessian(const Scores& scores, const Residuals& rows, int k, int base,
             std::span<std::int64_t> out) {
  const HessianBlock block{.n = out.size(),
                           .residual = rows.of_class.data(),
                           .base_residual = rows.of_base.data(),
                           .y = rows.y.data(),
                           .k = k,
                           .base = base,
                           .scale = std::ldexp(1.0, scores.exponent),
                           .inverse_scale = std::ldexp(1.0, -scores.exponent),
                           .out = out.data()};
  if (base < 0) {
    dispatch<PlainHessianKernel>(&block);
  } else {
    dispatch<BaseHessianKernel>(&block);
  }
}

}  // namespace abcgbm
