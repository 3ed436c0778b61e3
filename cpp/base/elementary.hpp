// exp and log1p from plain IEEE operations in a fixed order, so the bits are the same on every
// machine and at every SIMD level; the standard library's are not. docs/arithmetic.md specifies
// them. Their errors are at most 1 and 3 ulp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/simd.hpp"

namespace abcgbm {

inline constexpr double kRoundingMagic = 6755399441055744.0;  // 1.5 * 2^52
inline constexpr double kLn2High = 0.693147180369123816490;
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

/// Rounds x half to even; |x| < 2^51.
[[gnu::always_inline]] inline double round_even(double x) {
  return (x + kRoundingMagic) - kRoundingMagic;
}

/// The same as an integer, for a scalar or a vector; unspecified if |x| is larger.
template <class T>
[[gnu::always_inline]] inline IntegersOf<T> round_to_int(T x) {
  return bits_as<IntegersOf<T>>(bits_as<UnsignedOf<T>>(x + kRoundingMagic) -
                                bits_as<std::uint64_t>(kRoundingMagic));
}

/// exp(x) for x <= 0, scalar or vector; below -708 the result is exp(-708). Evaluating several
/// arguments at once interleaves their dependency chains.
template <class T, std::size_t Chains>
[[gnu::always_inline]] inline std::array<T, Chains> exp_nonpositive(std::array<T, Chains> x) {
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
  const T smallest = T{} - 708.0;
  std::array<T, Chains> z;
  std::array<T, Chains> q;
  for (std::size_t c = 0; c < Chains; ++c) {
    x[c] = x[c] < smallest ? smallest : x[c];
    z[c] = x[c] * 1.4426950408889634 + kRoundingMagic;
    const T n = z[c] - kRoundingMagic;
    x[c] = (x[c] - n * kLn2High) - n * kLn2Low;
    q[c] = T{} + kInverseFactorial[0];
  }
  for (int i = 1; i < 14; ++i) {
    for (std::size_t c = 0; c < Chains; ++c) q[c] = q[c] * x[c] + kInverseFactorial[i];
  }
  for (std::size_t c = 0; c < Chains; ++c) {
    const IntegersOf<T> n = bits_as<IntegersOf<T>>(z[c]) - bits_as<std::int64_t>(kRoundingMagic);
    q[c] *= bits_as<T>((n + 1023) << 52);
  }
  return q;
}

template <class T>
[[gnu::always_inline]] inline T exp_nonpositive(T x) {
  return exp_nonpositive(std::array<T, 1>{x})[0];
}

/// log(u) for normal u > 0, scalar or vector.
template <class T>
[[gnu::always_inline]] inline T log_positive(T u) {
  using Ints = IntegersOf<T>;
  const auto bits = bits_as<Ints>(u);
  Ints exponent = (bits >> 52) - 1022;
  T f = bits_as<T>((bits & 0x000fffffffffffff) | (std::int64_t{1022} << 52));
  const auto low = f < T{} + 0.70710678118654752440;
  f = low ? f + f : f;
  exponent -= low ? Ints{} + 1 : Ints{};
  const T s = (f - 1.0) / (f + 1.0);
  const T s2 = s * s;
  T q = T{} + 1.0 / 21.0;
  for (int odd = 19; odd > 0; odd -= 2) q = q * s2 + 1.0 / static_cast<double>(odd);
  const T n = bits_as<T>(exponent + bits_as<std::int64_t>(kRoundingMagic)) -
              kRoundingMagic;  // the exponent as a number
  return n * kLn2High + (n * kLn2Low + (s + s) * q);
}

/// log(1 + x) for x >= 0, scalar or vector.
template <class T>
[[gnu::always_inline]] inline T log1p_nonnegative(T x) {
  const T u = x + 1.0;
  return log_positive(u) + (x - (u - 1.0)) / u;
}

}  // namespace abcgbm
