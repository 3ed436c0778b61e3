// Random numbers that are functions of a key (seed, kind, iteration, row or node, ...). There is no
// generator state, so neither threads nor chunks matter, and a warm start draws what a single fit
// would have drawn.
#pragma once

#include <cstdint>

namespace abcgbm {

/// The purpose of a draw. It is part of the key, so draws for different purposes are independent.
/// (Python uses 3.)
enum class Draw : std::uint64_t { rows = 1, features = 2, projections = 4 };

/// splitmix64, a bijection of 64-bit integers.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t draw(std::uint64_t seed, Draw kind, std::uint64_t a, std::uint64_t b) {
  return mix(mix(mix(mix(seed) ^ static_cast<std::uint64_t>(kind)) ^ a) ^ b);
}

/// Maps a draw to [0, 1).
constexpr double to_unit(std::uint64_t drawn) { return static_cast<double>(drawn >> 11) * 0x1p-53; }

}  // namespace abcgbm
