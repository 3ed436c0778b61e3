// A rank whose exchanges are made in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/reducer.hpp"

namespace abcgbm {

/// Calls the methods of a Python object: sum, maximum and reduce_scatter with arrays that are
/// changed in place, gather with bytes. What they raise ends the native call.
class PythonRank final : public Reducer {
 public:
  explicit PythonRank(nanobind::object reducer);

  bool is_alone() const override { return false; }
  std::size_t rank() const override { return rank_; }
  std::size_t n_ranks() const override { return n_ranks_; }
  std::size_t scatters_from() const override { return scatters_from_; }
  void sum(std::span<std::int64_t> values) const override { reduce("sum", values); }
  void sum(std::span<std::int32_t> values) const override { reduce("sum", values); }
  void maximum(std::span<double> values) const override { reduce("maximum", values); }
  void scatter(std::span<std::int64_t> values, Ends ends) const override;
  void scatter(std::span<std::int32_t> values, Ends ends) const override;
  std::vector<Values> gather(const Values& values) const override;

 private:
  template <class T>
  void reduce(const char* method, std::span<T> values) const;
  template <class T>
  void scatter_to(std::span<T> values, Ends ends) const;

  nanobind::object reducer_;
  std::size_t rank_;
  std::size_t n_ranks_;
  std::size_t scatters_from_;
};

}  // namespace abcgbm
