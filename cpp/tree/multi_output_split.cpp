#include "tree/multi_output_split.hpp"

#include <algorithm>
#include <numeric>

namespace abcgbm {
namespace {

/// The score that the second L2 term takes: a node has one, its two children have two.
double cost_of_ridge(const SumLayout& sum_layout, const MultiOutputSums& node, double l2) {
  double cost = 0.0;
  for (std::size_t d = 0; d < sum_layout.n_projections; ++d) {
    const auto residual = static_cast<double>(node[d]);
    const auto hessian = static_cast<double>(node[sum_layout.hessians_at() + d]);
    if (!(hessian + l2 > 0.0)) continue;
    const double inverse = 1.0 / (hessian + 2.0 * l2);
    cost += ((residual * residual) * l2 * inverse) / (hessian + l2);
  }
  return cost;
}

}  // namespace

double multi_output_gain(const SumLayout& sum_layout, const MultiOutputSplit& split,
                         const MultiOutputSums& node, const SplitRules& rules) {
  if (sum_layout.has_hessian) return split.score - cost_of_ridge(sum_layout, node, rules.l2);
  return split.score / static_cast<double>(node[sum_layout.weight_at()]);
}

MultiOutputSplitSearch::MultiOutputSplitSearch(const Layout& layout, const SumLayout& sum_layout)
    : layout_(&layout), sum_layout_(sum_layout), scanner_(sum_layout), penalties_(layout) {}

const std::int32_t* MultiOutputSplitSearch::bins_of(std::uint32_t f,
                                                    const MultiOutputNode& node) const {
  return node.histogram.data() + layout_->features[f].offset * sum_layout_.stride();
}

/// Whether no split on the feature is possible, as in SplitSearch.
bool MultiOutputSplitSearch::cannot_split(std::uint32_t f, const MultiOutputNode& node) const {
  if (!node.may_split.empty() && node.may_split[f] == 0) return true;
  const Feature& feature = layout_->features[f];
  if (!feature.is_sparse) return false;
  const std::int32_t* common = bins_of(f, node) + feature.common * sum_layout_.stride();
  return node.sums[sum_layout_.weight_at()] - common[sum_layout_.weight_at()] <
         node.rules.min_weight;
}

bool MultiOutputSplitSearch::try_scan(const MultiOutputScan& scan, std::uint32_t f,
                                      bool missing_left, MultiOutputSplit& best) {
  const BestOfScan found = scanner_.best_split(scan);
  const auto feature = static_cast<int>(f);
  if (found.score == 0.0 || !best.is_beaten_by(found.score, feature, missing_left)) return false;
  best.score = found.score;
  best.feature = feature;
  best.bin = static_cast<std::uint32_t>(found.after);
  best.missing_left = missing_left;
  return true;
}

void MultiOutputSplitSearch::try_numeric(std::uint32_t f, const MultiOutputNode& node,
                                         MultiOutputSplit& best) {
  const std::uint32_t missing = layout_->features[f].missing_code();
  MultiOutputScan scan{.bins = bins_of(f, node), .n = missing};
  try_scan(scan, f, false, best);
  const std::int32_t* of_missing = scan.bins + missing * sum_layout_.stride();
  if (of_missing[sum_layout_.weight_at()] == 0 || missing == 1) return;
  scan.n = missing - 1;
  scan.start = of_missing;
  try_scan(scan, f, true, best);
}

double MultiOutputSplitSearch::split_weight(const std::int32_t* sums,
                                            std::size_t projection) const {
  return static_cast<double>(sums[sum_layout_.has_hessian ? sum_layout_.hessians_at() + projection
                                                          : sum_layout_.weight_at()]);
}

/// As in SplitSearch.
void MultiOutputSplitSearch::find_categories(std::uint32_t f, const MultiOutputNode& node) {
  const std::int32_t* bins = bins_of(f, node);
  found_.clear();
  rare_codes_.clear();
  rare_.assign(sum_layout_.stride(), 0);
  for (std::uint32_t code = 0; code < layout_->features[f].n_bins; ++code) {
    const std::int32_t* bin = bins + code * sum_layout_.stride();
    const std::int32_t weight = bin[sum_layout_.weight_at()];
    if (weight == 0) continue;
    const bool is_rare = node.rules.is_rare(weight);
    if (!is_rare || rare_codes_.empty()) found_.push_back({.code = code, .is_rare = is_rare});
    if (!is_rare) continue;
    rare_codes_.push_back(code);
    add(rare_, bin);
  }
}

const std::int32_t* MultiOutputSplitSearch::sums_of(const Category& category,
                                                    const std::int32_t* bins) const {
  return category.is_rare ? rare_.data() : bins + category.code * sum_layout_.stride();
}

/// The projections in which the categories are sorted: those in which they differ most.
std::vector<std::size_t> MultiOutputSplitSearch::sort_projections(
    const std::int32_t* bins, const MultiOutputNode& node) const {
  std::vector<std::size_t> projections(sum_layout_.n_projections);
  std::iota(projections.begin(), projections.end(), std::size_t{0});
  if (projections.size() <= kMaxSortProjections) return projections;
  const double l2 = sum_layout_.has_hessian ? node.rules.l2 : 0.0;
  std::vector<double> spread(projections.size(), 0.0);
  for (const Category& category : found_) {
    const std::int32_t* bin = sums_of(category, bins);
    for (const std::size_t d : projections) {
      const auto residual = static_cast<double>(bin[d]);
      const double weight = split_weight(bin, d) + l2;
      if (weight > 0.0) spread[d] += residual * residual / weight;
    }
  }
  std::ranges::sort(projections, [&](std::size_t a, std::size_t b) {
    return spread[a] != spread[b] ? spread[a] > spread[b] : a < b;
  });
  projections.resize(kMaxSortProjections);
  std::ranges::sort(projections);
  return projections;
}

/// Sorts the categories by mean residual, each shrunk towards the node's mean.
void MultiOutputSplitSearch::sort_categories(std::size_t projection, const std::int32_t* bins,
                                             const MultiOutputNode& node) {
  const auto node_weight = static_cast<double>(node.sums[sum_layout_.weight_at()]);
  const double smoothing = node.rules.smoothing;
  const double more_residual =
      smoothing * (static_cast<double>(node.sums[projection]) / node_weight);
  const double more_weight = smoothing * (split_weight(node.sums.data(), projection) / node_weight);
  categories_ = found_;
  for (Category& category : categories_) {
    const std::int32_t* bin = sums_of(category, bins);
    const double weight = split_weight(bin, projection) + more_weight;
    const double residual = static_cast<double>(bin[projection]) + more_residual;
    category.mean = weight > 0.0 ? residual / weight : 0.0;
  }
  sort_by_mean(categories_);
  sorted_.clear();
  for (const Category& category : categories_) sorted_.push_back(sums_of(category, bins));
}

/// The expected gain by chance of categories that are sorted in one projection.
std::span<const double> MultiOutputSplitSearch::penalties_of(std::size_t projection,
                                                             const MultiOutputNode& node) {
  double unit = node.rules.category_penalty;
  if (!sum_layout_.has_hessian && unit > 0.0) {
    unit *= static_cast<double>(node.abs_residuals[projection]);
  }
  return penalties_.of(found_.size(), unit);
}

void MultiOutputSplitSearch::try_categorical(std::uint32_t f, const MultiOutputNode& node,
                                             MultiOutputSplit& best) {
  find_categories(f, node);
  const std::size_t n = found_.size();
  if (n < 2) return;
  const std::int32_t* bins = bins_of(f, node);
  for (const std::size_t projection : sort_projections(bins, node)) {
    sort_categories(projection, bins, node);
    const MultiOutputScan scan{
        .n = n - 1, .sorted = sorted_, .penalties = penalties_of(projection, node)};
    if (!try_scan(scan, f, false, best)) continue;
    best.left_set = codes_of(std::span(categories_).first(best.bin + 1), rare_codes_,
                             layout_->features[f].n_bins);
  }
}

void MultiOutputSplitSearch::try_features(std::span<const std::uint32_t> features,
                                          const MultiOutputNode& node, MultiOutputSplit& best) {
  scanner_.use_node(node.sums, node.rules);
  for (const std::uint32_t f : features) {
    if (cannot_split(f, node)) continue;
    if (layout_->features[f].is_categorical) {
      try_categorical(f, node, best);
    } else {
      try_numeric(f, node, best);
    }
  }
}

void MultiOutputSplitSearch::finish(const MultiOutputNode& node, MultiOutputSplit& split) const {
  if (split.feature < 0) return;
  const auto f = static_cast<std::uint32_t>(split.feature);
  const std::int32_t* bins = bins_of(f, node);
  split.left.assign(sum_layout_.stride(), 0);
  const std::size_t weight_at = sum_layout_.weight_at();
  complete(
      layout_->features[f], node.sums[weight_at],
      [&](std::uint32_t code) {
        return std::int64_t{bins[code * sum_layout_.stride() + weight_at]};
      },
      [&](std::uint32_t code) { add(split.left, bins + code * sum_layout_.stride()); }, split);
}

}  // namespace abcgbm
