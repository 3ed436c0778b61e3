// A node's histogram to its best cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/layout.hpp"
#include "loss/sums.hpp"
#include "tree/level_price.hpp"
#include "tree/scan.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// Left are codes 0..bin of the feature or, if it is categorical, a set, and missing values if
/// `missing_left`.
template <class SumsOfSide>
struct CutOf {
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
using Cut = CutOf<Sums<W>>;

/// Settles where the codes go that the node has none of, missing values among them: to the heavier
/// side. `weight_of(code)` is what the node's rows of a code weigh; add_left(code) is called for
/// each of those that go left.
template <class Cut, class WeightOf, class AddLeft>
void complete(const Feature& feature, std::int64_t node_weight, const WeightOf& weight_of,
              const AddLeft& add_left, Cut& cut) {
  const std::uint32_t missing = feature.missing_code();
  if (feature.is_categorical) {
    cut.bin = 0;
    cut.missing_left = contains(cut.left_set, missing);
  }
  const auto is_left = [&](std::uint32_t code) {
    if (feature.is_categorical) return contains(cut.left_set, code);
    return code == missing ? cut.missing_left : code <= cut.bin;
  };
  std::int64_t left_weight = 0;
  for (std::uint32_t code = 0; code < feature.n_bins; ++code) {
    if (!is_left(code)) continue;
    add_left(code);
    left_weight += weight_of(code);
  }
  const bool left_is_heavier = left_weight >= node_weight - left_weight;
  if (weight_of(missing) == 0) cut.missing_left = left_is_heavier;
  if (!feature.is_categorical) {
    cut.left_set.clear();
    return;
  }
  CodeSet left_set = empty_set(missing);
  for (std::uint32_t code = 0; code < missing; ++code) {
    if (weight_of(code) == 0 ? left_is_heavier : is_left(code)) insert(left_set, code);
  }
  cut.left_set = std::move(left_set);
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
struct NodeToCut {
  Sums<W> sums;
  std::span<const Sums<W>> histogram;
  const SplitRules& rules;
  std::span<const std::uint8_t> may_cut{};  // by feature; none: all
  std::int64_t residual_size = 0;           // sum over rows, only without hessian sums
};

/// Looks for the cut with the largest score; among equals for that of the lowest feature, then with
/// missing values right, then of the lowest bin. Categories, missing values among them, are sorted
/// by the mean of their residuals, and cut like bins; of a cut's score is then taken what chance
/// gains by such sorting. Holds buffers to use again.
template <int W>
class CutSearch {
 public:
  explicit CutSearch(const Layout& layout);

  /// Takes the best cut of some features if it is better than the best of those before.
  void try_features(std::span<const std::uint32_t> features, const NodeToCut<W>& node,
                    Cut<W>& best);

  /// Completes the best cut, if there is one: what lies left of it.
  void finish(const NodeToCut<W>& node, Cut<W>& best) const;

 private:
  bool is_hopeless(std::uint32_t f, const NodeToCut<W>& node) const;
  void add_scan(const Scan<W>& scan, const NodeToCut<W>& node, Cut<W>& best);
  void try_scans(const NodeToCut<W>& node, Cut<W>& best);
  void try_scan(const Scan<W>& scan, const NodeToCut<W>& node, Cut<W>& best);
  void try_categorical(std::uint32_t f, std::span<const Sums<W>> bins, const NodeToCut<W>& node,
                       Cut<W>& best);
  template <class Bins>
  void find_cuts(const Bins& in, std::size_t n, const Sums<W>& start, const NodeToCut<W>& node);
  void score_found(const NodeToCut<W>& node);
  bool take_best(std::uint32_t feature, bool missing_left, Cut<W>& best) const;
  void find_categories(std::span<const Sums<W>> bins, const SplitRules& rules);
  void sort_categories(std::span<const Sums<W>> bins, const NodeToCut<W>& node);
  void charge(const NodeToCut<W>& node);

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
  LevelPrices prices_;
};

/// Gain of a cut in a node, `G_L^2/W_L + G_R^2/W_R - G^2/W`, in units of the integer sums.
template <int W>
double gain_of(const Cut<W>& cut, const Sums<W>& node, const SplitRules& rules) {
  // With hessian sums each child is shrunk by l2, and so the parent by twice that.
  const double shrink = kHasHessian<W> ? 2.0 * rules.l2 : 0.0;
  return cut.score / (static_cast<double>(node[kSplitWeight<W>]) + shrink);
}

}  // namespace abcgbm
