// Large arrays in large pages: walks over them, and jumps within them, look up fewer addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace abcgbm {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// Asks for large pages for memory that has not been touched yet. The system may refuse, which
/// changes nothing but the time.
inline void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  if (bytes < 2 * kLargePage) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (first + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t end = (first + bytes) / kLargePage * kLargePage;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the first page that lies whole in the memory
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace abcgbm
