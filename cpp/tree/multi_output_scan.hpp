// The cuts along the bins of a feature in a shared tree, four directions to a register.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned.hpp"
#include "loss/multi_output_sums.hpp"
#include "tree/scan.hpp"

namespace abcgbm {

/// Bins that are added up, on top of `start`: there is a cut after each of the first n.
struct MultiOutputScan {
  const std::int32_t* bins = nullptr;
  std::size_t n = 0;
  const std::int32_t* start = nullptr;            // a bin; nullptr: nothing
  std::span<const std::int32_t* const> sorted{};  // bins, if not as they lie
  std::span<const double> penalties{};            // of the cuts; none: 0
};

struct BestOfScan {
  double score = 0.0;  // 0: no cut
  std::size_t after = 0;
};

/// Looks at the cuts of one node after the other. Holds buffers to use again.
class MultiOutputScanner {
 public:
  explicit MultiOutputScanner(const SumLayout& sum_layout) : sum_layout_(sum_layout) {}

  void use_node(std::span<const std::int32_t> sums, const SplitRules& rules);

  /// The first cut of the largest score.
  BestOfScan best_split(const MultiOutputScan& scan);

  /// A bin with rows, and what is left of the cut after it.
  struct Position {
    const std::int32_t* bin = nullptr;
    double left_weight = 0.0;
    std::uint32_t after = 0;
    bool is_allowed = false;  // one that counts
  };

  /// A node as the kernels need it. Arrays over directions are filled up to a multiple of four.
  struct Node {
    double weight = 0.0;
    double l2 = 0.0;
    std::vector<double> residuals;
    std::vector<double> hessians;
    /// Of the hessian and both ridges, 1 without hessians; 0 where there is none, or no direction.
    std::vector<double> inverse;
  };

  using FourTerms = std::array<double, 4>;  // sums of terms, by direction modulo four

 private:
  void add_position(const std::int32_t* bin, std::uint32_t after, bool may_split);
  void find_positions(const MultiOutputScan& scan);
  void check_hessians();
  void add_terms();
  double score_of(std::size_t position) const;

  SumLayout sum_layout_;
  SplitRules rules_;
  std::int64_t weight_ = 0;
  std::int64_t left_weight_ = 0;
  std::int64_t hessian_ = 0;  // of all directions
  Node node_;
  std::vector<Position> positions_;
  AlignedVector<FourTerms> terms_;  // by step
};

}  // namespace abcgbm
