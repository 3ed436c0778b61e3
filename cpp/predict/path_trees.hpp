// Trees prepared for Shapley values.
//
// For a set S of known features, the value of a leaf is v * prod_j (j in S ? o_j : z_j) over the
// features j on its path: o_j is 1 if the row meets all conditions on j there, else 0; z_j is the
// product of the weight fractions that these conditions let through. The Shapley value of feature i
// is
//
//     v (o_i - z_i) * integral over t in [0, 1] of prod_{j != i} (t o_j + (1 - t) z_j).
//
// The integrand is a polynomial, so quadrature with half as many points as there are features on
// the path is exact. All factors are positive, so no precision is lost however deep the tree is. At
// a point, a factor depends on the row through o_j only, so its two values are precomputed for all
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

/// The factors of the edge to a node at one quadrature point. The previous conditions on its
/// feature are those of its `upper` edge. A row may meet those and this one, or those but not this
/// one. If it does not meet those, the product is multiplied by the weight fraction only.
struct EdgePoint {
  double met = 0.0;   // factor of the product if the row meets all conditions
  double left = 0.0;  // factor if the row fails this one first
  double gain = 0.0;  // part of the product below for the feature, if the row meets all conditions
  double loss = 0.0;  // the same if the row fails this one first
};

struct PathSplit {
  std::uint32_t node = 0;  // among the packed trees
  std::uint32_t at = 0;    // relative to the root
  std::uint32_t left = 0;  // left child, relative to the root; the right one is the next
  std::uint32_t upper = 0;
  std::uint32_t slot = 0;  // index of its feature among those of the tree
};

/// A leaf and a feature of its path, identified by the last edge on that feature.
struct PathPair {
  std::uint32_t leaf = 0;   // relative to the root
  std::uint32_t value = 0;  // index of the first of its values
  std::uint32_t edge = 0;
};

/// A prepared tree. The edge to a node has the node's number; every row meets the root's.
struct PathTree {
  std::size_t number = 0;
  std::size_t n_nodes = 0;
  std::size_t n_points = 0;
  std::vector<std::uint32_t> slot_feature{};
  std::vector<PathSplit> splits{};    // parents first
  std::vector<double> fraction{};     // by node
  AlignedVector<EdgePoint> points{};  // [n_nodes][n_points]
  std::vector<std::uint32_t> leaves{};
  std::vector<double>
      leaf_value{};  // of each leaf; in a multi-output tree [n_leaves][n_padded_classes]

  // Multi-output trees only: the pairs by feature. Gains and losses of an edge are then those of
  // all conditions so far, instead of the difference to its upper edge.
  std::vector<PathPair> pairs{};
  std::vector<std::uint32_t> first_pair{};  // by slot, and the end
};

inline constexpr std::size_t kClassesAtOnce =
    4;  // leaves of multi-output trees are padded to a multiple

/// `fraction`: by node of all packed trees, its fraction of the parent's weight.
PathTree make_path_tree(const PackedTrees& trees, std::span<const double> fraction, std::size_t t,
                        QuadratureRules& rules);

}  // namespace abcgbm
