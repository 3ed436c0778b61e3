// Prediction: the trees of an ensemble over chunks of rows.
#pragma once

#include <cstddef>

#include "predict/packed_trees.hpp"
#include "predict/regions.hpp"

namespace abcgbm {

/// Trees in two forms: few rows, and large trees, are traversed; chunks of rows use regions.
struct Forest {
  PackedTrees trees;
  RegionTrees regions;
};

/// Rows and their scores, row-major: [n_rows][n_features], [n_rows][n_classes].
struct RowsToScore {
  const double* values;
  std::size_t n_rows;
  double* raw;
};

/// Adds trees [first, last) to the scores. Values are multiples of 2^-32, so the sums are exact and
/// do not depend on threads or chunks.
void add_trees(const Forest& forest, const RowsToScore& rows, std::size_t first, std::size_t last,
               int n_threads);

}  // namespace abcgbm
