// The labels and weights of the rows of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/communicator.hpp"
#include "base/storage.hpp"

namespace abcgbm {

/// The weights of rows. Without an array each is 1.
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

/// Which of all rows some are, and who has the others.
struct Shard {
  std::shared_ptr<const Communicator> communicator = std::make_shared<Communicator>();
  LargeVector<std::uint64_t> row_id;  // of each row among all; none: as they come
  std::size_t max_rows = 0;           // that any rank has
  std::size_t total_rows = 0;         // of all ranks
};

/// The labelled rows of a training table, or a rank's share of them. Weights are integers in
/// multiples of `unit`.
struct Labels {
  LargeVector<std::int32_t> y;
  LargeVector<std::int64_t> weight;  // none: each is 1
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
