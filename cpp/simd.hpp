// Runtime choice of the SIMD level. A kernel is a struct with a static always-inline `run`; it is
// compiled once for each level, and does the same IEEE operations in the same order at each, so the
// bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// N numbers at a time. Kernels that say so themselves are given as many as a register holds.
template <std::size_t N>
struct Wide {
  using Doubles [[gnu::vector_size(N * sizeof(double))]] = double;
  using Integers [[gnu::vector_size(N * sizeof(std::int64_t))]] = std::int64_t;
  using ShortIntegers [[gnu::vector_size(N * sizeof(std::int32_t))]] = std::int32_t;
};
inline constexpr std::size_t kWidest = 8;

/// From and to any place in memory.
template <class Vector, class T>
[[gnu::always_inline]] inline Vector load(const T* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(Vector));
  return vector;
}

template <class Vector, class T>
[[gnu::always_inline]] inline void store(const Vector& vector, T* to) {
  __builtin_memcpy(to, &vector, sizeof(Vector));
}

enum class SimdLevel { baseline, avx2, avx512 };

/// The best level of this CPU, or the lower one that the environment's ABCGBM_SIMD names.
SimdLevel simd_level();
const char* simd_level_name(SimdLevel level);

namespace simd {

template <class Kernel, class... Args>
void run_baseline(Args... args) {
  Kernel::run(args...);
}

#if defined(__x86_64__)
template <class Kernel, class... Args>
[[gnu::target("avx2")]] void run_avx2(Args... args) {
  Kernel::run(args...);
}

template <class Kernel, class... Args>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]] void run_avx512(Args... args) {
  Kernel::run(args...);
}
#endif

}  // namespace simd

/// A kernel for any number of numbers at a time.
template <template <std::size_t> class Kernel, class... Args>
void dispatch_wide(Args... args) {
#if defined(__x86_64__)
  static const SimdLevel level = simd_level();
  if (level == SimdLevel::avx512) return simd::run_avx512<Kernel<8>>(args...);
  if (level == SimdLevel::avx2) return simd::run_avx2<Kernel<4>>(args...);
#endif
  simd::run_baseline<Kernel<2>>(args...);
}

/// Runs the kernel as compiled for this CPU.
template <class Kernel, class... Args>
void dispatch(Args... args) {
#if defined(__x86_64__)
  static const SimdLevel level = simd_level();
  if (level == SimdLevel::avx512) return simd::run_avx512<Kernel>(args...);
  if (level == SimdLevel::avx2) return simd::run_avx2<Kernel>(args...);
#endif
  simd::run_baseline<Kernel>(args...);
}

}  // namespace abcgbm
