// Runtime choice of the SIMD level. A kernel is a struct with a static always-inline `run`; it is
// compiled once for each level, and does the same IEEE operations in the same order at each, so the
// bits are the same.
#pragma once

namespace abcgbm {

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
