// Random draws that depend on nothing but their key, so that threads and chunks do not matter.
#pragma once

#include <cstdint>

namespace abcgbm {

/// What is drawn; part of the key, so that draws of different kinds are independent.
/// (Python draws with 3.)
enum class Draw : std::uint64_t { rows = 1, features = 2, projections = 4 };

/// A bijection of 64-bit integers without pattern (splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t draw(std::uint64_t seed, Draw kind, std::uint64_t a, std::uint64_t b) {
  return mix(mix(mix(mix(seed) ^ static_cast<std::uint64_t>(kind)) ^ a) ^ b);
}

/// A draw as a number in [0, 1).
constexpr double to_unit(std::uint64_t drawn) { return static_cast<double>(drawn >> 11) * 0x1p-53; }

}  // namespace abcgbm
