#include "predict/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kWalks = 8;           // that go on together; divides kRowsAtOnce
constexpr std::size_t kFewRows = 3;         // up to here walks are faster than codes
constexpr std::size_t kColumnsPerWalk = 4;  // as many are coded in the time of a walk
constexpr std::size_t kTreesPerPoll = 256;
constexpr std::size_t kWalksPerThread = 1 << 17;  // below this a thread is not worth waking

/// What a call is about: some trees, and rows with their scores, row-major.
struct Call {
  const Predictor& predictor;
  const double* rows;
  std::size_t n_rows;
  double* raw;
  std::size_t first;
  std::size_t last;
};

// ------------------------------------------------------------------------------------------- walks

/// Whether a category goes left; one beyond the set's words goes where missing values go.
bool is_in_set(const Forest& forest, const PackedNode& node, double x) {
  const std::span<const std::uint64_t> set = forest.set_of(node);
  if (!(x >= 0.0 && x < 64.0 * static_cast<double>(set.size()))) return node.missing_left();
  const auto code = static_cast<std::uint32_t>(x);
  return ((set[code / 64] >> (code % 64)) & 1u) != 0;
}

/// Some walks that go on together: while one waits for a node, others find theirs.
struct Walks {
  std::array<std::uint32_t, kWalks> at;
  std::array<const double*, kWalks> row;
};

/// One step of a walk; one that is at its leaf stays there.
std::uint32_t next_node(const Forest& forest, std::uint32_t at, const double* row) {
  const PackedNode& node = forest.nodes[at];
  const double x = row[std::max(node.feature, 0)];
  // Without a branch: which way it goes is a guess.
  const std::uint32_t is_missing_left = std::isnan(x) ? node.left_and_flags & kMissingLeft : 0u;
  std::uint32_t is_left = (x <= node.threshold ? 1u : 0u) | is_missing_left;
  if (node.is_set()) is_left = is_in_set(forest, node, x) ? 1u : 0u;
  return node.is_leaf() ? at : node.left() + 1u - is_left;
}

/// Goes on until all are at a leaf.
void finish(const Forest& forest, Walks& walks) {
  for (std::uint32_t moved = 1; moved != 0;) {
    moved = 0;
    for (std::size_t j = 0; j < kWalks; ++j) {
      const std::uint32_t next = next_node(forest, walks.at[j], walks.row[j]);
      moved |= next ^ walks.at[j];
      walks.at[j] = next;
    }
  }
}

/// A row down trees [first, last), at most kWalks of them.
void walk_trees(const Forest& forest, std::size_t first, std::size_t last, const double* row,
                double* raw) {
  Walks walks;
  for (std::size_t j = 0; j < kWalks; ++j) {
    walks.at[j] = forest.root[std::min(first + j, last - 1)];
    walks.row[j] = row;
  }
  finish(forest, walks);
  for (std::size_t tree = first; tree < last; ++tree) {
    const double value = forest.nodes[walks.at[tree - first]].threshold;
    raw[forest.tree_class[tree]] += value;
    if (forest.tree_base[tree] >= 0) {
      raw[forest.tree_base[tree]] -= value * forest.tree_base_scale[tree];
    }
  }
}

/// All rows down one tree.
void walk_rows(const Forest& forest, std::size_t tree, const double* rows, std::size_t n_rows,
               ChunkValues values) {
  Walks walks;
  for (std::size_t first = 0; first < n_rows; first += kWalks) {
    walks.at.fill(forest.root[tree]);
    for (std::size_t j = 0; j < kWalks; ++j) {
      walks.row[j] = rows + std::min(first + j, n_rows - 1) * forest.n_features;
    }
    finish(forest, walks);
    for (std::size_t j = 0; j < kWalks; ++j) {
      values[first + j] = forest.nodes[walks.at[j]].threshold;
    }
  }
}

void add_walks(const Call& call, std::size_t first_row, std::size_t last_row) {
  const Forest& forest = call.predictor.forest;
  for (std::size_t tree = call.first; tree < call.last; tree += kWalks) {
    if ((tree - call.first) % kTreesPerPoll == 0) check_interrupt();
    const std::size_t last = std::min(tree + kWalks, call.last);
    for (std::size_t i = first_row; i < last_row; ++i) {
      walk_trees(forest, tree, last, call.rows + i * forest.n_features,
                 call.raw + i * forest.n_classes);
    }
  }
}

