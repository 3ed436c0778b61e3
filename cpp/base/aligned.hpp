// Vectors aligned to cache lines.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "base/large_pages.hpp"

namespace abcgbm {

template <class T>
struct AlignedAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard's name
  static constexpr std::align_val_t kLine{64};

  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t n) {
    void* memory = ::operator new(n * sizeof(T), kLine);
    ask_for_large_pages(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kLine); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace abcgbm
