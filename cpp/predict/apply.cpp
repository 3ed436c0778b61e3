#include "predict/apply.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "predict/traversal.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsPerTask = 64;
constexpr std::size_t kTreesPerPoll = 1024;

void find_leaves_of_row(const PackedTrees& trees, const double* row, std::size_t n_trees,
                        std::int32_t* leaves) {
  Traversals traversals;
  traversals.row.fill(row);
  for (std::size_t first = 0; first < n_trees; first += kTraversalsAtOnce) {
    if (first % kTreesPerPoll == 0) check_interrupt();
    const std::size_t n = std::min(kTraversalsAtOnce, n_trees - first);
    for (std::size_t j = 0; j < kTraversalsAtOnce; ++j) {
      traversals.at[j] = trees.root[first + std::min(j, n - 1)];
    }
    finish(trees, traversals);
    for (std::size_t j = 0; j < n; ++j) {
      leaves[first + j] = static_cast<std::int32_t>(traversals.at[j] - trees.root[first + j]);
    }
  }
}

}  // namespace

void find_leaves(const PackedTrees& trees, const RowsToApply& rows, std::size_t n_trees,
                 int n_threads) {
  const double nothing = 0.0;  // next_node reads a value at leaves, too
  const double* values = trees.n_features > 0 ? rows.values : &nothing;
  const std::size_t n_tasks = (rows.n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    const std::size_t last = std::min((task + 1) * kRowsPerTask, rows.n_rows);
    for (std::size_t i = task * kRowsPerTask; i < last; ++i) {
      find_leaves_of_row(trees, values + i * trees.n_features, n_trees, rows.leaves + i * n_trees);
    }
  });
}

}  // namespace abcgbm
