// Prediction: all trees of an ensemble over blocks of rows.
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

/// Trees [first, last) are added to row-major scores [n_rows][n_classes]. Values are multiples of
/// 2^-32, so the sums are exact and depend on neither threads nor blocks.
void add_trees(const Predictor& predictor, const double* rows, std::size_t n_rows, double* raw,
               std::size_t first, std::size_t last, int n_threads);

}  // namespace abcgbm
