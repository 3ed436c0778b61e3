#include "predict/explain.hpp"

#include <algorithm>
#include <array>

#include "base/aligned.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "predict/path_trees.hpp"
#include "predict/traversal.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kChunkSums = 1 << 15;        // of a chunk of rows; fits into the L2 cache
constexpr std::size_t kMaxRows = 128;              // of a chunk
constexpr std::size_t kNodesPerBlock = 1 << 15;    // of trees that are prepared at a time
constexpr std::size_t kVisitsPerThread = 1 << 17;  // below this, waking a thread does not pay

/// Features with a split; only these have columns in a chunk.
struct UsedFeatures {
  std::vector<std::uint32_t> feature{};
  std::vector<std::uint32_t> column{};  // by feature
};

UsedFeatures used_features(const WeightedTrees& weighted) {
  const PackedTrees& trees = weighted.trees;
  UsedFeatures used{.column = std::vector<std::uint32_t>(trees.n_features, 0)};
  for (std::size_t i = trees.root[weighted.first]; i < trees.root[weighted.last]; ++i) {
    if (!trees.nodes[i].is_leaf())
      used.column[static_cast<std::size_t>(trees.nodes[i].feature)] = 1;
  }
  for (std::uint32_t f = 0; f < trees.n_features; ++f) {
    if (used.column[f] == 0) continue;
    used.column[f] = static_cast<std::uint32_t>(used.feature.size());
    used.feature.push_back(f);
  }
  return used;
}

/// A chunk of rows in column order, and the sums by class and column, so that several rows pass a
/// tree at once.
struct Chunk {
  std::size_t n_rows = 0;
  std::size_t stride = 0;  // of rows, padded to full registers
  AlignedVector<double> columns{};
  AlignedVector<double> sums{};  // [n_classes][n_columns][stride]

  // For the rows of one register; the last dimension is the register.
  AlignedVector<double> products{};     // [n_nodes][n_points]
  AlignedVector<std::int64_t> meets{};  // [n_nodes]: -1 or 0
  AlignedVector<double> parts{};        // [n_pairs], or [n_slots]
};

/// A block of prepared trees, and the features they use.
struct Block {
  const PackedTrees& trees;
  const UsedFeatures& used;
  std::vector<PathTree> paths;
};

// ----------------------------------------------------------------------------------------- kernel

template <std::size_t N>
struct Kernel {
  using Doubles = typename Wide<N>::Doubles;
  using Integers = typename Wide<N>::Integers;

  /// The rows of one register in a tree.
  struct Rows {
    const Block& block;
    const PathTree& tree;
    Chunk& chunk;
    std::size_t first;

    [[gnu::always_inline]] double* product(std::size_t node) const {
      return chunk.products.data() + node * tree.n_points * N;
    }
    [[gnu::always_inline]] std::int64_t* meets(std::size_t node) const {
      return chunk.meets.data() + node * N;
    }
    [[gnu::always_inline]] double* sums(std::size_t k, std::size_t slot) const {
      const std::size_t column = block.used.column[tree.slot_feature[slot]];
      return chunk.sums.data() + (k * block.used.feature.size() + column) * chunk.stride + first;
    }
  };

  [[gnu::always_inline]] static Integers goes_left(const Rows& rows, const PathSplit& split) {
    const PackedNode& node = rows.block.trees.nodes[split.node];
    const std::size_t column = rows.block.used.column[static_cast<std::size_t>(node.feature)];
    const double* values = rows.chunk.columns.data() + column * rows.chunk.stride + rows.first;
    if (node.is_set()) {
      Integers in_set;
      for (std::size_t i = 0; i < N; ++i) {
        in_set[i] = is_in_set(rows.block.trees, node, values[i]) ? -1 : 0;
      }
      return in_set;
    }
    const auto x = load<Doubles>(values);
    const Integers is_missing = x != x;
    return (x <= node.threshold) | (is_missing & (node.missing_left() ? -1 : 0));
  }

