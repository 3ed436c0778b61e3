#include "tree/grower.hpp"

#include <algorithm>
#include <utility>

#include "base/draw.hpp"

namespace abcgbm {

template <class Traits>
Grower<Traits>::Grower(const Traits& traits, const Layout& layout, std::size_t max_histograms,
                       std::size_t n_threads)
    : traits_(traits),
      layout_(&layout),
      has_categories_(std::ranges::any_of(layout.features, &Feature::is_categorical)),
      max_histograms_(max_histograms),
      found_(n_threads, Found{.search = traits.make_search(layout), .best = {}}) {}

template <class Traits>
void Grower<Traits>::start(const GrowParams& params, const RootNode<Traits>& root) {
  params_ = &params;
  root_ = root;
  splits_left_ = static_cast<std::size_t>(params.max_leaf_nodes) - 1;
  nodes_.clear();
  grown_.clear();
  open_.clear();
  to_build_.clear();
  to_split_.clear();
  sibling_.reset();
  free_slots_.clear();
  for (std::size_t slot = slots_.size(); slot-- > 0;) free_slots_.push_back(slot);
  add_child(root.sums, 0, {});
  if (!can_split(0)) return;
  grown_[0].slot = take_slot();
  to_build_.push_back(0);
  prepare(0);
}

template <class Traits>
void Grower<Traits>::add_child(const Sums& sums, int depth, const Path& path) {
  nodes_.emplace_back();
  Grown& grown = grown_.emplace_back();
  grown.sums = sums;
  grown.path = path;
  grown.depth = depth;
}

/// Whether the node could be split at all, so that a histogram is worth building.
template <class Traits>
bool Grower<Traits>::can_split(std::size_t node) const {
  const Grown& grown = grown_[node];
  const bool is_deep = params_->max_depth > 0 && grown.depth >= params_->max_depth;
  return splits_left_ > 0 && !is_deep &&
         traits_.weight_of(grown.sums) / 2 >= root_.rules.min_weight;
}

/// Schedules the split search of a node.
template <class Traits>
void Grower<Traits>::prepare(std::size_t node) {
  to_split_.push_back(node);
  const FeatureRules& rules = params_->features;
  if (!rules.any()) return;
  Grown& grown = grown_[node];
  grown.may_split.assign(layout_->n_features(), 0);
  for (const std::uint32_t f :
       features_of(rules, layout_->n_features(), grown.path, mix(root_.key ^ node))) {
    grown.may_split[f] = 1;
  }
}

template <class Traits>
typename Traits::NodeToSplit Grower<Traits>::node_to_split(std::size_t node) const {
  const Grown& grown = grown_[node];
  return {.sums = grown.sums,
          .histogram = slots_[grown.slot],
          .rules = root_.rules,
          .may_split = grown.may_split,
          .abs_residuals = grown.abs_residuals};
}

template <class Traits>
void Grower<Traits>::decide(std::size_t node) {
  const Grown& grown = grown_[node];
  if (grown.split.feature >= 0) {
    nodes_[node].gain = traits_.gain_of(grown.split, grown.sums, root_.rules) * root_.gain_unit;
  }
  if (nodes_[node].gain > params_->min_gain) {
    open(node);
  } else {
    release(node);
  }
}

/// Keeps open leaves in order of gain. With r splits left only the best r can ever be split, so the
/// histograms of the others are released.
template <class Traits>
void Grower<Traits>::open(std::size_t node) {
  const auto is_worse = [&](std::size_t a, std::size_t b) {
    return std::pair(nodes_[a].gain, b) < std::pair(nodes_[b].gain, a);
  };
  open_.insert(std::upper_bound(open_.begin(), open_.end(), node, is_worse), node);
  if (open_.size() > splits_left_) {
    release(open_.front());
    open_.erase(open_.begin());
  }
}

template <class Traits>
void Grower<Traits>::release(std::size_t node) {
  const std::size_t slot = std::exchange(grown_[node].slot, kNoSlot);
  if (slot != kNoSlot) free_slots_.push_back(slot);
}

/// Returns a free or new slot or, at the limit, that of the least promising leaf.
template <class Traits>
std::size_t Grower<Traits>::take_slot() {
  if (free_slots_.empty() && slots_.size() < max_histograms_) {
    slots_.push_back(traits_.make_histogram(layout_->total_bins));
    return slots_.size() - 1;
  }
  for (std::size_t i = 0; free_slots_.empty(); ++i) release(open_[i]);
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

template <class Traits>
void Grower<Traits>::write_split(const typename Traits::Split& split, TreeNode& node) {
  node.feature = split.feature;
  node.bin = split.bin;
  node.left_set = split.left_set;
  node.missing_left = split.missing_left;
}

template <class Traits>
typename Grower<Traits>::SplitPreview Grower<Traits>::preview(std::size_t leaf) const {
  const Grown& grown = grown_[leaf];
  const Sums right = difference(grown.sums, grown.split.left);
  const std::int64_t left_weight = traits_.weight_of(grown.split.left);
  const std::int64_t right_weight = traits_.weight_of(right);
  const bool is_deep = params_->max_depth > 0 && grown.depth + 1 >= params_->max_depth;
  const std::int64_t heavier = std::max(left_weight, right_weight);
  SplitPreview preview{.split = {},
                       .builds_left = right_weight >= left_weight,
                       .is_worth_building = grown.slot != kNoSlot && !is_deep &&
                                            heavier / 2 >= root_.rules.min_weight};
  write_split(grown.split, preview.split);
  return preview;
}

template <class Traits>
std::optional<std::size_t> Grower<Traits>::split_next() {
  if (open_.empty() || splits_left_ == 0) return std::nullopt;
  const std::size_t parent = open_.back();
  open_.pop_back();
  --splits_left_;
  const typename Traits::Split split = std::move(grown_[parent].split);
  const Sums right = difference(grown_[parent].sums, split.left);
  const std::size_t left_id = nodes_.size();
  const int depth = grown_[parent].depth + 1;
  Path path;  // only needed for feature rules
  if (params_->features.any()) {
    path = path_with(grown_[parent].path, static_cast<std::uint32_t>(split.feature));
  }
  add_child(split.left, depth, path);
  add_child(right, depth, path);
  TreeNode& node = nodes_[parent];
  write_split(split, node);
  node.left = static_cast<int>(left_id);
  choose_to_build(parent, left_id);
  return parent;
}

template <class Traits>
void Grower<Traits>::choose_to_build(std::size_t parent, std::size_t left) {
  const std::size_t right = left + 1;
  to_build_.clear();
  to_split_.clear();
  sibling_.reset();
  for (const std::size_t child : {left, right}) {
    if (can_split(child)) prepare(child);
  }
  if (to_split_.empty()) {
    release(parent);
  } else if (grown_[parent].slot != kNoSlot) {
    const bool right_is_lighter =
        traits_.weight_of(grown_[right].sums) < traits_.weight_of(grown_[left].sums);
    to_build_.push_back(right_is_lighter ? right : left);
    sibling_ = right_is_lighter ? left : right;
    grown_[*sibling_].slot = std::exchange(grown_[parent].slot, kNoSlot);
  } else {
    to_build_ = to_split_;
  }
  for (const std::size_t child : to_build_) {
    if (can_split(child)) grown_[child].slot = take_slot();
  }
}

template <class Traits>
void Grower<Traits>::search_block(const Block& block, std::size_t slot) {
  const std::size_t node = to_build_.front();
  if (sibling_ && !is_subtracted(node)) {
    traits_.subtract(block, histogram(*sibling_), histogram(node));
  };
  Found& found = found_[slot];
  found.best.resize(to_split_.size());
  for (std::size_t i = 0; i < to_split_.size(); ++i) {
    found.search.try_features(block.features, node_to_split(to_split_[i]), found.best[i]);
  }
}

template <class Traits>
std::vector<typename Traits::Split> Grower<Traits>::best_splits() {
  std::vector<typename Traits::Split> splits(to_split_.size());
  for (Found& found : found_) {
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      const typename Traits::Split& other = found.best[i];
      if (splits[i].is_beaten_by(other.score, other.feature, other.missing_left))
        splits[i] = std::move(found.best[i]);
    }
    found.best.clear();
  }
  for (std::size_t i = 0; i < splits.size(); ++i) {
    found_.front().search.finish(node_to_split(to_split_[i]), splits[i]);
  }
  return splits;
}

template <class Traits>
void Grower<Traits>::set_splits(std::vector<typename Traits::Split> splits) {
  for (std::size_t i = 0; i < splits.size(); ++i) {
    grown_[to_split_[i]].split = std::move(splits[i]);
    decide(to_split_[i]);
  }
}

template class Grower<SingleOutput<2>>;
template class Grower<SingleOutput<3>>;
template class Grower<MultiOutput>;

}  // namespace abcgbm
