// Prediction: all trees of an ensemble over chunks of rows.
#pragma once

#include <cstddef>

#include "predict/forest.hpp"
#include "predict/regions.hpp"

namespace abcgbm {

/// A forest in both of its forms: a few rows are walked, and so is a large tree.
struct Predictor {
  Forest forest;
  RegionForest regions;
};

/// Trees [first, last).
struct TreeRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The trees are added to row-major scores [n_rows][n_classes]. Values are multiples of
/// 2^-32, so the sums are exact and depend on neither threads nor chunks.
void add_trees(const Predictor& predictor, TreeRange trees, const double* rows, std::size_t n_rows,
               double* raw, int n_threads);

}  // namespace abcgbm
