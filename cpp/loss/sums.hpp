// The sums that a single-output tree takes over rows, for a bin, a node or a leaf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// W sums over rows: 2 or, with the hessian, 3.
template <int W>
using Sums = std::array<std::int64_t, W>;

inline constexpr std::size_t kResidual = 0;  // times the row's weight
inline constexpr std::size_t kWeight = 1;
inline constexpr std::size_t kHessian = 2;  // times the row's weight

template <int W>
inline constexpr bool kHasHessian = W == 3;

/// The denominator of a mean in the gain of a split: weights (MART) or hessians (robust
/// LogitBoost).
template <int W>
inline constexpr std::size_t kSplitWeight = kHasHessian<W> ? kHessian : kWeight;

template <std::size_t N>
void add(std::array<std::int64_t, N>& sums, const std::array<std::int64_t, N>& more) {
  for (std::size_t i = 0; i < N; ++i) sums[i] += more[i];
}

inline void subtract(std::int64_t& sum, std::int64_t part) { sum -= part; }

inline std::int64_t difference(std::int64_t sum, std::int64_t part) { return sum - part; }

template <std::size_t N>
void subtract(std::array<std::int64_t, N>& sums, const std::array<std::int64_t, N>& part) {
  for (std::size_t i = 0; i < N; ++i) sums[i] -= part[i];
}

template <std::size_t N>
std::array<std::int64_t, N> difference(std::array<std::int64_t, N> sums,
                                       const std::array<std::int64_t, N>& part) {
  subtract(sums, part);
  return sums;
}

}  // namespace abcgbm
