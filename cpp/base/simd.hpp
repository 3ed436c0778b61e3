// Dispatch of kernels by SIMD level at run time. A kernel is a struct with a static always-inline
// `run`. It is compiled once for each level and does the same IEEE operations in the same order at
// each, so the bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// Vectors of N values. A kernel that is a template of N gets as many as a register holds.
template <std::size_t N>
struct Wide {
  using Doubles [[gnu::vector_size(N * sizeof(double))]] = double;
  using Integers [[gnu::vector_size(N * sizeof(std::int64_t))]] = std::int64_t;
  using ShortIntegers [[gnu::vector_size(N * sizeof(std::int32_t))]] = std::int32_t;
};
inline constexpr std::size_t kWidest = 8;

/// Integer types of the same size and shape as T, a double or a vector of doubles.
template <class T>
struct IntegersFor {
  using Signed [[gnu::vector_size(sizeof(T))]] = std::int64_t;
  using Unsigned [[gnu::vector_size(sizeof(T))]] = std::uint64_t;
};
template <>
struct IntegersFor<double> {
  using Signed = std::int64_t;
  using Unsigned = std::uint64_t;
};
template <class T>
using IntegersOf = typename IntegersFor<T>::Signed;
template <class T>
using UnsignedOf = typename IntegersFor<T>::Unsigned;

/// Reinterprets the bits. (std::bit_cast may become a function call, which would be compiled for
/// another register width.)
template <class To, class From>
[[gnu::always_inline]] inline To bits_as(const From& from) {
  return __builtin_bit_cast(To, from);
}

/// Unaligned load and store.
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

/// The best level of this CPU, or a lower one that the environment variable ABCGBM_SIMD names.
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

/// Runs one of three kernels, compiled for this CPU.
template <class Baseline, class Avx2, class Avx512, class... Args>
void run_at_level(Args... args) {
#if defined(__x86_64__)
  static const SimdLevel level = simd_level();
  if (level == SimdLevel::avx512) return run_avx512<Avx512>(args...);
  if (level == SimdLevel::avx2) return run_avx2<Avx2>(args...);
#endif
  run_baseline<Baseline>(args...);
}

}  // namespace simd

/// Runs the kernel, compiled for this CPU.
template <class Kernel, class... Args>
void dispatch(Args... args) {
  simd::run_at_level<Kernel, Kernel, Kernel>(args...);
}

/// The same for a template of the number of values in a register.
template <template <std::size_t> class Kernel, class... Args>
void dispatch_wide(Args... args) {
  simd::run_at_level<Kernel<2>, Kernel<4>, Kernel<8>>(args...);
}

}  // namespace abcgbm
