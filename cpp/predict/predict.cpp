#include "predict/predict.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/parallel.hpp"
#include "predict/traversal.hpp"

namespace abcgbm {
namespace {

static_assert(kRowsAtOnce % kTraversalsAtOnce == 0);
constexpr std::size_t kFewRows = 3;              // up to here traversal is faster than coding
constexpr std::size_t kColumnsPerTraversal = 4;  // columns are coded in the time of one traversal
constexpr std::size_t kTreesPerPoll = 256;
constexpr std::size_t kTraversalsPerThread = 1 << 17;  // below this, waking a thread does not pay

/// The arguments of a call: trees, and rows with their scores, row-major.
struct Call {
  const Forest& forest;
  const double* rows;
  std::size_t n_rows;
  double* raw;
  std::size_t first;
  std::size_t last;
};

// --------------------------------------------------------------------------------------- traversal

/// Adds the values of a multi-output tree's leaf to the scores of a row.
void add_leaf(const PackedTrees& trees, double leaf, double* raw) {
  const float* values = trees.values_of_leaf(leaf);
  for (std::size_t k = 0; k < trees.n_classes; ++k) raw[k] += static_cast<double>(values[k]);
}

/// Sends one row down trees [first, last), at most kTraversalsAtOnce.
void traverse_trees(const PackedTrees& trees, std::size_t first, std::size_t last,
                    const double* row, double* raw) {
  Traversals traversals;
  for (std::size_t j = 0; j < kTraversalsAtOnce; ++j) {
    traversals.at[j] = trees.root[std::min(first + j, last - 1)];
    traversals.row[j] = row;
  }
  finish(trees, traversals);
  for (std::size_t tree = first; tree < last; ++tree) {
    const double value = trees.nodes[traversals.at[tree - first]].threshold;
    if (trees.is_multi_output(tree)) {
      add_leaf(trees, value, raw);
      continue;
    }
    raw[trees.tree_class[tree]] += value;
    if (trees.tree_base[tree].exists()) {
      raw[trees.tree_base[tree].number()] -= value * trees.tree_base_scale[tree];
    }
  }
}

/// Sends all rows down one tree.
void traverse_rows(const PackedTrees& trees, std::size_t tree, const double* rows,
                   std::size_t n_rows, ChunkValues values) {
  Traversals traversals;
  for (std::size_t first = 0; first < n_rows; first += kTraversalsAtOnce) {
    traversals.at.fill(trees.root[tree]);
    for (std::size_t j = 0; j < kTraversalsAtOnce; ++j) {
      traversals.row[j] = rows + std::min(first + j, n_rows - 1) * trees.n_features;
    }
    finish(trees, traversals);
    for (std::size_t j = 0; j < kTraversalsAtOnce; ++j) {
      values[first + j] = trees.nodes[traversals.at[j]].threshold;
    }
  }
}

void add_by_traversal(const Call& call, std::size_t first_row, std::size_t last_row) {
  const PackedTrees& trees = call.forest.trees;
  for (std::size_t tree = call.first; tree < call.last; tree += kTraversalsAtOnce) {
    if ((tree - call.first) % kTreesPerPoll == 0) check_interrupt();
    const std::size_t last = std::min(tree + kTraversalsAtOnce, call.last);
    for (std::size_t i = first_row; i < last_row; ++i) {
      traverse_trees(trees, tree, last, call.rows + i * trees.n_features,
                     call.raw + i * trees.n_classes);
    }
  }
}

// ------------------------------------------------------------------------------------------ chunks

/// The class-major scores of a chunk, and its codes.
struct Workspace {
  std::vector<double> raw;
  CodeChunk codes;
};

template <class Copy>
void for_each_score(const Call& call, std::size_t first_row, std::size_t n_rows, const Copy& copy) {
  const std::size_t n_classes = call.forest.trees.n_classes;
  for (std::size_t i = 0; i < n_rows; ++i) {
    double* raw = call.raw + (first_row + i) * n_classes;
    for (std::size_t k = 0; k < n_classes; ++k) copy(raw[k], k * kRowsAtOnce + i);
  }
}

void add_values(const PackedTrees& trees, std::size_t tree, std::span<const double> values,
                double* raw) {
  double* to_class = raw + static_cast<std::size_t>(trees.tree_class[tree]) * kRowsAtOnce;
  for (std::size_t i = 0; i < values.size(); ++i) to_class[i] += values[i];
  if (!trees.tree_base[tree].exists()) return;
  double* to_base = raw + static_cast<std::size_t>(trees.tree_base[tree].number()) * kRowsAtOnce;
  const double base_scale = trees.tree_base_scale[tree];
  for (std::size_t i = 0; i < values.size(); ++i) to_base[i] -= values[i] * base_scale;
}

/// Calls add(tree, values) for each of the trees [first, last), with the value, or the leaf number,
/// of each row of a chunk.
template <class Add>
void for_leaves(const Call& call, std::size_t first_row, const Workspace& work, std::size_t first,
                std::size_t last, const Add& add) {
  const auto& [trees, regions] = call.forest;
  const std::size_t n_rows = std::min(kRowsAtOnce, call.n_rows - first_row);
  const double* rows = call.rows + first_row * trees.n_features;
  std::array<double, kRowsAtOnce> values{};
  for (std::size_t tree = first; tree < last; ++tree) {
    if ((tree - call.first) % kTreesPerPoll == 0) check_interrupt();
    if (regions.trees[tree].is_small) {
      leaf_values(regions, regions.trees[tree], work.codes, n_rows, values);
    } else {
      traverse_rows(trees, tree, rows, n_rows, values);
    }
    add(tree, std::span<const double>(values).first(n_rows));
  }
}

/// Adds single-output trees, with the scores in class order.
void add_class_trees(const Call& call, std::size_t first_row, Workspace& work, std::size_t first,
                     std::size_t last) {
  const PackedTrees& trees = call.forest.trees;
  const std::size_t n_rows = std::min(kRowsAtOnce, call.n_rows - first_row);
  work.raw.resize(trees.n_classes * kRowsAtOnce);
  for_each_score(call, first_row, n_rows, [&](double& raw, std::size_t at) { work.raw[at] = raw; });
  for_leaves(call, first_row, work, first, last,
             [&](std::size_t tree, std::span<const double> values) {
               add_values(trees, tree, values, work.raw.data());
             });
  for_each_score(call, first_row, n_rows, [&](double& raw, std::size_t at) { raw = work.raw[at]; });
}

void add_multi_output_trees(const Call& call, std::size_t first_row, const Workspace& work,
                            std::size_t first, std::size_t last) {
  const PackedTrees& trees = call.forest.trees;
  for_leaves(call, first_row, work, first, last, [&](std::size_t, std::span<const double> leaves) {
    double* raw = call.raw + first_row * trees.n_classes;
    for (const double leaf : leaves) {
      add_leaf(trees, leaf, raw);
      raw += trees.n_classes;
    }
  });
}

/// Adds runs of trees of the same kind.
void add_chunk(const Call& call, std::size_t first_row, Workspace& work) {
  const auto& [trees, regions] = call.forest;
  const std::size_t n_rows = std::min(kRowsAtOnce, call.n_rows - first_row);
  code_rows(regions, call.rows + first_row * trees.n_features, n_rows, trees.n_features,
            work.codes);
  for (std::size_t first = call.first, last = first; first < call.last; first = last) {
    const bool is_multi_output = trees.is_multi_output(first);
    while (last < call.last && trees.is_multi_output(last) == is_multi_output) ++last;
    if (is_multi_output) {
      add_multi_output_trees(call, first_row, work, first, last);
    } else {
      add_class_trees(call, first_row, work, first, last);
    }
  }
}

bool is_worth_coding(const Call& call) {
  const std::size_t n_traversals = call.last - call.first;
  return call.n_rows > kFewRows &&
         call.forest.regions.n_columns() <= kColumnsPerTraversal * n_traversals;
}

int useful_threads(const Call& call, int n_threads) {
  const std::size_t useful = call.n_rows * (call.last - call.first) / kTraversalsPerThread + 1;
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(n_threads)));
}

}  // namespace

void add_trees(const Forest& forest, const RowsToScore& rows, std::size_t first, std::size_t last,
               int n_threads) {
  const double nothing = 0.0;  // next_node reads a value at leaves, too
  const Call call{.forest = forest,
                  .rows = forest.trees.n_features > 0 ? rows.values : &nothing,
                  .n_rows = rows.n_rows,
                  .raw = rows.raw,
                  .first = first,
                  .last = last};
  const bool is_coded = is_worth_coding(call);
  const int n_useful = useful_threads(call, n_threads);
  std::vector<Workspace> work(static_cast<std::size_t>(n_useful));
  const std::size_t n_chunks = (rows.n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
  parallel_for(n_chunks, n_useful, [&](std::size_t chunk, std::size_t slot) {
    const std::size_t first_row = chunk * kRowsAtOnce;
    if (is_coded) {
      add_chunk(call, first_row, work[slot]);
    } else {
      add_by_traversal(call, first_row, std::min(first_row + kRowsAtOnce, rows.n_rows));
    }
  });
}

}  // namespace abcgbm
