// Trees prepared for Shapley values.
//
// What a leaf is worth to a set S of features is v * prod_j (j in S ? o_j : z_j), over the features
// j on its path: o_j is 1 if the row meets all conditions on j there, else 0; z_j is the product of
// the shares of weight that these conditions let through. The Shapley value of feature i is then
//
//     v (o_i - z_i) * integral over t in [0, 1] of prod_{j != i} (t o_j + (1 - t) z_j),
//
// and the integrand a polynomial, so that quadrature at half as many points as there are features
// on the path is exact. All factors are positive: no digits are lost, however deep the tree. At a
// point, a factor depends on the row by o_j alone, so all that it can be is computed once for all
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned.hpp"
#include "predict/packed_trees.hpp"
#include "predict/quadrature.hpp"

namespace abcgbm {

/// What the edge to a node does at one quadrature point. The conditions on its feature above it are
/// those of its `upper` edge. A row may meet those and this one, or those but not this one; where
/// it does not meet those, the product is multiplied by the share alone and nothing more is lost.
struct EdgePoint {
  double met = 0.0;   // the product above is multiplied by this if the row meets all
  double left = 0.0;  // or by this if it leaves here
  double gain = 0.0;  // the feature gets so much of the product below if the row meets all
  double loss = 0.0;  // or so much if it leaves here
};

struct PathSplit {
  std::uint32_t node = 0;  // of the packed trees
  std::uint32_t at = 0;    // the same, counted from the root
  std::uint32_t left = 0;  // its left child, counted from the root; the right one is the next
  std::uint32_t upper = 0;
  std::uint32_t slot = 0;  // place of its feature among those of the tree
};

/// A leaf and a feature of its path, by the last edge on that feature.
struct PathPair {
  std::uint32_t leaf = 0;   // counted from the root
  std::uint32_t value = 0;  // first of its values
  std::uint32_t edge = 0;
};

/// A tree. The edge to a node has the node's number; the root's is one that every row meets.
struct PathTree {
  std::size_t number = 0;
  std::size_t n_nodes = 0;
  std::size_t n_points = 0;
  std::vector<std::uint32_t> slot_feature{};
  std::vector<PathSplit> splits{};    // parents first
  std::vector<double> fraction{};     // by node
  AlignedVector<EdgePoint> points{};  // [n_nodes][n_points]
  std::vector<std::uint32_t> leaves{};
  std::vector<double> leaf_value{};  // of each leaf; of a shared tree [n_leaves][n_padded_classes]

  // Of shared trees alone: the pairs of each feature. There the gains and losses of an edge are
  // those of all conditions so far, and not what it adds to those of its upper edge.
  std::vector<PathPair> pairs{};
  std::vector<std::uint32_t> first_pair{};  // by slot, and the end
};

inline constexpr std::size_t kClassesAtOnce = 4;  // leaves of shared trees are padded to these

/// `share`: by node of all packed trees, the part of its parent's weight.
PathTree make_path_tree(const PackedTrees& trees, std::span<const double> fraction, std::size_t t,
                        QuadratureRules& rules);

}  // namespace abcgbm
