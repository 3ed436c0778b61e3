// The leaf of each row in each tree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "predict/packed_trees.hpp"

namespace abcgbm {

/// Writes the leaves in trees [0, n_trees), numbered from the root of each tree: row-major,
/// [n_rows][n_trees]. `values` are [n_rows][n_features].
struct RowsToApply {
  const double* values;
  std::size_t n_rows;
  std::int32_t* leaves;
};
void find_leaves(const PackedTrees& trees, const RowsToApply& rows, std::size_t n_trees,
                 int n_threads);

}  // namespace abcgbm
