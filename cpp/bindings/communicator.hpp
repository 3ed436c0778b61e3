// A communicator that is implemented in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/communicator.hpp"

namespace abcgbm {

/// Forwards to a Python object: `allreduce(values, op)` and `reduce_scatter(values, ends, op)`
/// change an array in place, `allgather(item)` returns the bytes of every rank. An exception that
/// they raise ends the native call.
class PythonCommunicator final : public Communicator {
 public:
  explicit PythonCommunicator(nanobind::object communicator);

  bool is_single() const override { return false; }
  std::size_t rank() const override { return rank_; }
  std::size_t n_ranks() const override { return n_ranks_; }
  std::size_t min_scatter_bytes() const override { return min_scatter_bytes_; }
  void allreduce_sum(std::span<std::int64_t> values) const override { allreduce(values, "sum"); }
  void allreduce_sum(std::span<std::int32_t> values) const override { allreduce(values, "sum"); }
  void allreduce_max(std::span<double> values) const override { allreduce(values, "maximum"); }
  void reduce_scatter_sum(std::span<std::int64_t> values, Ends ends) const override;
  void reduce_scatter_sum(std::span<std::int32_t> values, Ends ends) const override;
  std::vector<Values> allgather(const Values& values) const override;

 private:
  template <class T>
  void allreduce(std::span<T> values, const char* op) const;
  template <class T>
  void reduce_scatter(std::span<T> values, Ends ends) const;

  nanobind::object communicator_;
  std::size_t rank_;
  std::size_t n_ranks_;
  std::size_t min_scatter_bytes_;
};

}  // namespace abcgbm
