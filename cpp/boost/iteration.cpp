#include "boost/iteration.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "boost/base_candidates.hpp"

namespace abcgbm {
namespace {

template <int W>
AnyTreeDriver make_class_driver(const Binned& binned, const Labels& labels, int n_threads,
                                const Storage& storage) {
  if (!labels.communicator().is_single()) return RankDriver<W>(binned, labels, n_threads, storage);
  return TreeDriver<W>(binned, labels.n_classes, n_threads, storage);
}

AnyTreeDriver make_driver(const TrainParams& params, const Binned& binned, const Labels& labels,
                          int n_threads, const Storage& storage) {
  if (params.multi_output) return MultiOutputDriver(binned, labels, params, n_threads, storage);
  if (params.split.hessian_split) return make_class_driver<3>(binned, labels, n_threads, storage);
  return make_class_driver<2>(binned, labels, n_threads, storage);
}

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes,
                               [](const TreeNode& node) { return node.value != 0.0; }) ||
           std::ranges::any_of(tree.multi_output.of_leaf,
                               [](float value) { return value != 0.0F; });
  });
}

/// The step to apply: that of the best candidate, or of a multi-output tree.
template <class Driver>
Choice propose(Driver& driver, const IterationPlan& plan, const IterationContext& context,
               int n_threads) {
  const auto grow = [&](std::span<const ClassPair> pairs) { return driver.grow(context, pairs); };
  return choose(plan, context, grow, n_threads);
}

/// A multi-output tree has no base class, so the plan leaves nothing to choose.
Choice propose(MultiOutputDriver& driver, const IterationPlan&, const IterationContext& context,
               int) {
  Choice choice;
  GrownTree& grown = choice.grown.emplace_back(driver.grow(context));
  choice.proposal.trees.push_back(std::move(grown.tree));
  choice.proposal.node_of_row.emplace_back(grown.node_of_row);
  return choice;
}

}  // namespace

Trainer::Trainer(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
                 LargeVector<double> raw, const TrainParams& params, int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      params_(params),
      n_threads_(n_threads),
      scores_(make_scores(*labels_, std::move(raw), n_threads, order_of(params))),
      driver_(make_driver(params, *binned_, *labels_, n_threads, storage_of(scores_.raw))) {
  // Multi-output trees do not use the weights by bin, and by row they are the labels' weights.
  if (params.subsample == 1.0 && !params.multi_output) {
    all_rows_ = full_weights(*binned_, *labels_, n_threads);
  }
}

IterationResult Trainer::train_iteration(const IterationPlan& plan) {
  IterationWeights sampled;
  if (params_.subsample < 1.0) {
    sampled = sampled_weights(*binned_, *labels_, params_, plan.iteration, n_threads_,
                              storage_of(scores_.raw));
  }
  const IterationWeights& weights = params_.subsample < 1.0 ? sampled : all_rows_;
  const TreeRows rows{.scores = scores_, .labels = *labels_, .weight = weights.by_row(*labels_)};
  const IterationContext context = make_context(params_, rows, weights.by_bin, plan);
  Choice choice =
      std::visit([&](auto& driver) { return propose(driver, plan, context, n_threads_); }, driver_);
  Proposal& proposal = choice.proposal;
  IterationResult result{.trees = {},
                         .base = proposal.trees.front().base,
                         .candidate_losses = std::move(choice.losses),
                         .step_scale = {},
                         .n_classes = labels_->n_classes};
  if (has_split(proposal)) {
    result.step_scale = apply_with_line_search(scores_, *labels_, rows.weight, proposal,
                                               params_.base_line_search, n_threads_);
    result.changed = moves_anything(proposal.trees);
  }
  result.trees = std::move(proposal.trees);
  return result;
}

}  // namespace abcgbm
