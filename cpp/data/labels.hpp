// Labels and weights of the rows, and the shard that they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/communicator.hpp"
#include "base/storage.hpp"

namespace abcgbm {

/// The weights of rows. Without an array, which saves its memory, each is 1.
class RowWeights {
 public:
  RowWeights() = default;
  explicit RowWeights(std::span<const std::int64_t> weight)
      : of_row_(weight.empty() ? nullptr : weight.data()) {}

  std::int64_t operator[](std::size_t row) const { return of_row_ == nullptr ? 1 : of_row_[row]; }
  void prefetch(std::size_t row) const {
    if (of_row_ != nullptr) __builtin_prefetch(of_row_ + row);
  }
  bool operator==(const RowWeights&) const = default;

 private:
  const std::int64_t* of_row_ = nullptr;
};

/// The shard of all rows that this rank holds.
struct Shard {
  std::shared_ptr<const Communicator> communicator = std::make_shared<Communicator>();
  LargeVector<std::uint64_t> row_id;  // of each row among all rows; empty: 0, 1, ...
  std::size_t max_rows = 0;           // of the rank with the most rows
  std::size_t total_rows = 0;         // of all ranks
};

/// Class numbers and weights of a rank's rows. Weights are integers in multiples of `unit`, so that
/// sums over rows are exact.
struct Labels {
  LargeVector<std::int32_t> y;
  LargeVector<std::int64_t> weight;  // empty: each is 1
  double unit = 1.0;
  int n_classes = 0;
  int total_bits = 0;  // bit length of the sum of all weights
  Shard shard;

  std::size_t n_rows() const { return y.size(); }
  RowWeights weights() const { return RowWeights(weight); }
  const Communicator& communicator() const { return *shard.communicator; }
  std::uint64_t row_id(std::size_t row) const {
    return shard.row_id.empty() ? row : shard.row_id[row];
  }
};

}  // namespace abcgbm
