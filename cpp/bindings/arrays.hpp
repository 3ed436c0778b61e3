// Conversion from and to NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace abcgbm {

namespace nb = nanobind;

/// A NumPy array argument. A wrong dtype is an error, never a hidden copy.
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// Raises ValueError in Python. Everything is checked here, so that the core need not check.
inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T>
std::span<const T> span_of(const Vector<T>& array) {
  return {array.data(), array.shape(0)};
}

template <class T>
std::vector<T> copy_of(const Vector<T>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

/// Moves a vector into a NumPy array that owns it.
template <class T, class Allocator>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T, Allocator> values,
                                   std::initializer_list<std::size_t> shape) {
  using Values = std::vector<T, Allocator>;
  auto owned = std::make_unique<Values>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Values*>(p); });
  return nb::ndarray<nb::numpy, T>(data, shape, owner);
}

template <class T, class Allocator>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T, Allocator> values) {
  const std::size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

}  // namespace abcgbm
