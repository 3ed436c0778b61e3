// What is summed over rows, summed over all who hold some: one process, or several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// One of the ranks that hold the rows of a training between them. All of them call the same
/// methods in the same order, with as many values; each from the thread that called into the core,
/// while no other works for it. A rank that stands alone has all sums already.
class Reducer {
 public:
  Reducer() = default;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  virtual ~Reducer() = default;

  virtual bool is_alone() const { return true; }
  virtual std::size_t rank() const { return 0; }
  virtual std::size_t n_ranks() const { return 1; }

  /// From how many bytes on a sum that can be scattered should be.
  virtual std::size_t scatters_from() const { return 0; }

  /// Replaces values by their sums over all ranks.
  virtual void sum(std::span<std::int64_t>) const {}
  virtual void sum(std::span<std::int32_t>) const {}

  /// Replaces values by the largest of any rank.
  virtual void maximum(std::span<double>) const {}

  /// Sums up the stretch of each rank, for that rank alone; rank r's ends at ends[r].
  using Ends = std::span<const std::size_t>;
  virtual void scatter(std::span<std::int64_t>, Ends) const {}
  virtual void scatter(std::span<std::int32_t>, Ends) const {}

  /// The values of all ranks, by rank, which may have as many as they like.
  using Values = std::vector<std::int64_t>;
  virtual std::vector<Values> gather(const Values& values) const { return {values}; }

  void sum(std::int64_t& value) const { sum(std::span(&value, 1)); }
};

}  // namespace abcgbm
