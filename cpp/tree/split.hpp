// Split search of single-output trees: from the histogram of a node to its best split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/layout.hpp"
#include "loss/sums.hpp"
#include "tree/category_penalty.hpp"
#include "tree/scan.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// A split of a node. Codes 0..bin of the feature go left or, if it is categorical, those of a set;
/// and missing values if `missing_left`.
template <class SumsOfSide>
struct SplitOf {
  double score = 0.0;  // increases with the gain within a node; 0: no split
  int feature = -1;
  std::uint32_t bin = 0;
  CodeSet left_set;
  bool missing_left = false;
  SumsOfSide left{};

  /// Whether another split is better; among equals the one of the lower feature, then with missing
  /// values on the right.
  bool is_beaten_by(double other_score, int other_feature, bool other_missing_left) const {
    if (other_score != score) return other_score > score;
    return std::pair(other_feature, other_missing_left) < std::pair(feature, missing_left);
  }
};
template <int W>
using Split = SplitOf<Sums<W>>;

/// Sends the codes that do not occur in the node, missing values among them, to the heavier side.
/// `weight_of(code)` is the weight of a code in the node; add_left(code) is called for each code
/// that goes left.
template <class Split, class WeightOf, class AddLeft>
void complete(const Feature& feature, std::int64_t node_weight, const WeightOf& weight_of,
              const AddLeft& add_left, Split& split) {
  const std::uint32_t missing = feature.missing_code();
  if (feature.is_categorical) {
    split.bin = 0;
    split.missing_left = contains(split.left_set, missing);
  }
  const auto is_left = [&](std::uint32_t code) {
    if (feature.is_categorical) return contains(split.left_set, code);
    return code == missing ? split.missing_left : code <= split.bin;
  };
  std::int64_t left_weight = 0;
  for (std::uint32_t code = 0; code < feature.n_bins; ++code) {
    if (!is_left(code)) continue;
    add_left(code);
    left_weight += weight_of(code);
  }
  const bool left_is_heavier = left_weight >= node_weight - left_weight;
  if (weight_of(missing) == 0) split.missing_left = left_is_heavier;
  if (!feature.is_categorical) {
    split.left_set.clear();
    return;
  }
  CodeSet left_set = empty_set(missing);
  for (std::uint32_t code = 0; code < missing; ++code) {
    if (weight_of(code) == 0 ? left_is_heavier : is_left(code)) insert(left_set, code);
  }
  split.left_set = std::move(left_set);
}

/// A category of a node, or all of its rare ones, to be sorted.
struct Category {
  double mean = 0.0;       // of its residuals, shrunk
  std::uint32_t code = 0;  // the first of the rare ones
  bool is_rare = false;
};

/// Sorts by mean, ascending or descending such that negated residuals give the same order: so
/// tree(b, k) is exactly -tree(k, b), and the search for a base class grows only K(K-1)/2 trees.
void sort_by_mean(std::vector<Category>& categories);

/// The codes of some categories, given those of the rare ones.
CodeSet codes_of(std::span<const Category> categories, std::span<const std::uint32_t> rare,
                 std::size_t n_codes);

/// The node to split.
template <int W>
struct NodeToSplit {
  Sums<W> sums;
  std::span<const Sums<W>> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_split{};  // by feature; empty: all
  std::int64_t abs_residuals = 0;  // sum of absolute residuals, without hessian sums only
};

/// Finds the split with the largest score; among equals that of the lowest feature, then with
/// missing values on the right, then of the lowest bin. Categories, with missing values as one of
/// them, are sorted by the mean of their residuals and split like bins; the gain that sorting
/// yields by chance is subtracted. Holds buffers for reuse.
template <int W>
class SplitSearch {
 public:
  explicit SplitSearch(const Layout& layout);

  /// Replaces the best split so far by that of the given features if theirs is better.
  void try_features(std::span<const std::uint32_t> features, const NodeToSplit<W>& node,
                    Split<W>& best);

  /// Completes the best split, if there is one, with its sums on the left.
  void finish(const NodeToSplit<W>& node, Split<W>& best) const;

 private:
  bool cannot_split(std::uint32_t f, const NodeToSplit<W>& node) const;
  void add_scan(const Scan<W>& scan, const NodeToSplit<W>& node, Split<W>& best);
  void try_scans(const NodeToSplit<W>& node, Split<W>& best);
  void try_scan(const Scan<W>& scan, const NodeToSplit<W>& node, Split<W>& best);
  void try_categorical(std::uint32_t f, std::span<const Sums<W>> bins, const NodeToSplit<W>& node,
                       Split<W>& best);
  template <class Bins>
  void find_splits(const Bins& in, std::size_t n, const Sums<W>& start, const NodeToSplit<W>& node);
  void score_found(const NodeToSplit<W>& node);
  bool take_best(std::uint32_t feature, bool missing_left, Split<W>& best) const;
  void find_categories(std::span<const Sums<W>> bins, const SplitRules& rules);
  void sort_categories(std::span<const Sums<W>> bins, const NodeToSplit<W>& node);
  void subtract_penalties(const NodeToSplit<W>& node);

  const Layout* layout_;
  std::vector<Sums<W>> empty_;  // bins, as many as any feature has
  Scans<W> scans_;              // queued
  std::size_t n_scans_ = 0;
  std::vector<Sums<W>> left_;  // left-hand sums of all splits of a feature
  std::size_t first_ = 0;      // of the allowed splits, which are consecutive
  std::size_t n_ = 0;          // number of allowed splits
  std::vector<double> score_;  // of the allowed splits
  std::vector<Category> categories_;
  std::vector<std::uint32_t> rare_codes_;
  Sums<W> rare_{};  // sums of the rare ones
  CategoryPenalties penalties_;
};

/// The gain of a split, `G_L^2/W_L + G_R^2/W_R - G^2/W`, in units of the integer sums.
template <int W>
double gain_of(const Split<W>& split, const Sums<W>& node, const SplitRules& rules) {
  // With hessian sums each child is shrunk by l2. The parent is shrunk by twice that, as its two
  // children together, so that the gain is never negative and needs no cancellation.
  const double shrink = kHasHessian<W> ? 2.0 * rules.l2 : 0.0;
  return split.score / (static_cast<double>(node[kSplitWeight<W>]) + shrink);
}

}  // namespace abcgbm
