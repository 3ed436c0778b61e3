// Collective operations of the processes that train together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// One of the processes ("ranks") that each hold a shard of the training rows. All ranks call the
/// same methods in the same order with the same number of values, from the thread that called into
/// the core and while none of its other threads is working. This class is the single process:
/// every operation leaves its values as they are.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual bool is_single() const { return true; }
  virtual std::size_t rank() const { return 0; }
  virtual std::size_t n_ranks() const { return 1; }

  /// Size in bytes from which a reduce-scatter is preferred to an allreduce.
  virtual std::size_t min_scatter_bytes() const { return 0; }

  /// Replaces the values by their sums over all ranks.
  virtual void allreduce_sum(std::span<std::int64_t>) const {}
  virtual void allreduce_sum(std::span<std::int32_t>) const {}

  /// Replaces the values by their maxima over all ranks.
  virtual void allreduce_max(std::span<double>) const {}

  /// Sums each rank's segment over all ranks, on that rank only; the segment of rank r ends at
  /// ends[r].
  using Ends = std::span<const std::size_t>;
  virtual void reduce_scatter_sum(std::span<std::int64_t>, Ends) const {}
  virtual void reduce_scatter_sum(std::span<std::int32_t>, Ends) const {}

  /// Returns the values of every rank, by rank; their number may differ between ranks.
  using Values = std::vector<std::int64_t>;
  virtual std::vector<Values> allgather(const Values& values) const { return {values}; }

  void allreduce_sum(std::int64_t& value) const { allreduce_sum(std::span(&value, 1)); }
};

}  // namespace abcgbm
