// What is summed over rows, summed over all who hold some: one process, or several.
#pragma once

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

  /// Replaces values by their sums over all ranks.
  virtual void sum(std::span<std::int64_t>) const {}
  virtual void sum(std::span<std::int32_t>) const {}

  /// Replaces values by the largest of any rank.
  virtual void maximum(std::span<double>) const {}

  /// The values of all ranks, by rank.
  virtual std::vector<double> gather(double value) const { return {value}; }

  void sum(std::int64_t& value) const { sum(std::span(&value, 1)); }
};

}  // namespace abcgbm