  /// Computes the products of an edge from those of the edge above.
  [[gnu::always_inline]] static void go_down(const Rows& rows, std::size_t from, std::size_t to,
                                             Integers upper, Integers all) {
    const EdgePoint* points = rows.tree.points.data() + to * rows.tree.n_points;
    const Doubles apart = rows.tree.fraction[to] - Doubles{};
    for (std::size_t q = 0; q < rows.tree.n_points; ++q) {
      const Doubles met = points[q].met - Doubles{};
      const Doubles left = points[q].left - Doubles{};
      const Doubles factor = all ? met : (upper ? left : apart);
      store(load<Doubles>(rows.product(from) + q * N) * factor, rows.product(to) + q * N);
    }
    store(all, rows.meets(to));
  }

  [[gnu::always_inline]] static void fill_products(const Rows& rows) {
    for (std::size_t q = 0; q < rows.tree.n_points; ++q) {
      store(Doubles{} + 1.0, rows.product(0) + q * N);
    }
    store(Integers{} - 1, rows.meets(0));
    for (const PathSplit& split : rows.tree.splits) {
      const Integers is_left = goes_left(rows, split);
      const auto upper = load<Integers>(rows.meets(split.upper));
      go_down(rows, split.at, split.left, upper, upper & is_left);
      go_down(rows, split.at, split.left + 1, upper, upper & ~is_left);
    }
  }

  // From here on, a product is the sum over the leaves below a node, each times its value.

  [[gnu::always_inline]] static Doubles part_of_edge(const Rows& rows, std::size_t edge,
                                                     Integers upper) {
    const EdgePoint* points = rows.tree.points.data() + edge * rows.tree.n_points;
    const auto all = load<Integers>(rows.meets(edge));
    Doubles part{};
    for (std::size_t q = 0; q < rows.tree.n_points; ++q) {
      const Doubles gain = points[q].gain - Doubles{};
      const Doubles loss = points[q].loss - Doubles{};
      const Doubles factor = all ? gain : (upper ? loss : Doubles{});
      part += load<Doubles>(rows.product(edge) + q * N) * factor;
    }
    return part;
  }

  [[gnu::always_inline]] static void go_up(const Rows& rows, const PathSplit& split) {
    for (std::size_t q = 0; q < rows.tree.n_points; ++q) {
      store(load<Doubles>(rows.product(split.left) + q * N) +
                load<Doubles>(rows.product(split.left + 1) + q * N),
            rows.product(split.at) + q * N);
    }
  }

  [[gnu::always_inline]] static void add_class_tree(const Rows& rows) {
    const PathTree& tree = rows.tree;
    double* parts = rows.chunk.parts.data();
    std::fill(parts, parts + tree.slot_feature.size() * N, 0.0);
    for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
      double* product = rows.product(tree.leaves[i]);
      for (std::size_t q = 0; q < tree.n_points * N; ++q) product[q] *= tree.leaf_value[i];
    }
    for (auto split = tree.splits.rbegin(); split != tree.splits.rend(); ++split) {
      const auto upper = load<Integers>(rows.meets(split->upper));
      const Doubles part =
          part_of_edge(rows, split->left, upper) + part_of_edge(rows, split->left + 1, upper);
      double* of_slot = parts + split->slot * N;
      store(load<Doubles>(of_slot) + part, of_slot);
      go_up(rows, *split);
    }
    add_to_classes(rows);
  }

  [[gnu::always_inline]] static void add_to_classes(const Rows& rows) {
    const PackedTrees& trees = rows.block.trees;
    const std::size_t t = rows.tree.number;
    const auto tree_class = static_cast<std::size_t>(trees.tree_class[t]);
    for (std::size_t slot = 0; slot < rows.tree.slot_feature.size(); ++slot) {
      const auto part = load<Doubles>(rows.chunk.parts.data() + slot * N);
      double* of_class = rows.sums(tree_class, slot);
      store(load<Doubles>(of_class) + part, of_class);
      if (!trees.tree_base[t].exists()) continue;
      double* of_base = rows.sums(static_cast<std::size_t>(trees.tree_base[t].number()), slot);
      store(load<Doubles>(of_base) - part * trees.tree_base_scale[t], of_base);
    }
  }

  /// The part of a leaf's values that each feature of its path gets.
  [[gnu::always_inline]] static void fill_parts(const Rows& rows) {
    const PathTree& tree = rows.tree;
    for (std::size_t i = 0; i < tree.pairs.size(); ++i) {
      const PathPair& pair = tree.pairs[i];
      const EdgePoint* points = tree.points.data() + pair.edge * tree.n_points;
      const auto all = load<Integers>(rows.meets(pair.edge));
      Doubles part{};
      for (std::size_t q = 0; q < tree.n_points; ++q) {
        const Doubles gain = points[q].gain - Doubles{};
        const Doubles loss = points[q].loss - Doubles{};
        part += load<Doubles>(rows.product(pair.leaf) + q * N) * (all ? gain : loss);
      }
      store(part, rows.chunk.parts.data() + i * N);
    }
  }

  [[gnu::always_inline]] static void add_multi_output_tree(const Rows& rows) {
    fill_parts(rows);
    const std::size_t n_classes = rows.block.trees.n_classes;
    for (std::size_t slot = 0; slot < rows.tree.slot_feature.size(); ++slot) {
      for (std::size_t k = 0; k < n_classes; k += kClassesAtOnce) {
        std::array<Doubles, kClassesAtOnce> sums{};
        for (std::size_t i = rows.tree.first_pair[slot]; i < rows.tree.first_pair[slot + 1]; ++i) {
          const auto part = load<Doubles>(rows.chunk.parts.data() + i * N);
          const double* values = rows.tree.leaf_value.data() + rows.tree.pairs[i].value + k;
          for (std::size_t j = 0; j < kClassesAtOnce; ++j) sums[j] += part * values[j];
        }
        for (std::size_t j = 0; j < std::min(kClassesAtOnce, n_classes - k); ++j) {
          double* of_class = rows.sums(k + j, slot);
          store(load<Doubles>(of_class) + sums[j], of_class);
        }
      }
    }
  }

  /// Sends all rows of a chunk through one tree.
  [[gnu::always_inline]] static void run(const Block* block, const PathTree* tree, Chunk* chunk) {
    for (std::size_t first = 0; first < chunk->n_rows; first += N) {
      const Rows rows{.block = *block, .tree = *tree, .chunk = *chunk, .first = first};
      fill_products(rows);
      if (block->trees.is_multi_output(tree->number)) {
        add_multi_output_tree(rows);
      } else {
        add_class_tree(rows);
      }
    }
  }
};