// ------------------------------------------------------------------------------------------ chunks

/// The scores of a chunk of rows, class after class, and its codes.
struct Workspace {
  std::vector<double> raw;
  CodeChunk codes;
};

template <class Copy>
void for_each_score(const Call& call, std::size_t first_row, std::size_t n_rows, const Copy& copy) {
  const std::size_t n_classes = call.predictor.forest.n_classes;
  for (std::size_t i = 0; i < n_rows; ++i) {
    double* raw = call.raw + (first_row + i) * n_classes;
    for (std::size_t k = 0; k < n_classes; ++k) copy(raw[k], k * kRowsAtOnce + i);
  }
}

void add_values(const Forest& forest, std::size_t tree, std::span<const double> values,
                double* raw) {
  double* to_class = raw + static_cast<std::size_t>(forest.tree_class[tree]) * kRowsAtOnce;
  for (std::size_t i = 0; i < values.size(); ++i) to_class[i] += values[i];
  if (forest.tree_base[tree] < 0) return;
  double* to_base = raw + static_cast<std::size_t>(forest.tree_base[tree]) * kRowsAtOnce;
  const double base_scale = forest.tree_base_scale[tree];
  for (std::size_t i = 0; i < values.size(); ++i) to_base[i] -= values[i] * base_scale;
}

void add_chunk(const Call& call, std::size_t first_row, Workspace& work) {
  const auto& [forest, regions] = call.predictor;
  const std::size_t n_rows = std::min(kRowsAtOnce, call.n_rows - first_row);
  const double* rows = call.rows + first_row * forest.n_features;
  work.raw.resize(forest.n_classes * kRowsAtOnce);
  for_each_score(call, first_row, n_rows, [&](double& raw, std::size_t at) { work.raw[at] = raw; });
  code_rows(regions, rows, n_rows, forest.n_features, work.codes);
  std::array<double, kRowsAtOnce> values{};
  for (std::size_t tree = call.first; tree < call.last; ++tree) {
    if ((tree - call.first) % kTreesPerPoll == 0) check_interrupt();
    if (regions.trees[tree].is_small) {
      leaf_values(regions, regions.trees[tree], work.codes, n_rows, values);
    } else {
      walk_rows(forest, tree, rows, n_rows, values);
    }
    add_values(forest, tree, std::span(values).first(n_rows), work.raw.data());
  }
  for_each_score(call, first_row, n_rows, [&](double& raw, std::size_t at) { raw = work.raw[at]; });
}

bool is_worth_coding(const Call& call) {
  const std::size_t n_walks = call.last - call.first;
  return call.n_rows > kFewRows && call.predictor.regions.n_columns() <= kColumnsPerWalk * n_walks;
}

int useful_threads(const Call& call, int n_threads) {
  const std::size_t useful = call.n_rows * (call.last - call.first) / kWalksPerThread + 1;
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(n_threads)));
}

}  // namespace

void add_trees(const Predictor& predictor, TreeRange trees, const double* rows, std::size_t n_rows,
               double* raw, int n_threads) {
  const double nothing = 0.0;  // a leaf looks at a value too
  const Call call{.predictor = predictor,
                  .rows = predictor.forest.n_features > 0 ? rows : &nothing,
                  .n_rows = n_rows,
                  .raw = raw,
                  .first = trees.first,
                  .last = trees.last};
  const bool is_coded = is_worth_coding(call);
  const int n_useful = useful_threads(call, n_threads);
  std::vector<Workspace> work(static_cast<std::size_t>(n_useful));
  const std::size_t n_chunks = (n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
  parallel_for(n_chunks, n_useful, [&](std::size_t chunk, std::size_t slot) {
    const std::size_t first_row = chunk * kRowsAtOnce;
    if (is_coded) {
      add_chunk(call, first_row, work[slot]);
    } else {
      add_walks(call, first_row, std::min(first_row + kRowsAtOnce, n_rows));
    }
  });
}

}  // namespace abcgbm
