// Our own exp and log1p: plain IEEE operations in a fixed order, so the same bits on every machine
// and at every SIMD level. docs/arithmetic.md states them; they are accurate to 1 and 3 ulp.
#pragma once

#include <bit>
#include <cstdint>

namespace abcgbm {

inline constexpr double kRoundingMagic = 6755399441055744.0;  // 1.5 * 2^52
inline constexpr double kLn2High = 0.693147180369123816490;
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

/// x rounded half to even; |x| < 2^51.
[[gnu::always_inline]] inline double round_even(double x) {
  return (x + kRoundingMagic) - kRoundingMagic;
}

/// The same as an integer.
[[gnu::always_inline]] inline std::int64_t round_to_int(double x) {
  return std::bit_cast<std::int64_t>(x + kRoundingMagic) -
         std::bit_cast<std::int64_t>(kRoundingMagic);
}

/// 2^n for |n| <= 1022.
inline double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::int64_t>(n + 1023) << 52);
}

/// exp(x) for x <= 0; below -708 it stays at exp(-708).
[[gnu::always_inline]] inline double exp_nonpositive(double x) {
  constexpr double kInverseFactorial[] = {1.0 / 6227020800.0,
                                          1.0 / 479001600.0,
                                          1.0 / 39916800.0,
                                          1.0 / 3628800.0,
                                          1.0 / 362880.0,
                                          1.0 / 40320.0,
                                          1.0 / 5040.0,
                                          1.0 / 720.0,
                                          1.0 / 120.0,
                                          1.0 / 24.0,
                                          1.0 / 6.0,
                                          1.0 / 2.0,
                                          1.0,
                                          1.0};
  x = x < -708.0 ? -708.0 : x;
  const double z = x * 1.4426950408889634 + kRoundingMagic;
  const double n = z - kRoundingMagic;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double q = kInverseFactorial[0];
  for (int i = 1; i < 14; ++i) q = q * r + kInverseFactorial[i];
  const std::int64_t exponent =
      std::bit_cast<std::int64_t>(z) - std::bit_cast<std::int64_t>(kRoundingMagic);
  return q * std::bit_cast<double>((exponent + 1023) << 52);
}

/// log(u) for normal u > 0.
[[gnu::always_inline]] inline double log_positive(double u) {
  const auto bits = std::bit_cast<std::int64_t>(u);
  std::int64_t exponent = (bits >> 52) - 1022;
  double f = std::bit_cast<double>((bits & 0x000fffffffffffff) | (std::int64_t{1022} << 52));
  const bool low = f < 0.70710678118654752440;
  f = low ? f + f : f;
  exponent -= low ? 1 : 0;
  const double s = (f - 1.0) / (f + 1.0);
  const double s2 = s * s;
  double q = 1.0 / 21.0;
  for (int odd = 19; odd > 0; odd -= 2) q = q * s2 + 1.0 / static_cast<double>(odd);
  const auto n = static_cast<double>(exponent);
  return n * kLn2High + (n * kLn2Low + (s + s) * q);
}

/// log(1 + x) for x >= 0.
[[gnu::always_inline]] inline double log1p_nonnegative(double x) {
  const double u = 1.0 + x;
  return log_positive(u) + (x - (u - 1.0)) / u;
}

}  // namespace abcgbm
