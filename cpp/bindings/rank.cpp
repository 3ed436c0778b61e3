#include "bindings/rank.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings/unlocked.hpp"

namespace abcgbm {

namespace nb = nanobind;

PythonRank::PythonRank(nb::object reducer) : reducer_(std::move(reducer)) {}

template <class T>
void PythonRank::reduce(const char* method, std::span<T> values) const {
  Unlocked::call_python([&] {
    const nb::ndarray<nb::numpy, T, nb::ndim<1>> view(values.data(), {values.size()}, nb::none());
    reducer_.attr(method)(nb::cast(view, nb::rv_policy::reference));
  });
}

std::vector<double> PythonRank::gather(double value) const {
  std::vector<double> values;
  Unlocked::call_python(
      [&] { values = nb::cast<std::vector<double>>(reducer_.attr("gather")(value)); });
  return values;
}

}  // namespace abcgbm
