#include "boost/step.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "boost/candidates.hpp"

namespace abcgbm {
namespace {

template <int W>
AnyTreeDriver make_class_driver(const Binned& binned, const Labels& labels, int n_threads,
                                const Storage& storage) {
  if (!labels.ranks().is_alone()) return RankDriver<W>(binned, labels, n_threads, storage);
  return TreeDriver<W>(binned, labels.n_classes, n_threads, storage);
}

AnyTreeDriver make_driver(const TrainParams& params, const Binned& binned, const Labels& labels,
                          int n_threads, const Storage& storage) {
  if (params.shared) return SharedDriver(binned, labels, params, n_threads, storage);
  if (params.split.hessian_split) return make_class_driver<3>(binned, labels, n_threads, storage);
  return make_class_driver<2>(binned, labels, n_threads, storage);
}

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes,
                               [](const TreeNode& node) { return node.value != 0.0; }) ||
           std::ranges::any_of(tree.shared.of_leaf, [](float value) { return value != 0.0F; });
  });
}

/// The trees of the step that is to be made: those of the best candidate, or a shared one.
template <class Driver>
Choice propose(Driver& driver, const StepPlan& plan, const StepContext& context, int n_threads) {
  const auto grow = [&](std::span<const ClassPair> pairs) { return driver.grow(context, pairs); };
  return choose(plan, context, grow, n_threads);
}

Choice propose(SharedDriver& driver, const StepPlan&, const StepContext& context, int) {
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
  if (params.subsample == 1.0 && !params.shared) {
    all_rows_ = weigh_all(*binned_, *labels_, n_threads);
  }
}

StepResult Trainer::step(const StepPlan& plan) {
  StepWeights drawn;
  if (params_.subsample < 1.0) {
    drawn =
        weigh_drawn(*binned_, *labels_, params_, plan.step, n_threads_, storage_of(scores_.raw));
  }
  const StepWeights& weights = params_.subsample < 1.0 ? drawn : all_rows_;
  const TreeRows rows{.scores = scores_, .labels = *labels_, .weight = weights.by_row(*labels_)};
  const StepContext context = make_context(params_, rows, weights.by_bin, plan);
  Choice choice =
      std::visit([&](auto& driver) { return propose(driver, plan, context, n_threads_); }, driver_);
  Proposal& proposal = choice.proposal;
  StepResult result{.trees = {},
                    .base = proposal.trees.front().base,
                    .candidate_losses = std::move(choice.losses),
                    .shortening = {},
                    .n_classes = labels_->n_classes};
  if (has_split(proposal)) {
    result.shortening =
        move_with_guard(scores_, *labels_, rows.weight, proposal, params_.search_base, n_threads_);
    result.changed = moves_anything(proposal.trees);
  }
  result.trees = std::move(proposal.trees);
  return result;
}

}  // namespace abcgbm
