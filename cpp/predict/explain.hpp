// Shapley values of rows: what each feature adds to the score of each class.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "predict/packed_trees.hpp"

namespace abcgbm {

/// Rows and what is to be added to, row-major: [n_rows][n_features],
/// [n_rows][n_features][n_classes].
struct RowsToExplain {
  const double* values;
  std::size_t n_rows;
  double* shapley;
};

/// Some trees, [first, last), and for each node of all trees its part of its parent's weight.
struct WeightedTrees {
  const PackedTrees& trees;
  std::span<const double> fraction;
  std::size_t first;
  std::size_t last;
};

/// Adds the Shapley values of the trees. Each row's are the same bits for any number of threads or
/// rows, and on every machine.
void add_shapley_values(const WeightedTrees& weighted, const RowsToExplain& rows, int n_threads);

/// What the trees add to the score of each class in the mean, each leaf weighing what its nodes do.
std::vector<double> mean_scores(const WeightedTrees& weighted);

}  // namespace abcgbm
