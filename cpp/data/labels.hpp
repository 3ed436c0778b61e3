// The labels and weights of the rows of a table, and what trees are grown for: classes.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// The class that the others are compared with, if there is one.
class BaseClass {
 public:
  BaseClass() = default;  // none
  explicit BaseClass(int k) : number_(k) {}

  bool exists() const { return number_ >= 0; }
  bool is(int k) const { return number_ == k; }
  int number() const {
    assert(exists());
    return number_;
  }
  int number_or(int other) const { return exists() ? number_ : other; }
  bool operator==(const BaseClass&) const = default;

 private:
  int number_ = -1;
};

/// What a tree is grown for: a class against its base class or, without one, against all others.
struct ClassPair {
  int tree_class = 0;
  BaseClass base;
};

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

/// The labelled rows of a training table. Weights are integers in multiples of `unit`.
struct Labels {
  std::vector<std::int32_t> y;
  std::vector<std::int64_t> weight;  // none: each is 1
  double unit = 1.0;
  int n_classes = 0;
  int total_bits = 0;  // bit length of the sum of weights

  std::size_t n_rows() const { return y.size(); }
  RowWeights weights() const { return RowWeights(weight); }
};

}  // namespace abcgbm
