#include "step.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "guard.hpp"
#include "parallel.hpp"

namespace abcgbm {
namespace {

constexpr double kLargestLeaf = 50.0;  // bound of a leaf value before the learning rate
constexpr std::size_t kRootBytes = std::size_t{1}
                                   << 26;  // for root histograms of a batch of classes
constexpr std::size_t kBlock = 512;

/// Newton step of a leaf, bounded, so that a tiny hessian gives neither infinity nor NaN.
double leaf_value(std::int64_t residual, std::int64_t hessian_sum, double leaf_scale,
                  double learning_rate) {
  if (residual == 0) return 0.0;
  const double newton = static_cast<double>(residual) / static_cast<double>(hessian_sum);
  return on_leaf_grid(learning_rate * std::clamp(leaf_scale * newton, -kLargestLeaf, kLargestLeaf));
}

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes, [](const TreeNode& node) { return node.value != 0.0; });
  });
}

bool splits_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) { return tree.nodes.size() > 1; });
}

}  // namespace

Trainer::Trainer(std::shared_ptr<const Binned> binned, Labels labels, GrowParams params,
                 int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      params_(params),
      n_threads_(n_threads),
      scores_(make_scores(labels_, n_threads)),
      root_weights_(root_weights(*binned_, labels_, n_threads)) {
  for (int i = 0; i < n_threads; ++i) workspaces_.push_back(std::make_unique<Workspace>(*binned_));
}

StepResult Trainer::step(const StepPlan& plan) {
  StepResult result;
  const std::size_t n_trees = plan.classes.size();
  result.trees.resize(n_trees);
  node_of_row_.resize(n_trees * labels_.n_rows());
  if (plan.base_derivatives) {
    base_root_.classes = {plan.base};
    fill_roots(*binned_, labels_, scores_, n_threads_, base_root_);
  }
  // Root histograms of many classes may not fit: they are made for a batch of classes at a time.
  const std::size_t groups =
      std::max<std::size_t>(1, kRootBytes / (binned_->total_bins() * sizeof(Line)));
  for (std::size_t first = 0; first < n_trees; first += groups * kLane) {
    grow_batch(plan, first, std::min(n_trees, first + groups * kLane), result.trees);
  }
  if (splits_anything(result.trees)) {
    result.shortening = move_with_guard(scores_, labels_, result.trees, node_of_row_, n_threads_);
    result.changed = moves_anything(result.trees);
  }
  return result;
}

void Trainer::grow_batch(const StepPlan& plan, std::size_t first, std::size_t last,
                         std::vector<Tree>& trees) {
  roots_.classes.assign(plan.classes.begin() + static_cast<std::ptrdiff_t>(first),
                        plan.classes.begin() + static_cast<std::ptrdiff_t>(last));
  fill_roots(*binned_, labels_, scores_, n_threads_, roots_);
  parallel_for(last - first, n_threads_, [&](std::size_t i, std::size_t slot) {
    trees[first + i] = grow_tree(plan, first + i, i, *workspaces_[slot]);
  });
}

Tree Trainer::grow_tree(const StepPlan& plan, std::size_t position, std::size_t in_batch,
                        Workspace& workspace) {
  const int k = plan.classes[position];
  auto& grower = workspace.grower;
  reset(workspace.rows, labels_.n_rows());
  const Sums<2> root = fill_root(plan, k, in_batch, workspace);
  grower.start(params_, root, std::ldexp(labels_.unit, -2 * scores_.exponent));
  while (const auto split = grower.split_next()) {
    split_rows(workspace.rows, split->node, *binned_, split->feature, split->bin,
               split->missing_left);
    if (split->to_count) {
      add_rows<2>(*binned_, workspace.rows.of(*split->to_count), workspace.row_sums,
                  grower.count_here());
      grower.counted();
    }
  }
  Tree tree{.tree_class = k, .base = plan.base, .nodes = grower.nodes()};
  const std::size_t n_rows = labels_.n_rows();
  set_leaves(plan, tree, workspace, std::span(node_of_row_).subspan(position * n_rows, n_rows));
  return tree;
}

/// The rows' sums, and the root's histogram from those of all classes.
Sums<2> Trainer::fill_root(const StepPlan& plan, int k, std::size_t in_batch,
                           Workspace& workspace) {
  const std::size_t n_rows = labels_.n_rows();
  const std::int64_t* residual = scores_.residual.data() + static_cast<std::size_t>(k) * n_rows;
  const std::int64_t* base =
      scores_.residual.data() + static_cast<std::size_t>(std::max(plan.base, 0)) * n_rows;
  workspace.row_sums.resize(n_rows);
  Sums<2> root{};
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::int64_t g = residual[i] - (plan.base_derivatives ? base[i] : 0);
    workspace.row_sums[i] = {g * labels_.weight[i], labels_.weight[i]};
    root[0] += workspace.row_sums[i][0];
    root[1] += workspace.row_sums[i][1];
  }
  const auto histogram = workspace.grower.root_histogram();
  const std::size_t total_bins = histogram.size();
  for (std::size_t bin = 0; bin < total_bins; ++bin) {
    const std::int64_t g = roots_.at(in_batch, bin, total_bins) -
                           (plan.base_derivatives ? base_root_.at(0, bin, total_bins) : 0);
    histogram[bin] = {g, root_weights_[bin]};
  }
  return root;
}

void Trainer::set_leaves(const StepPlan& plan, Tree& tree, const Workspace& workspace,
                         std::span<std::uint16_t> node_of_row) {
  const std::size_t n_nodes = tree.nodes.size();
  for (std::size_t node = 0; node < n_nodes; ++node) {
    if (!tree.nodes[node].is_leaf()) continue;
    for (const std::uint32_t row : workspace.rows.of(node)) {
      node_of_row[row] = static_cast<std::uint16_t>(node);
    }
  }
  std::vector<std::int64_t> hessian_sums(n_nodes, 0);
  std::array<std::int64_t, kBlock> block;
  const int base = plan.base_derivatives ? plan.base : -1;
  for (std::size_t first = 0; first < node_of_row.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, node_of_row.size() - first);
    hessian(scores_, labels_, tree.tree_class, base, first, std::span(block).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      hessian_sums[node_of_row[first + i]] += block[i] * labels_.weight[first + i];
    }
  }
  for (std::size_t node = 0; node < n_nodes; ++node) {
    const auto& sums = workspace.grower.sums(node);
    tree.nodes[node].weight = static_cast<double>(sums[1]) * labels_.unit;
    if (!tree.nodes[node].is_leaf()) continue;
    tree.nodes[node].gain = 0.0;  // of a split that was not made
    tree.nodes[node].value =
        leaf_value(sums[0], hessian_sums[node], plan.leaf_scale, params_.learning_rate);
  }
}

}  // namespace abcgbm
