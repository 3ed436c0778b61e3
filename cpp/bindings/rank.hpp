// A rank whose exchanges are made in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/reducer.hpp"

namespace abcgbm {

/// Calls the methods of a Python object: sum and maximum with arrays that are changed in place,
/// gather with a number. What they raise ends the native call.
class PythonRank final : public Reducer {
 public:
  explicit PythonRank(nanobind::object reducer);

  bool is_alone() const override { return false; }
  void sum(std::span<std::int64_t> values) const override { reduce("sum", values); }
  void sum(std::span<std::int32_t> values) const override { reduce("sum", values); }
  void maximum(std::span<double> values) const override { reduce("maximum", values); }
  std::vector<double> gather(double value) const override;

 private:
  template <class T>
  void reduce(const char* method, std::span<T> values) const;

  nanobind::object reducer_;
};

}  // namespace abcgbm
