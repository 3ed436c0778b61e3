// The histogram of a node of a shared tree to its best cut.
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

/// The node whose cuts are looked for.
struct MultiOutputNode {
  std::span<const std::int32_t> sums;
  std::span<const std::int32_t> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_split{};      // by feature; none: all
  std::span<const std::int64_t> residual_size{};  // by direction, only without hessian sums
};

/// Categories are sorted in so many directions at most.
inline constexpr std::size_t kMaxOrders = 8;

/// Looks for the cut with the largest score; among equals as SplitSearch does. Categories are
/// sorted by the mean of their residuals in one direction after the other. Holds buffers to use
/// again.
class MultiOutputSplitSearch {
 public:
  MultiOutputSplitSearch(const Layout& layout, const SumLayout& sum_layout);

  /// Takes the best cut of some features if it is better than the best of those before.
  void try_features(std::span<const std::uint32_t> features, const MultiOutputNode& node,
                    MultiOutputSplit& best);

  /// Completes the best cut, if there is one: what lies left of it.
  void finish(const MultiOutputNode& node, MultiOutputSplit& best) const;

 private:
  const std::int32_t* bins_of(std::uint32_t f, const MultiOutputNode& node) const;
  bool is_hopeless(std::uint32_t f, const MultiOutputNode& node) const;
  bool try_scan(const MultiOutputScan& scan, std::uint32_t f, bool missing_left,
                MultiOutputSplit& best);
  void try_numeric(std::uint32_t f, const MultiOutputNode& node, MultiOutputSplit& best);
  void try_categorical(std::uint32_t f, const MultiOutputNode& node, MultiOutputSplit& best);
  void find_categories(std::uint32_t f, const MultiOutputNode& node);
  const std::int32_t* sums_of(const Category& category, const std::int32_t* bins) const;
  void sort_categories(std::size_t direction, const std::int32_t* bins,
                       const MultiOutputNode& node);
  std::vector<std::size_t> orders(const std::int32_t* bins, const MultiOutputNode& node) const;
  std::span<const double> penalties_of(std::size_t direction, const MultiOutputNode& node);
  double split_weight(const std::int32_t* sums, std::size_t direction) const;

  const Layout* layout_;
  SumLayout sum_layout_;
  MultiOutputScanner scanner_;
  std::vector<Category> found_;  // the categories that the node has
  std::vector<std::uint32_t> light_codes_;
  MultiOutputSums light_;                    // of these
  std::vector<Category> categories_;         // sorted
  std::vector<const std::int32_t*> sorted_;  // their sums
  CategoryPenalties penalties_;
};

/// The gain of a cut, in units of the integer sums.
double multi_output_gain(const SumLayout& sum_layout, const MultiOutputSplit& split,
                         const MultiOutputSums& node, const SplitRules& rules);

}  // namespace abcgbm
