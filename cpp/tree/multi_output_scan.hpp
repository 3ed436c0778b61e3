// Split search of multi-output trees along the bins of one feature, four projections to a register.
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

/// Bins to sum up, on top of `start`; each of the first n ends a possible split.
struct MultiOutputScan {
  const std::int32_t* bins = nullptr;
  std::size_t n = 0;
  const std::int32_t* start = nullptr;            // a bin; nullptr: zeros
  std::span<const std::int32_t* const> sorted{};  // the bins, if not contiguous
  std::span<const double> penalties{};            // of the splits; empty: 0
};

struct BestOfScan {
  double score = 0.0;  // 0: no split
  std::size_t after = 0;
};

/// Scores the splits of one node at a time. Holds buffers for reuse.
class MultiOutputScanner {
 public:
  explicit MultiOutputScanner(const SumLayout& sum_layout) : sum_layout_(sum_layout) {}

  void use_node(std::span<const std::int32_t> sums, const SplitRules& rules);

  /// The first split with the largest score.
  BestOfScan best_split(const MultiOutputScan& scan);

  /// A non-empty bin, and the split after it.
  struct Position {
    const std::int32_t* bin = nullptr;
    double left_weight = 0.0;
    std::uint32_t after = 0;
    bool is_allowed = false;  // satisfies the split rules
  };

  /// A node in the form that the kernels need; arrays over projections are padded to a multiple of
  /// four.
  struct Node {
    double weight = 0.0;
    double l2 = 0.0;
    std::vector<double> residuals;
    std::vector<double> hessians;
    /// 1 / (hessian + both L2 terms), 1 without hessians; 0 if there is no hessian, and in the
    /// padding.
    std::vector<double> inverse;
  };

  using FourTerms = std::array<double, 4>;  // sums of terms, by projection modulo four

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
  std::int64_t hessian_ = 0;  // over all projections
  Node node_;
  std::vector<Position> positions_;
  AlignedVector<FourTerms> terms_;  // by position
};

}  // namespace abcgbm
