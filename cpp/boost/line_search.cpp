#include "boost/line_search.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "boost/base_losses.hpp"
#include "grow/multi_output_leaves.hpp"
#include "loss/grid.hpp"

namespace abcgbm {
namespace {

// 2^-10: with thousands of classes the base class hardly moves.
constexpr int kMaxBaseHalvings = 10;
constexpr int kMaxDoublings = 2;
constexpr int kAllHalvings = 64;
constexpr StepScale kNoStep{.step_halvings = kAllHalvings};  // all values round to 0

std::vector<TreeMove> moves_by(const Proposal& proposal, const Values& values) {
  if (is_multi_output(proposal))
    return multi_output_moves(values.tree_class, proposal.node_of_row.front());
  std::vector<TreeMove> moves;
  moves.reserve(proposal.trees.size());
  for (std::size_t t = 0; t < proposal.trees.size(); ++t) {
    moves.push_back({.tree_class = proposal.trees[t].tree_class,
                     .base = proposal.trees[t].base,
                     .node_of_row = proposal.node_of_row[t],
                     .value = values.tree_class[t],
                     .base_value = values.base[t]});
  }
  return moves;
}

void subtract(std::vector<std::vector<double>>& values,
              const std::vector<std::vector<double>>& parts) {
  for (std::size_t t = 0; t < values.size(); ++t) {
    for (std::size_t node = 0; node < values[t].size(); ++node) values[t][node] -= parts[t][node];
  }
}

/// Stores the values that were applied in the trees.
void set_values(std::vector<Tree>& trees, const Values& values, StepScale scale) {
  if (trees.front().is_multi_output()) {
    std::vector<float>& of_leaf = trees.front().multi_output.of_leaf;
    const std::size_t n_classes = values.tree_class.size();  // of_leaf is leaf-major
    for (std::size_t i = 0; i < of_leaf.size(); ++i) {
      of_leaf[i] = static_cast<float>(values.tree_class[i % n_classes][i / n_classes]);
    }
    return;
  }
  for (std::size_t t = 0; t < trees.size(); ++t) {
    trees[t].base_scale = std::ldexp(1.0, -scale.base_halvings);
    for (std::size_t node = 0; node < trees[t].nodes.size(); ++node) {
      trees[t].nodes[node].value = values.tree_class[t][node];
    }
  }
}

/// Changes the scores from one scaled step to another.
class Mover {
 public:
  Mover(Scores& scores, const Labels& labels, RowWeights weight, const Proposal& proposal,
        int n_threads)
      : scores_(scores),
        labels_(labels),
        weight_(weight),
        proposal_(proposal),
        n_threads_(n_threads),
        applied_(values_of(proposal.trees, kNoStep)) {}

  bool has_moved() const { return at_.has_value(); }

  /// Applies the step at this scale.
  void move_to(StepScale scale) {
    if (at_ == scale) return;
    at_ = scale;
    const Change change(*this, values_of(proposal_.trees, scale));
    move_scores(scores_, labels_, change.moves, n_threads_);
    applied_ = change.target;
  }

  /// Estimates of the loss for smaller moves of the base class.
  BaseLosses base_losses() const {
    const Values full = values_of(proposal_.trees, {});
    const std::vector<TreeMove> moves = moves_by(proposal_, full);
    const Storage storage = storage_of(scores_.raw);
    if (at_ == StepScale{}) {
      return {scores_.raw, labels_, weight_, {moves, {}}, n_threads_, storage};
    }
    const Change to_full(*this, full);
    return {scores_.raw, labels_, weight_, {moves, to_full.moves}, n_threads_, storage};
  }

  /// The exact loss at this scale, without applying it.
  double loss_at(StepScale scale) const {
    if (at_ == scale) return loss_of(scores_, labels_, weight_);
    const Change change(*this, values_of(proposal_.trees, scale));
    return loss_after(scores_, labels_, weight_, change.moves, n_threads_);
  }

 private:
  /// The difference between the values applied so far and the target's.
  struct Change {
    Change(const Mover& mover, Values to) : target(std::move(to)), values(target) {
      subtract(values.tree_class, mover.applied_.tree_class);
      subtract(values.base, mover.applied_.base);
      moves = moves_by(mover.proposal_, values);
    }
    Values target;
    Values values;
    std::vector<TreeMove> moves;
  };

