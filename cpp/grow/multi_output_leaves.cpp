#include "grow/multi_output_leaves.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "loss/grid.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr double kRounding =
    0x1p-50;  // relative size of a difference of means that is rounding only

/// The sums of each node: weight, and residuals and hessians by class. Those of an inner node are
/// added up from its leaves.
struct NodeSums {
  std::size_t n_classes;
  std::vector<std::int64_t> weight;  // by node
  std::vector<std::int64_t> sums;    // [n_nodes][2][n_classes]

  const std::int64_t* residuals(std::size_t node) const {
    return sums.data() + node * 2 * n_classes;
  }
  const std::int64_t* hessians(std::size_t node) const { return residuals(node) + n_classes; }
};

/// The weights of the rows in each leaf.
std::vector<std::int64_t> weights_of(const TreeRows& rows, std::span<const LeafRows> leaves) {
  std::vector<std::int64_t> weights(leaves.size(), 0);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (const std::uint32_t row : leaves[leaf]) weights[leaf] += rows.weight[row];
  }
  rows.labels.communicator().allreduce_sum(weights);
  return weights;
}

void add_node(NodeSums& sums, std::size_t from, std::size_t to) {
  const std::size_t n = 2 * sums.n_classes;
  sums.weight[to] += sums.weight[from];
  for (std::size_t i = 0; i < n; ++i) sums.sums[to * n + i] += sums.sums[from * n + i];
}

NodeSums sums_of_nodes(const TreeRows& rows, const std::vector<TreeNode>& nodes,
                       const RowSets& sets, int n_threads) {
  std::vector<LeafRows> leaves;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_leaf()) leaves.push_back(sets.in_node(i));
  }
  const std::vector<std::int64_t> of_leaves = leaf_sums(rows, leaves, n_threads);
  const std::vector<std::int64_t> weights = weights_of(rows, leaves);
  const auto n_classes = static_cast<std::size_t>(rows.labels.n_classes);
  NodeSums sums{.n_classes = n_classes,
                .weight = std::vector<std::int64_t>(nodes.size(), 0),
                .sums = std::vector<std::int64_t>(nodes.size() * 2 * n_classes, 0)};
  auto from = of_leaves.begin();
  auto weight = weights.begin();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].is_leaf()) continue;
    sums.weight[i] = *weight++;
    std::copy_n(from, 2 * n_classes,
                sums.sums.begin() + static_cast<std::ptrdiff_t>(i * 2 * n_classes));
    from += static_cast<std::ptrdiff_t>(2 * n_classes);
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {  // children follow their parent
    if (nodes[i].is_leaf()) continue;
    const auto left = static_cast<std::size_t>(nodes[i].left);
    add_node(sums, left, i);
    add_node(sums, left + 1, i);
  }
  return sums;
}

/// The sums of one side of a split for one class.
struct Side {
  double residual;
  double weight;  // with the L2 term
};

double class_gain(const Side& left, const Side& right) {
  const double both = left.weight * right.weight;
  if (!(both > 0.0)) return 0.0;
  const double from_left = left.residual * right.weight;
  const double from_right = right.residual * left.weight;
  const double e = from_left - from_right;
  if (std::abs(e) <= kRounding * (std::abs(from_left) + std::abs(from_right))) return 0.0;
  return (e * e) / both;
}

/// The gain of a split for each class.
void gains_of_split(const IterationContext& context, const NodeSums& sums, std::size_t left,
                    std::span<double> gains) {
  const bool has_hessian = context.params.split.hessian_split;
  const double l2 = has_hessian ? context.rules.l2 : 0.0;
  const double unit = gain_unit(context);
  const auto side = [&](std::size_t node, std::size_t k) {
    const std::int64_t weight = has_hessian ? sums.hessians(node)[k] : sums.weight[node];
    return Side{.residual = static_cast<double>(sums.residuals(node)[k]),
                .weight = static_cast<double>(weight) + l2};
  };
  for (std::size_t k = 0; k < gains.size(); ++k) {
    const std::int64_t weight = has_hessian ? sums.hessians(left)[k] + sums.hessians(left + 1)[k]
                                            : sums.weight[left] + sums.weight[left + 1];
    const double node_weight = static_cast<double>(weight) + 2.0 * l2;
    const double score = class_gain(side(left, k), side(left + 1, k));
    gains[k] = score > 0.0 ? score / node_weight * unit : 0.0;
  }
}

