#include "base/simd.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace abcgbm {
namespace {

SimdLevel best_of_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return SimdLevel::avx512;
  }
  if (__builtin_cpu_supports("avx2")) return SimdLevel::avx2;
#endif
  return SimdLevel::baseline;
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
  const SimdLevel wanted = parse(name);
  if (wanted > best) {
    throw std::invalid_argument("ABCGBM_SIMD=" + std::string(name) + "; this CPU has " +
                                simd_level_name(best));
  }
  return wanted;
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
