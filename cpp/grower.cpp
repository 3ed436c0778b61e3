#include "grower.hpp"

#include <algorithm>
#include <utility>

namespace abcgbm {

template <int W>
std::span<Sums<W>> Grower<W>::root_histogram() {
  if (slots_.empty()) slots_.emplace_back(binned_->total_bins());
  return slots_[0];
}

template <int W>
void Grower<W>::start(const GrowParams& params, const Sums<W>& root, double gain_unit) {
  params_ = params;
  gain_unit_ = gain_unit;
  splits_left_ = static_cast<std::size_t>(params.max_leaf_nodes) - 1;
  nodes_.clear();
  grown_.clear();
  open_.clear();
  free_slots_.clear();
  for (std::size_t slot = slots_.size(); slot-- > 1;) free_slots_.push_back(slot);
  add_child(root, 0);
  grown_[0].slot = 0;
  if (can_split(0)) evaluate(0);
}

template <int W>
void Grower<W>::add_child(const Sums<W>& sums, int depth) {
  nodes_.emplace_back();
  grown_.push_back({.sums = sums, .cut = {}, .depth = depth, .slot = kNoSlot});
}

/// Whether a node could be split at all: then its histogram is worth having.
template <int W>
bool Grower<W>::can_split(std::size_t node) const {
  const Grown& grown = grown_[node];
  const bool is_deep = params_.max_depth > 0 && grown.depth >= params_.max_depth;
  return splits_left_ > 0 && !is_deep && grown.sums[1] / 2 >= params_.rules.min_weight;
}

template <int W>
void Grower<W>::evaluate(std::size_t node) {
  Grown& grown = grown_[node];
  grown.cut = best_cut<W>(*binned_, slots_[grown.slot], grown.sums, params_.rules, cuts_);
  if (grown.cut.feature >= 0) {
    nodes_[node].gain = gain_of<W>(grown.cut, grown.sums, params_.rules) * gain_unit_;
  }
  if (nodes_[node].gain > params_.min_gain) {
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
  free_slots_.push_back(std::exchange(grown_[node].slot, kNoSlot));
}

template <int W>
std::size_t Grower<W>::take_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back(binned_->total_bins());
    return slots_.size() - 1;
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

template <int W>
std::optional<Split> Grower<W>::split_next() {
  if (open_.empty() || splits_left_ == 0) return std::nullopt;
  parent_ = open_.back();
  open_.pop_back();
  --splits_left_;
  const Cut<W> cut = grown_[parent_].cut;
  Sums<W> right;
  for (std::size_t w = 0; w < W; ++w) right[w] = grown_[parent_].sums[w] - cut.left[w];
  const std::size_t left_id = nodes_.size();
  const int depth = grown_[parent_].depth + 1;
  add_child(cut.left, depth);
  add_child(right, depth);
  TreeNode& node = nodes_[parent_];
  node.feature = cut.feature;
  node.bin = cut.bin;
  node.missing_left = cut.missing_left;
  node.left = static_cast<int>(left_id);

  Split split{.node = parent_,
              .feature = static_cast<std::size_t>(cut.feature),
              .bin = cut.bin,
              .missing_left = cut.missing_left,
              .to_count = std::nullopt};
  counting_ = left_id + (right[1] < cut.left[1] ? 1 : 0);
  if (can_split(left_id) || can_split(left_id + 1)) {
    split.to_count = counting_;
  } else {
    release(parent_);
  }
  return split;
}

template <int W>
std::span<Sums<W>> Grower<W>::count_here() {
  const std::size_t slot = take_slot();
  grown_[counting_].slot = slot;
  std::fill(slots_[slot].begin(), slots_[slot].end(), Sums<W>{});
  return slots_[slot];
}

template <int W>
void Grower<W>::counted() {
  const std::size_t left = static_cast<std::size_t>(nodes_[parent_].left);
  const std::size_t sibling = counting_ == left ? left + 1 : left;
  grown_[sibling].slot = std::exchange(grown_[parent_].slot, kNoSlot);
  subtract<W>(slots_[grown_[sibling].slot], slots_[grown_[counting_].slot]);
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
