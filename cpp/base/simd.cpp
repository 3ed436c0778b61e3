#include "base/simd.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(__x86_64__) && defined(_WIN32)
#include <cpuid.h>
#include <windows.h>
#endif

namespace abcgbm {
namespace {

#if defined(__x86_64__) && defined(_WIN32)
/// Bits of EBX of CPUID's leaf 7: avx512f, dq, bw and vl.
constexpr unsigned kAvx512Bits = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;

bool has_avx2() { return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE) != 0; }

/// Whether the system saves the wide registers is known to Windows, and the instruction sets to the
/// CPU. __builtin_cpu_supports needs a library that clang-cl does not link.
bool has_avx512() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return IsProcessorFeaturePresent(PF_AVX512F_INSTRUCTIONS_AVAILABLE) != 0 &&
         __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kAvx512Bits) == kAvx512Bits;
}
#elif defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

SimdLevel best_of_cpu() {
  if (has_avx512()) return SimdLevel::avx512;
  return has_avx2() ? SimdLevel::avx2 : SimdLevel::baseline;
}

SimdLevel parse(std::string_view name) {
  for (const auto level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    if (name == simd_level_name(level)) return level;
  }
  throw std::invalid_argument("ABCGBM_SIMD=" + std::string(name) +
                              "; expected baseline, avx2 or avx512");
}

SimdLevel choose() {
  const SimdLevel best = best_of_cpu();
  const char* name = std::getenv("ABCGBM_SIMD");
  if (name == nullptr || *name == '\0') return best;
  const SimdLevel requests = parse(name);
  if (requests > best) {
    throw std::invalid_argument("ABCGBM_SIMD=" + std::string(name) + "; this CPU has " +
                                simd_level_name(best));
  }
  return requests;
}

}  // namespace

SimdLevel simd_level() {
  static const SimdLevel level = choose();
  return level;
}

const char* simd_level_name(SimdLevel level) {
  if (level == SimdLevel::avx512) return "avx512";
  return level == SimdLevel::avx2 ? "avx2" : "baseline";
}

}  // namespace abcgbm
