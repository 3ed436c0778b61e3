#include "tree/split.hpp"

#include <algorithm>
#include <bit>

namespace abcgbm {
namespace {

template <int W>
bool is_enough(const Sums<W>& side, const SplitRules& rules) {
  if (side[kWeight] < rules.min_weight) return false;
  if constexpr (kHasHessian<W>) return side[kHessian] >= rules.min_hessian;
  return true;
}

/// The number of leading elements with a property that no later element has; without branches.
template <int W, class Has>
std::size_t count_first(std::span<const Sums<W>> left, const Has& has) {
  std::size_t n = 0;
  for (std::size_t step = std::bit_floor(left.size()); step > 0; step /= 2) {
    const std::size_t next = std::min(n + step, left.size());
    n = has(left[next - 1]) ? next : n;
  }
  return n;
}

std::size_t max_bins(const Layout& layout) {
  std::size_t largest = 0;
  for (const Feature& feature : layout.features) {
    largest = std::max<std::size_t>(largest, feature.n_bins);
  }
  return largest;
}

}  // namespace

void sort_by_mean(std::vector<Category>& categories) {
  const auto first =
      std::ranges::find_if(categories, [](const Category& c) { return c.mean != 0.0; });
  const double sign = first != categories.end() && first->mean > 0.0 ? -1.0 : 1.0;
  for (Category& category : categories) category.mean *= sign;
  std::ranges::sort(categories, [](const Category& a, const Category& b) {
    return a.mean != b.mean ? a.mean < b.mean : a.code < b.code;
  });
}

CodeSet codes_of(std::span<const Category> categories, std::span<const std::uint32_t> rare,
                 std::size_t n_codes) {
  CodeSet set = empty_set(n_codes);
  for (const Category& category : categories) {
    const auto codes = category.is_rare ? rare : std::span(&category.code, 1);
    for (const std::uint32_t code : codes) insert(set, code);
  }
  return set;
}

template <int W>
SplitSearch<W>::SplitSearch(const Layout& layout)
    : layout_(&layout),
      empty_(max_bins(layout)),
      left_(empty_.size()),
      score_(empty_.size()),
      penalties_(layout) {}

/// Sums up the bins in(0) .. in(n - 1), on top of `start`, and finds the allowed splits. Weights
/// are not negative, so these are the splits from the first with enough on its left to the last
/// with enough on its right. The split after an empty bin repeats the one before: it has the same
/// score and is never the first with it.
template <int W>
template <class Bins>
void SplitSearch<W>::find_splits(const Bins& in, std::size_t n, const Sums<W>& start,
                                 const NodeToSplit<W>& node) {
  Sums<W>* out = left_.data();
  Sums<W> left = start;
  for (std::size_t t = 0; t < n; ++t) {
    add(left, in(t));
    out[t] = left;
  }
  const auto all = std::span<const Sums<W>>(left_).first(n);
  first_ = count_first<W>(all, [&](const Sums<W>& sums) {
    return !is_enough<W>(sums, node.rules) || sums[kWeight] == start[kWeight];
  });
  const std::size_t last = count_first<W>(all, [&](const Sums<W>& sums) {
    return is_enough<W>(difference(node.sums, sums), node.rules);
  });
  n_ = last > first_ ? last - first_ : 0;
}

template <int W>
void SplitSearch<W>::score_found(const NodeToSplit<W>& node) {
  score_splits<W>({.n = n_, .left = left_.data() + first_, .node = node.sums, .l2 = node.rules.l2},
                  score_);
}

/// Takes the first split with the largest score if it is better than the best so far.
template <int W>
bool SplitSearch<W>::take_best(std::uint32_t feature, bool missing_left, Split<W>& best) const {
  const auto scores = std::span(score_).first(n_);
  const auto largest = std::ranges::max_element(scores);
  const auto f = static_cast<int>(feature);
  if (largest == scores.end() || !best.is_beaten_by(*largest, f, missing_left)) return false;
  best.score = *largest;
  best.feature = f;
  best.bin =
      static_cast<std::uint32_t>(first_) + static_cast<std::uint32_t>(largest - scores.begin());
  best.missing_left = missing_left;
  return true;
}

/// Queues a scan until there are enough to run side by side.
template <int W>
void SplitSearch<W>::add_scan(const Scan<W>& scan, const NodeToSplit<W>& node, Split<W>& best) {
  scans_[n_scans_++] = scan;
  if (n_scans_ == kScans) try_scans(node, best);
}

/// Computes exact scores only along scans whose best may be the best of all, most promising first.
/// So most features need no division.
template <int W>
void SplitSearch<W>::try_scans(const NodeToSplit<W>& node, Split<W>& best) {
  for (std::size_t i = n_scans_; i < kScans; ++i) scans_[i] = {};
  std::array<double, kScans> promised = best_scores<W>(scans_, empty_, node.sums, node.rules);
  for (std::size_t n = 0; n < n_scans_; ++n) {
    const auto promising = std::ranges::max_element(std::span(promised).first(n_scans_));
    if (*promising == 0.0 || *promising * (1.0 + kBestMayFallShort) < best.score) break;
    *promising = 0.0;
    try_scan(scans_[static_cast<std::size_t>(&*promising - promised.data())], node, best);
  }
  n_scans_ = 0;
}

template <int W>
void SplitSearch<W>::try_scan(const Scan<W>& scan, const NodeToSplit<W>& node, Split<W>& best) {
  find_splits([&](std::size_t t) -> const Sums<W>& { return scan.bins[t]; }, scan.n, scan.start,
              node);
  score_found(node);
  take_best(scan.feature, scan.missing_left, best);
}

/// Finds the categories of a node. Rare ones are merged into one, at the place of the first.
template <int W>
void SplitSearch<W>::find_categories(std::span<const Sums<W>> bins, const SplitRules& rules) {
  categories_.clear();
  rare_codes_.clear();
  rare_ = {};
  for (std::uint32_t code = 0; code < bins.size(); ++code) {
    if (bins[code][kWeight] == 0) continue;
    const bool is_rare = rules.is_rare(bins[code][kWeight]);
    if (!is_rare || rare_codes_.empty()) {
      categories_.push_back({.code = code, .is_rare = is_rare});
    }
    if (!is_rare) continue;
    rare_codes_.push_back(code);
    add(rare_, bins[code]);
  }
}

/// Sorts the categories by their mean residuals, each shrunk towards the node's mean.
template <int W>
void SplitSearch<W>::sort_categories(std::span<const Sums<W>> bins, const NodeToSplit<W>& node) {
  const auto number = [](const Sums<W>& sums, std::size_t which) {
    return static_cast<double>(sums[which]);
  };
  const double node_weight = number(node.sums, kWeight);
  const double smoothing = node.rules.smoothing;
  const double more_residual = smoothing * (number(node.sums, kResidual) / node_weight);
  const double more_weight = smoothing * (number(node.sums, kSplitWeight<W>) / node_weight);
  for (Category& category : categories_) {
    const Sums<W>& sums = category.is_rare ? rare_ : bins[category.code];
    const double weight = number(sums, kSplitWeight<W>) + more_weight;
    category.mean = weight > 0.0 ? (number(sums, kResidual) + more_residual) / weight : 0.0;
  }
  sort_by_mean(categories_);
}

/// Subtracts the gain expected by chance from the scores of categorical splits.
template <int W>
void SplitSearch<W>::subtract_penalties(const NodeToSplit<W>& node) {
  double unit = node.rules.category_penalty;
  if constexpr (kHasHessian<W>) {
    unit *= static_cast<double>(node.sums[kHessian]) + 2.0 * node.rules.l2;
  } else {
    unit *= static_cast<double>(node.abs_residuals);
  }
  const auto penalties = penalties_.of(categories_.size(), unit).subspan(first_);
  for (std::size_t i = 0; i < n_; ++i) score_[i] = std::max(0.0, score_[i] - penalties[i]);
}

template <int W>
void SplitSearch<W>::try_categorical(std::uint32_t f, std::span<const Sums<W>> bins,
                                     const NodeToSplit<W>& node, Split<W>& best) {
  find_categories(bins, node.rules);
  if (categories_.size() < 2) return;
  sort_categories(bins, node);
  const auto sums_of = [&](std::size_t t) -> const Sums<W>& {
    return categories_[t].is_rare ? rare_ : bins[categories_[t].code];
  };
  find_splits(sums_of, categories_.size() - 1, Sums<W>{}, node);
  score_found(node);
  subtract_penalties(node);
  if (!take_best(f, false, best)) return;
  best.left_set = codes_of(std::span(categories_).first(best.bin + 1), rare_codes_, bins.size());
}

/// Whether no split on the feature is possible. One side of any split on a sparse feature is
/// without the common bin, so the other bins together need the minimum weight.
template <int W>
bool SplitSearch<W>::cannot_split(std::uint32_t f, const NodeToSplit<W>& node) const {
  if (!node.may_split.empty() && node.may_split[f] == 0) return true;
  const Feature& feature = layout_->features[f];
  if (!feature.is_sparse) return false;
  const Sums<W>& common = node.histogram[feature.offset + feature.common];
  return node.sums[kWeight] - common[kWeight] < node.rules.min_weight;
}

template <int W>
void SplitSearch<W>::try_features(std::span<const std::uint32_t> features,
                                  const NodeToSplit<W>& node, Split<W>& best) {
  n_scans_ = 0;
  for (const std::uint32_t f : features) {
    if (cannot_split(f, node)) continue;
    const Feature& feature = layout_->features[f];
    const auto bins = node.histogram.subspan(feature.offset, feature.n_bins);
    if (feature.is_categorical) {
      try_categorical(f, bins, node, best);
      continue;
    }
    Scan<W> scan{.bins = bins.data(), .n = bins.size() - 1, .feature = f};
    add_scan(scan, node, best);
    const bool has_missing = bins.back()[kWeight] != 0;
    if (!has_missing || scan.n == 1) continue;
    scan.n -= 1;
    scan.start = bins.back();
    scan.missing_left = true;
    add_scan(scan, node, best);
  }
  try_scans(node, best);
}

template <int W>
void SplitSearch<W>::finish(const NodeToSplit<W>& node, Split<W>& split) const {
  if (split.feature < 0) return;
  const Feature& feature = layout_->features[static_cast<std::size_t>(split.feature)];
  const auto bins = node.histogram.subspan(feature.offset, feature.n_bins);
  complete(
      feature, node.sums[kWeight], [&](std::uint32_t code) { return bins[code][kWeight]; },
      [&](std::uint32_t code) { add(split.left, bins[code]); }, split);
}

template class SplitSearch<2>;
template class SplitSearch<3>;

}  // namespace abcgbm
