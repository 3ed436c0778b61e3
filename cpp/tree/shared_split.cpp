#include "tree/shared_split.hpp"

#include <algorithm>
#include <numeric>

namespace abcgbm {
namespace {

/// What a second ridge takes: a node has one, its children have two.
double cost_of_ridge(const SharedForm& form, const SharedSums& node, double l2) {
  double cost = 0.0;
  for (std::size_t d = 0; d < form.n_directions; ++d) {
    const auto residual = static_cast<double>(node[d]);
    const auto hessian = static_cast<double>(node[form.hessians_at() + d]);
    if (!(hessian + l2 > 0.0)) continue;
    const double inverse = 1.0 / (hessian + 2.0 * l2);
    cost += ((residual * residual) * l2 * inverse) / (hessian + l2);
  }
  return cost;
}

}  // namespace

double shared_gain(const SharedForm& form, const SharedCut& cut, const SharedSums& node,
                   const SplitRules& rules) {
  if (form.has_hessian) return cut.score - cost_of_ridge(form, node, rules.l2);
  return cut.score / static_cast<double>(node[form.weight_at()]);
}

SharedCutSearch::SharedCutSearch(const Layout& layout, const SharedForm& form)
    : layout_(&layout), form_(form), scanner_(form), prices_(layout) {}

const std::int32_t* SharedCutSearch::bins_of(std::uint32_t f, const SharedNode& node) const {
  return node.histogram.data() + layout_->features[f].offset * form_.stride();
}

/// Whether a feature need not be looked at, as in CutSearch.
bool SharedCutSearch::is_hopeless(std::uint32_t f, const SharedNode& node) const {
  if (!node.may_cut.empty() && node.may_cut[f] == 0) return true;
  const Feature& feature = layout_->features[f];
  if (!feature.is_sparse) return false;
  const std::int32_t* common = bins_of(f, node) + feature.common * form_.stride();
  return node.sums[form_.weight_at()] - common[form_.weight_at()] < node.rules.min_weight;
}

bool SharedCutSearch::try_scan(const SharedScan& scan, std::uint32_t f, bool missing_left,
                               SharedCut& best) {
  const BestOfScan found = scanner_.best_cut(scan);
  const auto feature = static_cast<int>(f);
  if (found.score == 0.0 || !best.is_beaten_by(found.score, feature, missing_left)) return false;
  best.score = found.score;
  best.feature = feature;
  best.bin = static_cast<std::uint32_t>(found.after);
  best.missing_left = missing_left;
  return true;
}

void SharedCutSearch::try_numeric(std::uint32_t f, const SharedNode& node, SharedCut& best) {
  const std::uint32_t missing = layout_->features[f].missing_code();
  SharedScan scan{.bins = bins_of(f, node), .n = missing};
  try_scan(scan, f, false, best);
  const std::int32_t* of_missing = scan.bins + missing * form_.stride();
  if (of_missing[form_.weight_at()] == 0 || missing == 1) return;
  scan.n = missing - 1;
  scan.start = of_missing;
  try_scan(scan, f, true, best);
}

double SharedCutSearch::split_weight(const std::int32_t* sums, std::size_t direction) const {
  return static_cast<double>(
      sums[form_.has_hessian ? form_.hessians_at() + direction : form_.weight_at()]);
}

/// As CutSearch does.
void SharedCutSearch::find_categories(std::uint32_t f, const SharedNode& node) {
  const std::int32_t* bins = bins_of(f, node);
  found_.clear();
  light_codes_.clear();
  light_.assign(form_.stride(), 0);
  for (std::uint32_t code = 0; code < layout_->features[f].n_bins; ++code) {
    const std::int32_t* bin = bins + code * form_.stride();
    const std::int32_t weight = bin[form_.weight_at()];
    if (weight == 0) continue;
    const bool is_light = node.rules.is_light(weight);
    if (!is_light || light_codes_.empty()) found_.push_back({.code = code, .is_light = is_light});
    if (!is_light) continue;
    light_codes_.push_back(code);
    add(light_, bin);
  }
}

const std::int32_t* SharedCutSearch::sums_of(const Category& category,
                                             const std::int32_t* bins) const {
  return category.is_light ? light_.data() : bins + category.code * form_.stride();
}

/// The directions in which the categories are sorted: those in which they differ most.
std::vector<std::size_t> SharedCutSearch::orders(const std::int32_t* bins,
                                                 const SharedNode& node) const {
  std::vector<std::size_t> directions(form_.n_directions);
  std::iota(directions.begin(), directions.end(), std::size_t{0});
  if (directions.size() <= kMostOrders) return directions;
  const double l2 = form_.has_hessian ? node.rules.l2 : 0.0;
  std::vector<double> spread(directions.size(), 0.0);
  for (const Category& category : found_) {
    const std::int32_t* bin = sums_of(category, bins);
    for (const std::size_t d : directions) {
      const auto residual = static_cast<double>(bin[d]);
      const double weight = split_weight(bin, d) + l2;
      if (weight > 0.0) spread[d] += residual * residual / weight;
    }
  }
  std::ranges::sort(directions, [&](std::size_t a, std::size_t b) {
    return spread[a] != spread[b] ? spread[a] > spread[b] : a < b;
  });
  directions.resize(kMostOrders);
  std::ranges::sort(directions);
  return directions;
}

/// Sorts the categories by mean residual, each as if it had some more weight at the node's mean.
void SharedCutSearch::sort_categories(std::size_t direction, const std::int32_t* bins,
                                      const SharedNode& node) {
  const auto node_weight = static_cast<double>(node.sums[form_.weight_at()]);
  const double smoothing = node.rules.smoothing;
  const double more_residual =
      smoothing * (static_cast<double>(node.sums[direction]) / node_weight);
  const double more_weight = smoothing * (split_weight(node.sums.data(), direction) / node_weight);
  categories_ = found_;
  for (Category& category : categories_) {
    const std::int32_t* bin = sums_of(category, bins);
    const double weight = split_weight(bin, direction) + more_weight;
    const double residual = static_cast<double>(bin[direction]) + more_residual;
    category.mean = weight > 0.0 ? residual / weight : 0.0;
  }
  sort_by_mean(categories_);
  sorted_.clear();
  for (const Category& category : categories_) sorted_.push_back(sums_of(category, bins));
}

/// What chance alone would give to the cuts of the categories, sorted in a direction.
std::span<const double> SharedCutSearch::prices_of(std::size_t direction, const SharedNode& node) {
  double unit = node.rules.level_price;
  if (!form_.has_hessian && unit > 0.0) {
    unit *= static_cast<double>(node.residual_size[direction]);
  }
  return prices_.of(found_.size(), unit);
}

void SharedCutSearch::try_categorical(std::uint32_t f, const SharedNode& node, SharedCut& best) {
  find_categories(f, node);
  const std::size_t n = found_.size();
  if (n < 2) return;
  const std::int32_t* bins = bins_of(f, node);
  for (const std::size_t direction : orders(bins, node)) {
    sort_categories(direction, bins, node);
    const SharedScan scan{.n = n - 1, .sorted = sorted_, .prices = prices_of(direction, node)};
    if (!try_scan(scan, f, false, best)) continue;
    best.left_set = codes_of(std::span(categories_).first(best.bin + 1), light_codes_,
                             layout_->features[f].n_bins);
  }
}

void SharedCutSearch::try_features(std::span<const std::uint32_t> features, const SharedNode& node,
                                   SharedCut& best) {
  scanner_.use_node(node.sums, node.rules);
  for (const std::uint32_t f : features) {
    if (is_hopeless(f, node)) continue;
    if (layout_->features[f].is_categorical) {
      try_categorical(f, node, best);
    } else {
      try_numeric(f, node, best);
    }
  }
}

void SharedCutSearch::finish(const SharedNode& node, SharedCut& cut) const {
  if (cut.feature < 0) return;
  const auto f = static_cast<std::uint32_t>(cut.feature);
  const std::int32_t* bins = bins_of(f, node);
  cut.left.assign(form_.stride(), 0);
  const std::size_t weight_at = form_.weight_at();
  complete(
      layout_->features[f], node.sums[weight_at],
      [&](std::uint32_t code) { return std::int64_t{bins[code * form_.stride() + weight_at]}; },
      [&](std::uint32_t code) { add(cut.left, bins + code * form_.stride()); }, cut);
}

}  // namespace abcgbm