/// Sets the gains of all splits, and adds them up by feature.
void set_gains(const IterationContext& context, const NodeSums& sums, Tree& tree) {
  std::map<int, std::vector<double>> by_feature;
  std::vector<double> gains(sums.n_classes);
  for (TreeNode& node : tree.nodes) {
    node.gain = 0.0;
    if (node.is_leaf()) continue;
    gains_of_split(context, sums, static_cast<std::size_t>(node.left), gains);
    std::vector<double>& total = by_feature[node.feature];
    total.resize(gains.size(), 0.0);
    for (std::size_t k = 0; k < gains.size(); ++k) {
      node.gain += gains[k];
      total[k] += gains[k];
    }
  }
  for (const auto& [feature, total] : by_feature) {
    tree.multi_output.feature.push_back(feature);
    tree.multi_output.gain.insert(tree.multi_output.gain.end(), total.begin(), total.end());
  }
}

}  // namespace

GrownTree finish_multi_output_tree(const IterationContext& context, std::vector<TreeNode> nodes,
                                   const RowSets& rows, int n_threads) {
  GrownTree grown{.tree = {.tree_class = kAllClasses, .base = {}, .nodes = std::move(nodes)},
                  .node_of_row = LargeVector<std::uint16_t>(context.rows.labels.n_rows(),
                                                            storage_of(context.rows.scores.raw))};
  Tree& tree = grown.tree;
  const NodeSums sums = sums_of_nodes(context.rows, tree.nodes, rows, n_threads);
  set_gains(context, sums, tree);
  write_leaves(rows, tree.nodes, grown.node_of_row);
  const std::vector<std::uint16_t> numbers = leaf_numbers(tree.nodes);
  for (std::uint16_t& node : grown.node_of_row) node = numbers[node];
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    tree.nodes[i].weight = static_cast<double>(sums.weight[i]) * context.rows.labels.unit;
    if (!tree.nodes[i].is_leaf()) continue;
    for (std::size_t k = 0; k < sums.n_classes; ++k) {
      const double value = leaf_value(context, sums.residuals(i)[k], sums.hessians(i)[k]);
      tree.multi_output.of_leaf.push_back(static_cast<float>(value));
    }
  }
  return grown;
}

std::vector<std::vector<double>> multi_output_values(const Tree& tree, int n_halvings) {
  const double factor = std::ldexp(1.0, -n_halvings);
  const std::size_t n_leaves = (tree.nodes.size() + 1) / 2;
  const std::size_t n_classes = tree.multi_output.of_leaf.size() / n_leaves;
  std::vector<std::vector<double>> values(n_classes, std::vector<double>(n_leaves));
  for (std::size_t i = 0; i < tree.multi_output.of_leaf.size(); ++i) {
    const double value = on_leaf_grid(static_cast<double>(tree.multi_output.of_leaf[i]) * factor);
    values[i % n_classes][i / n_classes] = static_cast<double>(static_cast<float>(value));
  }
  return values;
}

std::vector<TreeMove> multi_output_moves(const std::vector<std::vector<double>>& values,
                                         std::span<const std::uint16_t> leaf_of_row) {
  std::vector<TreeMove> moves;
  moves.reserve(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    moves.push_back({.tree_class = static_cast<int>(k),
                     .base = {},
                     .node_of_row = leaf_of_row,
                     .value = values[k],
                     .base_value = {}});
  }
  return moves;
}

}  // namespace abcgbm
