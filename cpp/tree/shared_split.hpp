// The histogram of a node of a shared tree to its best cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/layout.hpp"
#include "loss/shared_sums.hpp"
#include "tree/scan.hpp"
#include "tree/shared_scan.hpp"
#include "tree/split.hpp"

namespace abcgbm {

using SharedCut = CutOf<SharedSums>;

/// The node whose cuts are looked for.
struct SharedNode {
  std::span<const std::int32_t> sums;
  std::span<const std::int32_t> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_cut{};        // by feature; none: all
  std::span<const std::int64_t> residual_size{};  // by direction, only without hessian sums
};

/// Categories are sorted in so many directions at most.
inline constexpr std::size_t kMostOrders = 8;

/// Looks for the cut with the largest score; among equals as CutSearch does. Categories are sorted
/// by the mean of their residuals in one direction after the other. Holds buffers to use again.
class SharedCutSearch {
 public:
  SharedCutSearch(const Layout& layout, const SharedForm& form);

  /// Takes the best cut of some features if it is better than the best of those before.
  void try_features(std::span<const std::uint32_t> features, const SharedNode& node,
                    SharedCut& best);

  /// Completes the best cut, if there is one: what lies left of it.
  void finish(const SharedNode& node, SharedCut& best) const;

 private:
  const std::int32_t* bins_of(std::uint32_t f, const SharedNode& node) const;
  bool is_hopeless(std::uint32_t f, const SharedNode& node) const;
  bool try_scan(const SharedScan& scan, std::uint32_t f, bool missing_left, SharedCut& best);
  void try_numeric(std::uint32_t f, const SharedNode& node, SharedCut& best);
  void try_categorical(std::uint32_t f, const SharedNode& node, SharedCut& best);
  void find_categories(std::uint32_t f, const SharedNode& node);
  const std::int32_t* sums_of(const Category& category, const std::int32_t* bins) const;
  void sort_categories(std::size_t direction, const std::int32_t* bins, const SharedNode& node);
  std::vector<std::size_t> orders(const std::int32_t* bins, const SharedNode& node) const;
  std::span<const double> prices_of(std::size_t direction, const SharedNode& node);
  double split_weight(const std::int32_t* sums, std::size_t direction) const;

  const Layout* layout_;
  SharedForm form_;
  SharedScanner scanner_;
  std::vector<Category> found_;  // the categories that the node has
  std::vector<std::uint32_t> light_codes_;
  SharedSums light_;                         // of these
  std::vector<Category> categories_;         // sorted
  std::vector<const std::int32_t*> sorted_;  // their sums
  LevelPrices prices_;
};

/// The gain of a cut, in units of the integer sums.
double shared_gain(const SharedForm& form, const SharedCut& cut, const SharedSums& node,
                   const SplitRules& rules);

}  // namespace abcgbm