// ----------------------------------------------------------------------------------------- chunks

void read_rows(const Block& block, const RowsToExplain& rows, std::size_t first, Chunk& chunk) {
  const std::size_t n_columns = block.used.feature.size();
  chunk.columns.assign(n_columns * chunk.stride, 0.0);
  chunk.sums.assign(block.trees.n_classes * n_columns * chunk.stride, 0.0);
  for (std::size_t i = 0; i < chunk.n_rows; ++i) {
    const double* row = rows.values + (first + i) * block.trees.n_features;
    for (std::size_t c = 0; c < n_columns; ++c) {
      chunk.columns[c * chunk.stride + i] = row[block.used.feature[c]];
    }
  }
}

void write_sums(const Block& block, const Chunk& chunk, const RowsToExplain& rows,
                std::size_t first) {
  const std::size_t n_columns = block.used.feature.size();
  const auto [n_features, n_classes] = std::pair(block.trees.n_features, block.trees.n_classes);
  for (std::size_t i = 0; i < chunk.n_rows; ++i) {
    for (std::size_t c = 0; c < n_columns; ++c) {
      double* of_feature =
          rows.shapley + ((first + i) * n_features + block.used.feature[c]) * n_classes;
      for (std::size_t k = 0; k < n_classes; ++k) {
        of_feature[k] += chunk.sums[(k * n_columns + c) * chunk.stride + i];
      }
    }
  }
}

void grow_buffers(const PathTree& tree, Chunk& chunk) {
  const auto grow = [](auto& array, std::size_t n) {
    if (array.size() < n * kWidest) array.resize(n * kWidest);
  };
  grow(chunk.products, tree.n_nodes * tree.n_points);
  grow(chunk.meets, tree.n_nodes);
  grow(chunk.parts, std::max(tree.pairs.size(), tree.slot_feature.size()));
}

void explain_chunk(const Block& block, const RowsToExplain& rows, std::size_t first, Chunk& chunk) {
  chunk.n_rows = std::min(chunk.stride, rows.n_rows - first);
  read_rows(block, rows, first, chunk);
  for (const PathTree& tree : block.paths) {
    check_interrupt();
    grow_buffers(tree, chunk);
    dispatch_wide<Kernel>(&block, &tree, &chunk);
  }
  write_sums(block, chunk, rows, first);
}