  Scores& scores_;
  const Labels& labels_;
  RowWeights weight_;
  const Proposal& proposal_;
  int n_threads_;
  Values applied_;
  std::optional<StepScale> at_;
};

/// Halves the base class's part while the loss falls; the loss of the full step may be given.
LineSearchResult halve_base_move(const LossAt& loss_at,
                                 const FallsIfHalvedAgain& falls_if_halved_again,
                                 std::optional<double> loss) {
  StepScale scale;
  while (scale.base_halvings < kMaxBaseHalvings) {
    const StepScale next{.step_halvings = scale.step_halvings,
                         .base_halvings = scale.base_halvings + 1};
    std::optional<bool> falls = falls_if_halved_again(scale.base_halvings);
    std::optional<double> next_loss;
    if (!falls) {
      if (!loss) loss = loss_at(scale);
      next_loss = loss_at(next);
      falls = *next_loss < *loss;
    }
    if (!*falls) break;
    scale = next;
    loss = next_loss;
  }
  return {.scale = scale, .loss = loss ? *loss : loss_at(scale)};
}

/// Doubles the whole step while the loss falls.
LineSearchResult double_step(const LossAt& loss_at, LineSearchResult from) {
  for (int n = 0; n < kMaxDoublings; ++n) {
    const StepScale next{.step_halvings = from.scale.step_halvings - 1,
                         .base_halvings = from.scale.base_halvings};
    const double loss = loss_at(next);
    if (loss >= from.loss) break;
    from = {.scale = next, .loss = loss};
  }
  return from;
}

/// Scales the base class's part first. With K classes it moves by K-1 trees at once, each fitted as
/// if alone, and only this common move overshoots: halving the whole step instead leaves ABC-MART
/// far behind MART at K = 150. The whole step is doubled only if the full step would have raised
/// the loss, as longer steps fit the training rows but seldom others.
LineSearchResult find_first_scale(const LossAt& loss_at,
                                  const FallsIfHalvedAgain& falls_if_halved_again,
                                  double loss_before, ScaleBase base_scaling) {
  if (base_scaling == ScaleBase::always) {
    return halve_base_move(loss_at, falls_if_halved_again, std::nullopt);
  }
  const double loss = loss_at({});
  if (base_scaling == ScaleBase::never || loss <= loss_before) return {.scale = {}, .loss = loss};
  return double_step(loss_at, halve_base_move(loss_at, falls_if_halved_again, loss));
}

}  // namespace

LineSearchResult line_search(const LossAt& loss_at, const FallsIfHalvedAgain& falls_if_halved_again,
                             double loss_before, ScaleBase base_scaling) {
  LineSearchResult found =
      find_first_scale(loss_at, falls_if_halved_again, loss_before, base_scaling);
  // The loss is never NaN, which would end the search as if accepted: leaf values are limited.
  while (found.loss > loss_before && found.scale.step_halvings < kAllHalvings) {
    ++found.scale.step_halvings;
    found.loss = loss_at(found.scale);
  }
  return found;
}

bool has_split(const Proposal& proposal) {
  return std::ranges::any_of(proposal.trees,
                             [](const Tree& tree) { return tree.nodes.size() > 1; });
}

ScaleBase when_to_scale_base(const Proposal& proposal, bool base_line_search) {
  // A single tree has no common move of K-1 trees, which is what overshoots.
  if (!proposal.trees.front().base.exists() || proposal.trees.size() == 1) {
    return ScaleBase::never;
  }
  return base_line_search ? ScaleBase::always : ScaleBase::if_loss_rises;
}

bool is_multi_output(const Proposal& proposal) { return proposal.trees.front().is_multi_output(); }

Values values_of(const std::vector<Tree>& trees, StepScale scale) {
  if (trees.front().is_multi_output()) {
    return {.tree_class = multi_output_values(trees.front(), scale.step_halvings), .base = {}};
  }
  const double factor = std::ldexp(1.0, -scale.step_halvings);
  const double base_scale = std::ldexp(1.0, -scale.base_halvings);
  Values values{.tree_class = std::vector<std::vector<double>>(trees.size()),
                .base = std::vector<std::vector<double>>(trees.size())};
  for (std::size_t t = 0; t < trees.size(); ++t) {
    for (const TreeNode& node : trees[t].nodes) {
      // The base class's value is rounded, then scaled up: both stay multiples of the grid.
      const double base_value = on_leaf_grid(node.value * factor * base_scale);
      values.base[t].push_back(base_value);
      values.tree_class[t].push_back(base_value / base_scale);
    }
  }
  return values;
}

StepScale apply_with_line_search(Scores& scores, const Labels& labels, RowWeights weight,
                                 Proposal& proposal, bool base_line_search, int n_threads) {
  const double loss_before = loss_of(scores, labels, weight);
  std::vector<Tree>& trees = proposal.trees;
  Mover mover(scores, labels, weight, proposal, n_threads);
  const auto loss_at = [&](StepScale scale) {
    if (!mover.has_moved()) mover.move_to(scale);  // the first scale is nearly always accepted
    return mover.loss_at(scale);
  };
  std::optional<BaseLosses> estimates;
  const auto falls_if_halved_again = [&](int n_halvings) {
    if (!estimates) estimates = mover.base_losses();
    return estimates->falls_if_halved_again(n_halvings);
  };
  const StepScale scale = line_search(loss_at, falls_if_halved_again, loss_before,
                                      when_to_scale_base(proposal, base_line_search))
                              .scale;
  mover.move_to(scale);
  set_values(trees, values_of(trees, scale), scale);
  return scale;
}

}  // namespace abcgbm
