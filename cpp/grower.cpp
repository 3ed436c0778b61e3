#include "grower.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "draw.hpp"

namespace abcgbm {

template <int W>
Grower<W>::Grower(const Binned& binned, std::size_t most_histograms)
    : binned_(&binned), most_histograms_(most_histograms), all_features_(binned.n_features()) {
  std::iota(all_features_.begin(), all_features_.end(), std::uint32_t{0});
}

template <int W>
std::span<Sums<W>> Grower<W>::root_histogram() {
  if (slots_.empty()) slots_.emplace_back(binned_->total_bins);
  return slots_[0];
}

template <int W>
void Grower<W>::start(const GrowParams& params, const RootNode<W>& root) {
  params_ = &params;
  root_ = root;
  splits_left_ = static_cast<std::size_t>(params.max_leaf_nodes) - 1;
  nodes_.clear();
  grown_.clear();
  open_.clear();
  free_slots_.clear();
  for (std::size_t slot = slots_.size(); slot-- > 1;) free_slots_.push_back(slot);
  add_child(root.sums, 0, {});
  grown_[0].slot = 0;
  if (can_split(0)) evaluate(0);
}

template <int W>
void Grower<W>::add_child(const Sums<W>& sums, int depth, const Path& path) {
  nodes_.emplace_back();
  grown_.push_back({.sums = sums, .cut = {}, .path = path, .depth = depth, .slot = kNoSlot});
}

/// Whether a node could be split at all: then its histogram is worth having.
template <int W>
bool Grower<W>::can_split(std::size_t node) const {
  const Grown& grown = grown_[node];
  const bool is_deep = params_->max_depth > 0 && grown.depth >= params_->max_depth;
  return splits_left_ > 0 && !is_deep && grown.sums[1] / 2 >= params_->rules.min_weight;
}

template <int W>
void Grower<W>::evaluate(std::size_t node) {
  Grown& grown = grown_[node];
  const FeatureRules& rules = params_->features;
  std::vector<std::uint32_t> some;
  if (rules.any()) {
    some = features_of(rules, binned_->n_features(), grown.path, mix(root_.key ^ node));
  }
  grown.cut = best_cut<W>(*binned_, rules.any() ? some : all_features_, slots_[grown.slot],
                          grown.sums, params_->rules, cuts_);
  if (grown.cut.feature >= 0) {
    nodes_[node].gain = gain_of<W>(grown.cut, grown.sums, params_->rules) * root_.gain_unit;
  }
  if (nodes_[node].gain > params_->min_gain) {
    open(node);
  } else {
    release(node);
  }
}

/// Keeps open leaves in order of gain. With r splits left only the best r can ever be split, so
/// histograms of the others are given back.
template <int W>
void Grower<W>::open(std::size_t node) {
  const auto is_worse = [&](std::size_t a, std::size_t b) {
    return std::pair(nodes_[a].gain, b) < std::pair(nodes_[b].gain, a);
  };
  open_.insert(std::upper_bound(open_.begin(), open_.end(), node, is_worse), node);
  if (open_.size() > splits_left_) {
    release(open_.front());
    open_.erase(open_.begin());
  }
}

template <int W>
void Grower<W>::release(std::size_t node) {
  const std::size_t slot = std::exchange(grown_[node].slot, kNoSlot);
  if (slot != kNoSlot) free_slots_.push_back(slot);
}

/// A slot that is free or new; or, where there are too many, that of the least promising leaf.
template <int W>
std::size_t Grower<W>::take_slot() {
  if (free_slots_.empty() && slots_.size() < most_histograms_) {
    slots_.emplace_back(binned_->total_bins);
    return slots_.size() - 1;
  }
  for (std::size_t i = 0; free_slots_.empty(); ++i) release(open_[i]);
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

template <int W>
std::optional<std::size_t> Grower<W>::split_next() {
  if (open_.empty() || splits_left_ == 0) return std::nullopt;
  parent_ = open_.back();
  open_.pop_back();
  --splits_left_;
  Cut<W> cut = std::move(grown_[parent_].cut);
  Sums<W> right;
  for (std::size_t w = 0; w < W; ++w) right[w] = grown_[parent_].sums[w] - cut.left[w];
  const std::size_t left_id = nodes_.size();
  const int depth = grown_[parent_].depth + 1;
  Path path;  // kept only where it matters
  if (params_->features.any()) {
    path = path_with(grown_[parent_].path, static_cast<std::uint32_t>(cut.feature));
  }
  add_child(cut.left, depth, path);
  add_child(right, depth, path);
  TreeNode& node = nodes_[parent_];
  node.feature = cut.feature;
  node.bin = cut.bin;
  node.left_set = std::move(cut.left_set);
  node.missing_left = cut.missing_left;
  node.left = static_cast<int>(left_id);
  choose_to_count(left_id);
  return parent_;
}

template <int W>
void Grower<W>::choose_to_count(std::size_t left) {
  const std::size_t right = left + 1;
  const bool has_parent = grown_[parent_].slot != kNoSlot;
  to_count_.clear();
  if (!can_split(left) && !can_split(right)) {
    release(parent_);
  } else if (has_parent) {
    to_count_.push_back(grown_[right].sums[1] < grown_[left].sums[1] ? right : left);
  } else {
    for (const std::size_t child : {left, right}) {
      if (can_split(child)) to_count_.push_back(child);
    }
  }
}

template <int W>
std::span<Sums<W>> Grower<W>::count_here(std::size_t child) {
  const std::size_t slot = take_slot();
  grown_[child].slot = slot;
  std::fill(slots_[slot].begin(), slots_[slot].end(), Sums<W>{});
  return slots_[slot];
}

template <int W>
void Grower<W>::counted() {
  const std::size_t left = static_cast<std::size_t>(nodes_[parent_].left);
  if (grown_[parent_].slot != kNoSlot) {
    const std::size_t child = to_count_.front();
    const std::size_t sibling = child == left ? left + 1 : left;
    grown_[sibling].slot = std::exchange(grown_[parent_].slot, kNoSlot);
    subtract<W>(slots_[grown_[sibling].slot], slots_[grown_[child].slot]);
  }
  for (const std::size_t child : {left, left + 1}) {
    if (can_split(child)) {
      evaluate(child);
    } else {
      release(child);
    }
  }
}

template class Grower<2>;
template class Grower<3>;

}  // namespace abcgbm
