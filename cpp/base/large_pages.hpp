// Huge pages for large arrays: passes over them, and random accesses, cost fewer TLB misses.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace abcgbm {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// Requests huge pages for memory that has not been touched yet. The system may refuse.
inline void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  if (bytes < 2 * kLargePage) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (first + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t end = (first + bytes) / kLargePage * kLargePage;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the first page that is entirely inside the memory
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace abcgbm
