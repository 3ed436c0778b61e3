#include "boost/step.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "boost/candidates.hpp"

namespace abcgbm {
namespace {

AnyTreeDriver make_driver(const SplitParams& params, const Binned& binned, int n_classes,
                          int n_threads) {
  if (params.hessian_split) return TreeDriver<3>(binned, n_classes, n_threads);
  return TreeDriver<2>(binned, n_classes, n_threads);
}

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes, [](const TreeNode& node) { return node.value != 0.0; });
  });
}

}  // namespace

Trainer::Trainer(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
                 std::vector<double> raw, const TrainParams& params, int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      params_(params),
      n_threads_(n_threads),
      scores_(make_scores(*labels_, std::move(raw), n_threads)),
      driver_(make_driver(params.split, *binned_, labels_->n_classes, n_threads)) {
  if (params.subsample == 1.0) all_rows_ = weigh_all(*binned_, *labels_, n_threads);
}

StepResult Trainer::step(const StepPlan& plan) {
  StepWeights drawn;
  if (params_.subsample < 1.0) {
    drawn = weigh_drawn(*binned_, *labels_, params_, plan.step, n_threads_);
  }
  const StepWeights& weights = params_.subsample < 1.0 ? drawn : all_rows_;
  const TreeRows rows{.scores = scores_, .labels = *labels_, .weight = weights.by_row(*labels_)};
  const StepContext context = make_context(params_, rows, weights.by_bin, plan);
  const auto grow = [&](std::span<const ClassPair> pairs) {
    return std::visit([&](auto& driver) { return driver.grow(context, pairs); }, driver_);
  };
  Choice choice = choose(plan, rows, grow, n_threads_);
  Proposal& proposal = choice.proposal;
  StepResult result{.trees = {},
                    .base = proposal.trees.front().base,
                    .candidate_losses = std::move(choice.losses),
                    .shortening = {}};
  if (has_split(proposal)) {
    result.shortening = move_with_guard(scores_, *labels_, rows.weight, proposal, n_threads_);
    result.changed = moves_anything(proposal.trees);
  }
  result.trees = std::move(proposal.trees);
  return result;
}

}  // namespace abcgbm
