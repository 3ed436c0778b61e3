// A node's histogram to its best cut.
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

/// Left are codes 0..bin of the feature or, if it is categorical, a set, and missing values if
/// `missing_left`.
template <class SumsOfSide>
struct SplitOf {
  double score = 0.0;  // grows with the gain within a node; 0: no cut
  int feature = -1;
  std::uint32_t bin = 0;
  CodeSet left_set;
  bool missing_left = false;
  SumsOfSide left{};

  /// Whether another cut is taken instead: among equals the lower feature, then missing right.
  bool is_beaten_by(double other_score, int other_feature, bool other_missing_left) const {
    if (other_score != score) return other_score > score;
    return std::pair(other_feature, other_missing_left) < std::pair(feature, missing_left);
  }
};
template <int W>
using Split = SplitOf<Sums<W>>;

/// Settles where the codes go that the node has none of, missing values among them: to the heavier
/// side. `weight_of(code)` is what the node's rows of a code weigh; add_left(code) is called for
/// each of those that go left.
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

/// A category of a node, or its light ones together, to be sorted.
struct Category {
  double mean = 0.0;       // of its residuals, smoothed
  std::uint32_t code = 0;  // the first of the light ones
  bool is_light = false;
};

/// In order of their means, from that side on which residuals of opposite sign have the same order.
void sort_by_mean(std::vector<Category>& categories);

/// The codes of some categories, given those of the light ones.
CodeSet codes_of(std::span<const Category> categories, std::span<const std::uint32_t> light,
                 std::size_t n_codes);

/// The node whose cuts are looked for.
template <int W>
struct NodeToSplit {
  Sums<W> sums;
  std::span<const Sums<W>> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_split{};  // by feature; none: all
  std::int64_t residual_size = 0;             // sum over rows, only without hessian sums
};

/// Looks for the cut with the largest score; among equals for that of the lowest feature, then with
/// missing values right, then of the lowest bin. Categories, missing values among them, are sorted
/// by the mean of their residuals, and cut like bins; of a cut's score is then taken what chance
/// gains by such sorting. Holds buffers to use again.
template <int W>
class SplitSearch {
 public:
  explicit SplitSearch(const Layout& layout);

  /// Takes the best cut of some features if it is better than the best of those before.
  void try_features(std::span<const std::uint32_t> features, const NodeToSplit<W>& node,
                    Split<W>& best);

  /// Completes the best cut, if there is one: what lies left of it.
  void finish(const NodeToSplit<W>& node, Split<W>& best) const;

 private:
  bool is_hopeless(std::uint32_t f, const NodeToSplit<W>& node) const;
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
  std::vector<Sums<W>> empty_;  // bins, as many as a feature has at most
  Scans<W> scans_;              // to be made
  std::size_t n_scans_ = 0;
  std::vector<Sums<W>> left_;  // of all cuts of a feature
  std::size_t first_ = 0;      // of the allowed cuts, which follow each other
  std::size_t n_ = 0;          // of the allowed cuts
  std::vector<double> score_;  // of the allowed cuts
  std::vector<Category> categories_;
  std::vector<std::uint32_t> light_codes_;
  Sums<W> light_{};  // of these
  CategoryPenalties penalties_;
};

/// Gain of a cut in a node, `G_L^2/W_L + G_R^2/W_R - G^2/W`, in units of the integer sums.
template <int W>
double gain_of(const Split<W>& split, const Sums<W>& node, const SplitRules& rules) {
  // With hessian sums each child is shrunk by l2, and so the parent by twice that.
  const double shrink = kHasHessian<W> ? 2.0 * rules.l2 : 0.0;
  return split.score / (static_cast<double>(node[kSplitWeight<W>]) + shrink);
}

}  // namespace abcgbm
