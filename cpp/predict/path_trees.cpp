#include "predict/path_trees.hpp"

#include <algorithm>

namespace abcgbm {
namespace {

/// Per node: its parent, and the state of the edge to it.
struct PathBuilder {
  std::span<const PackedNode> nodes;
  std::vector<std::uint32_t> parent;
  std::vector<std::uint32_t> upper;
  std::vector<std::uint32_t> slot;        // of the edge's feature
  std::vector<std::uint32_t> n_features;  // on the path to the node
  std::vector<double> through;  // product of the fractions of the conditions on its feature
};

/// The last edge above a node on the given feature; the root's if there is none.
std::uint32_t last_edge(const PathBuilder& builder, std::uint32_t at, std::int32_t feature) {
  while (at != 0 && builder.nodes[builder.parent[at]].feature != feature) at = builder.parent[at];
  return at;
}

std::uint32_t slot_of(std::vector<std::uint32_t>& slots, std::int32_t feature) {
  const auto number = static_cast<std::uint32_t>(feature);
  const auto found = std::ranges::find(slots, number);
  const auto slot = static_cast<std::uint32_t>(found - slots.begin());
  if (found == slots.end()) slots.push_back(number);
  return slot;
}

void add_split(PathTree& tree, PathBuilder& builder, std::uint32_t root, std::uint32_t at) {
  const PackedNode& node = builder.nodes[at];
  const PathSplit split{.node = root + at,
                        .at = at,
                        .left = node.left() - root,
                        .upper = last_edge(builder, at, node.feature),
                        .slot = slot_of(tree.slot_feature, node.feature)};
  for (const std::uint32_t child : {split.left, split.left + 1}) {
    builder.parent[child] = at;
    builder.upper[child] = split.upper;
    builder.slot[child] = split.slot;
    builder.n_features[child] = builder.n_features[at] + (split.upper == 0 ? 1u : 0u);
    builder.through[child] = builder.through[split.upper] * tree.fraction[child];
  }
  tree.splits.push_back(split);
}

/// Processes the nodes in order: parents first.
PathBuilder add_splits(PathTree& tree, std::span<const PackedNode> nodes, std::uint32_t root) {
  PathBuilder builder{.nodes = nodes,
                      .parent = std::vector<std::uint32_t>(nodes.size(), 0),
                      .upper = std::vector<std::uint32_t>(nodes.size(), 0),
                      .slot = std::vector<std::uint32_t>(nodes.size(), 0),
                      .n_features = std::vector<std::uint32_t>(nodes.size(), 0),
                      .through = std::vector<double>(nodes.size(), 1.0)};
  for (std::uint32_t at = 0; at < nodes.size(); ++at) {
    if (nodes[at].is_leaf()) {
      tree.leaves.push_back(at);
    } else {
      add_split(tree, builder, root, at);
    }
  }
  return builder;
}

/// For multi-output trees the parts of a feature are computed by leaf instead of by edge.
void add_points(PathTree& tree, const PathBuilder& builder, QuadratureRules& rules,
                bool is_multi_output) {
  const std::uint32_t max_features = std::ranges::max(builder.n_features);
  const QuadratureRule& rule = rules.of_size(std::max(1u, (max_features + 1) / 2));
  tree.n_points = rule.size();
  tree.points.resize(tree.n_nodes * rule.size());
  std::vector<double> per_factor(tree.n_nodes * rule.size());  // upper edges come first
  for (std::size_t edge = 0; edge < tree.n_nodes; ++edge) {
    const double z = builder.through[edge];
    const double upper_z = builder.through[builder.upper[edge]];
    const double* per_upper = per_factor.data() + builder.upper[edge] * rule.size();
    for (std::size_t q = 0; q < rule.size(); ++q) {
      const auto& [t, rest, weight, weight_per_rest] = rule[q];
      const double factor = t + rest * z;  // if the row meets all conditions
      const double per = per_factor[edge * rule.size() + q] = 1.0 / factor;
      const double upper_gain = is_multi_output ? 0.0 : weight * (1.0 - upper_z) * per_upper[q];
      tree.points[edge * rule.size() + q] = {.met = factor * per_upper[q],
                                             .left = rest * z * per_upper[q],
                                             .gain = weight * (1.0 - z) * per - upper_gain,
                                             .loss = -weight_per_rest - upper_gain};
    }
  }
}

void add_class_values(PathTree& tree, std::span<const PackedNode> nodes) {
  for (const std::uint32_t leaf : tree.leaves) tree.leaf_value.push_back(nodes[leaf].threshold);
}

void add_multi_output_values(PathTree& tree, const PackedTrees& trees,
                             std::span<const PackedNode> nodes) {
  const std::size_t n_padded =
      (trees.n_classes + kClassesAtOnce - 1) / kClassesAtOnce * kClassesAtOnce;
  for (const std::uint32_t leaf : tree.leaves) {
    const float* values = trees.values_of_leaf(nodes[leaf].threshold);
    tree.leaf_value.insert(tree.leaf_value.end(), values, values + trees.n_classes);
    tree.leaf_value.resize(tree.leaf_value.size() + n_padded - trees.n_classes, 0.0);
  }
}

/// Collects the pairs of each slot. On the way up from a leaf the last edge of each feature comes
/// first.
void add_pairs(PathTree& tree, const PathBuilder& builder) {
  const auto n_values = static_cast<std::uint32_t>(tree.leaf_value.size() / tree.leaves.size());
  std::vector<std::vector<PathPair>> pairs(tree.slot_feature.size());
  for (std::uint32_t i = 0; i < tree.leaves.size(); ++i) {
    const std::uint32_t leaf = tree.leaves[i];
    for (std::uint32_t edge = leaf; edge != 0; edge = builder.parent[edge]) {
      std::vector<PathPair>& of_slot = pairs[builder.slot[edge]];
      if (!of_slot.empty() && of_slot.back().leaf == leaf) continue;
      of_slot.push_back({.leaf = leaf, .value = i * n_values, .edge = edge});
    }
  }
  for (const std::vector<PathPair>& of_slot : pairs) {
    tree.first_pair.push_back(static_cast<std::uint32_t>(tree.pairs.size()));
    tree.pairs.insert(tree.pairs.end(), of_slot.begin(), of_slot.end());
  }
  tree.first_pair.push_back(static_cast<std::uint32_t>(tree.pairs.size()));
}

}  // namespace

PathTree make_path_tree(const PackedTrees& trees, std::span<const double> fraction, std::size_t t,
                        QuadratureRules& rules) {
  const std::span<const PackedNode> nodes = trees.tree(t);
  const std::uint32_t root = trees.root[t];
  PathTree tree{.number = t, .n_nodes = nodes.size()};
  tree.fraction.assign(fraction.begin() + root, fraction.begin() + trees.root[t + 1]);
  const PathBuilder builder = add_splits(tree, nodes, root);
  add_points(tree, builder, rules, trees.is_multi_output(t));
  if (trees.is_multi_output(t)) {
    add_multi_output_values(tree, trees, nodes);
    add_pairs(tree, builder);
  } else {
    add_class_values(tree, nodes);
  }
  return tree;
}

}  // namespace abcgbm
