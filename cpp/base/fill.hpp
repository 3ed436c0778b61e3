// Arrays as large as the scores of all rows: they take the time of a loop, so a user can stop that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "base/large_pages.hpp"
#include "base/parallel.hpp"

namespace abcgbm {

inline constexpr std::size_t kFilledAtOnce = std::size_t{1} << 19;

/// Appends n times the value.
template <class T>
void append(std::vector<T>& values, std::size_t n, T value) {
  for (std::size_t first = 0; first < n; first += kFilledAtOnce) {
    check_interrupt();
    values.insert(values.end(), std::min(kFilledAtOnce, n - first), value);
  }
}

/// An empty array with room for n values.
template <class T>
std::vector<T> reserved(std::size_t n) {
  std::vector<T> values;
  values.reserve(n);
  ask_for_large_pages(values.data(), n * sizeof(T));
  return values;
}

template <class T>
std::vector<T> filled(std::size_t n, T value) {
  std::vector<T> values = reserved<T>(n);
  append(values, n, value);
  return values;
}

template <class T>
std::vector<std::remove_const_t<T>> copied(std::span<T> from) {
  auto values = reserved<std::remove_const_t<T>>(from.size());
  for (std::size_t first = 0; first < from.size(); first += kFilledAtOnce) {
    check_interrupt();
    const auto some = from.subspan(first, std::min(kFilledAtOnce, from.size() - first));
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

}  // namespace abcgbm
