// Shapley values: the contribution of each feature to the score of each class.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "predict/packed_trees.hpp"

namespace abcgbm {

/// Rows and their Shapley values, row-major: [n_rows][n_features], [n_rows][n_features][n_classes].
struct RowsToExplain {
  const double* values;
  std::size_t n_rows;
  double* shapley;
};

/// Trees [first, last), and for every node of all trees its fraction of the parent's weight.
struct WeightedTrees {
  const PackedTrees& trees;
  std::span<const double> fraction;
  std::size_t first;
  std::size_t last;
};

/// Adds the Shapley values of the trees. The bits do not depend on the number of threads or rows,
/// or on the machine.
void add_shapley_values(const WeightedTrees& weighted, const RowsToExplain& rows, int n_threads);

/// The mean score of each class over the training weights of the nodes.
std::vector<double> mean_scores(const WeightedTrees& weighted);

}  // namespace abcgbm