/// The number of rows whose sums fit into the cache, in whole registers.
std::size_t rows_of_a_chunk(const Block& block) {
  const std::size_t n_sums =
      std::max<std::size_t>(1, block.trees.n_classes * block.used.feature.size());
  return std::clamp(kChunkSums / n_sums / kWidest * kWidest, kWidest, kMaxRows);
}

void explain_block(const Block& block, const RowsToExplain& rows, int n_threads) {
  const std::size_t n_rows = rows_of_a_chunk(block);
  std::vector<Chunk> chunks(static_cast<std::size_t>(n_threads), Chunk{.stride = n_rows});
  parallel_for((rows.n_rows + n_rows - 1) / n_rows, n_threads,
               [&](std::size_t chunk, std::size_t slot) {
                 explain_chunk(block, rows, chunk * n_rows, chunks[slot]);
               });
}

void prepare(const WeightedTrees& weighted, std::size_t first, Block& block, int n_threads) {
  std::vector<QuadratureRules> rules(static_cast<std::size_t>(n_threads));
  parallel_for(block.paths.size(), n_threads, [&](std::size_t i, std::size_t slot) {
    check_interrupt();
    block.paths[i] = make_path_tree(weighted.trees, weighted.fraction, first + i, rules[slot]);
  });
}

std::size_t n_nodes(const PackedTrees& trees, std::size_t first, std::size_t last) {
  return trees.root[last] - trees.root[first];
}

/// The end of the block of trees that starts at `first`: limited in nodes, but at least one tree.
std::size_t end_of_block(const WeightedTrees& weighted, std::size_t first) {
  std::size_t last = first + 1;
  while (last < weighted.last && n_nodes(weighted.trees, first, last + 1) <= kNodesPerBlock) ++last;
  return last;
}

int useful_threads(const WeightedTrees& weighted, std::size_t n_rows, int n_threads) {
  const std::size_t n_visits = n_rows * n_nodes(weighted.trees, weighted.first, weighted.last);
  return static_cast<int>(
      std::min(n_visits / kVisitsPerThread + 1, static_cast<std::size_t>(n_threads)));
}

/// Adds a fraction of a leaf's values to the mean scores.
void add_leaf(const PackedTrees& trees, std::size_t t, const PackedNode& leaf, double part,
              std::vector<double>& mean) {
  if (trees.is_multi_output(t)) {
    const float* values = trees.values_of_leaf(leaf.threshold);
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += part * static_cast<double>(values[k]);
    return;
  }
  const double value = part * leaf.threshold;
  mean[static_cast<std::size_t>(trees.tree_class[t])] += value;
  if (!trees.tree_base[t].exists()) return;
  const auto base = static_cast<std::size_t>(trees.tree_base[t].number());
  mean[base] -= value * trees.tree_base_scale[t];
}

}  // namespace

void add_shapley_values(const WeightedTrees& weighted, const RowsToExplain& rows, int n_threads) {
  const int n_useful = useful_threads(weighted, rows.n_rows, n_threads);
  const UsedFeatures used = used_features(weighted);
  for (std::size_t first = weighted.first, last = first; first < weighted.last; first = last) {
    last = end_of_block(weighted, first);
    Block block{
        .trees = weighted.trees, .used = used, .paths = std::vector<PathTree>(last - first)};
    prepare(weighted, first, block, n_useful);
    explain_block(block, rows, n_useful);
  }
}

std::vector<double> mean_scores(const WeightedTrees& weighted) {
  const PackedTrees& trees = weighted.trees;
  std::vector<double> mean(trees.n_classes, 0.0);
  std::vector<double> part;  // fraction of the rows that reach a node
  for (std::size_t t = weighted.first; t < weighted.last; ++t) {
    const std::span<const PackedNode> nodes = trees.tree(t);
    part.assign(nodes.size(), 1.0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].is_leaf()) {
        add_leaf(trees, t, nodes[i], part[i], mean);
        continue;
      }
      for (const std::size_t child : {nodes[i].left(), nodes[i].left() + 1}) {
        part[child - trees.root[t]] = part[i] * weighted.fraction[child];
      }
    }
  }
  return mean;
}

}  // namespace abcgbm
