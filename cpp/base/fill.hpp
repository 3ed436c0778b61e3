// Filling arrays of one value per row or more. That takes the time of a loop, so these functions
// check for an interrupt.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "base/parallel.hpp"
#include "base/storage.hpp"

namespace abcgbm {

inline constexpr std::size_t kFilledAtOnce = std::size_t{1} << 19;

/// Appends n copies of the value.
template <class T>
void append(LargeVector<T>& values, std::size_t n, T value) {
  for (std::size_t first = 0; first < n; first += kFilledAtOnce) {
    check_interrupt();
    values.insert(values.end(), std::min(kFilledAtOnce, n - first), value);
  }
}

/// An empty vector with capacity for n values.
template <class T>
LargeVector<T> reserved(std::size_t n, const Storage& storage = {}) {
  LargeVector<T> values(storage);
  values.reserve(n);
  return values;
}

/// n zeros; a new scratch file needs no writing.
template <class T>
LargeVector<T> zeros(std::size_t n, const Storage& storage = {}) {
  if (storage.is_file(n * sizeof(T))) return LargeVector<T>(n, storage);
  auto values = reserved<T>(n, storage);
  append(values, n, T{0});
  return values;
}

template <class T>
LargeVector<std::remove_const_t<T>> copied(std::span<T> from, const Storage& storage = {}) {
  auto values = reserved<std::remove_const_t<T>>(from.size(), storage);
  for (std::size_t first = 0; first < from.size(); first += kFilledAtOnce) {
    check_interrupt();
    const auto some = from.subspan(first, std::min(kFilledAtOnce, from.size() - first));
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

}  // namespace abcgbm
