// Split search of multi-output trees: from the histogram of a node to its best split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/layout.hpp"
#include "loss/multi_output_sums.hpp"
#include "tree/multi_output_scan.hpp"
#include "tree/scan.hpp"
#include "tree/split.hpp"

namespace abcgbm {

using MultiOutputSplit = SplitOf<MultiOutputSums>;

/// The node to split.
struct MultiOutputNode {
  std::span<const std::int32_t> sums;
  std::span<const std::int32_t> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_split{};      // by feature; empty: all
  std::span<const std::int64_t> abs_residuals{};  // by projection, without hessian sums only
};

/// Maximum number of projections in which categories are sorted.
inline constexpr std::size_t kMaxSortProjections = 8;

/// Finds the split with the largest score; ties as in SplitSearch. Categories are sorted by the
/// mean of their residuals in one projection after the other. Holds buffers for reuse.
class MultiOutputSplitSearch {
 public:
  MultiOutputSplitSearch(const Layout& layout, const SumLayout& sum_layout);

  /// Replaces the best split so far by that of the given features if theirs is better.
  void try_features(std::span<const std::uint32_t> features, const MultiOutputNode& node,
                    MultiOutputSplit& best);

  /// Completes the best split, if there is one, with its sums on the left.
  void finish(const MultiOutputNode& node, MultiOutputSplit& best) const;

 private:
  const std::int32_t* bins_of(std::uint32_t f, const MultiOutputNode& node) const;
  bool cannot_split(std::uint32_t f, const MultiOutputNode& node) const;
  bool try_scan(const MultiOutputScan& scan, std::uint32_t f, bool missing_left,
                MultiOutputSplit& best);
  void try_numeric(std::uint32_t f, const MultiOutputNode& node, MultiOutputSplit& best);
  void try_categorical(std::uint32_t f, const MultiOutputNode& node, MultiOutputSplit& best);
  void find_categories(std::uint32_t f, const MultiOutputNode& node);
  const std::int32_t* sums_of(const Category& category, const std::int32_t* bins) const;
  void sort_categories(std::size_t projection, const std::int32_t* bins,
                       const MultiOutputNode& node);
  std::vector<std::size_t> sort_projections(const std::int32_t* bins,
                                            const MultiOutputNode& node) const;
  std::span<const double> penalties_of(std::size_t projection, const MultiOutputNode& node);
  double split_weight(const std::int32_t* sums, std::size_t projection) const;

  const Layout* layout_;
  SumLayout sum_layout_;
  MultiOutputScanner scanner_;
  std::vector<Category> found_;  // categories that occur in the node
  std::vector<std::uint32_t> rare_codes_;
  MultiOutputSums rare_;                     // sums of the rare ones
  std::vector<Category> categories_;         // sorted
  std::vector<const std::int32_t*> sorted_;  // their sums
  CategoryPenalties penalties_;
};

/// The gain of a split, in units of the integer sums.
double multi_output_gain(const SumLayout& sum_layout, const MultiOutputSplit& split,
                         const MultiOutputSums& node, const SplitRules& rules);

}  // namespace abcgbm
