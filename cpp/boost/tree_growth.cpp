#include "boost/tree_growth.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kWorkPerThread = 1 << 15;  // additions that a thread is called for
constexpr std::size_t kChunk = 8192;             // rows whose sums stay in L2

template <int W>
void negate(std::span<Sums<W>> all) {
  for (Sums<W>& sums : all) {
    for (std::int64_t& sum : sums) sum = -sum;
  }
}

template <int W>
void clear(const Block& block, std::span<Sums<W>> histogram) {
  std::ranges::fill(histogram.subspan(block.first_bin, block.last_bin - block.first_bin),
                    Sums<W>{});
}

/// The sums of the root: those of the bins of any feature.
template <int W>
Sums<W> root_sums(const TreeJob& job) {
  Sums<W> sums{};
  const Layout& layout = job.binned.layout;
  const Feature& feature = layout.features[layout.by_bin.front()];
  for (std::size_t bin = feature.offset; bin < feature.offset + feature.n_bins; ++bin) {
    add(sums, job.root.bin<W>(bin));
  }
  return sums;
}

/// Calls count(blocks, slot), by several threads if there is enough to do for them.
template <int W, class Count>
void for_blocks(const TreeJob& job, const TreeThreads& threads, const TreeState<W>& state,
                const Count& count) {
  std::size_t work = job.binned.layout.total_bins;
  for (const std::size_t node : state.grower.to_count()) {
    work += state.rows.in_node(node).size() * job.binned.layout.n_columns();
  }
  const std::size_t n_useful = work / kWorkPerThread + 1;
  const std::size_t n_blocks = threads.blocks.size();
  const std::size_t n_ranges = std::min({threads.n, n_blocks, n_useful});
  parallel_for(n_ranges, static_cast<int>(n_ranges), [&](std::size_t i, std::size_t slot) {
    const std::size_t first = i * n_blocks / n_ranges;
    const std::size_t last = (i + 1) * n_blocks / n_ranges;
    count(std::span(threads.blocks).subspan(first, last - first), slot);
  });
}

/// A node whose rows are added to a histogram, its own, or taken out of another.
template <int W>
struct NodeToCount {
  std::span<const std::uint32_t> rows;
  std::span<Sums<W>> histogram;
  bool is_taken_out;
};

/// Sums up the rows of a node in some blocks, and calls done(block) for each that has them all,
/// while it is in the cache. Of a large node some rows are counted at a time, so that these are,
/// too. `sums` is a buffer.
template <int W, class Done>
void count_node(const TreeJob& job, const NodeToCount<W>& node, std::span<const Block> blocks,
                std::vector<Sums<W>>& sums, const Done& done) {
  std::size_t first = 0;
  do {
    const auto chunk = node.rows.subspan(first, std::min(kChunk, node.rows.size() - first));
    const bool is_last = first + chunk.size() == node.rows.size();
    check_interrupt();
    sums.resize(chunk.size());
    row_sums<W>(job.context.rows, job.pair(), chunk, sums);
    if (node.is_taken_out) negate<W>(sums);
    for (const Block& block : blocks) {
      if (first == 0 && !node.is_taken_out) clear<W>(block, node.histogram);
      count_block<W>(job.binned, block, {.rows = chunk, .sums = sums}, node.histogram);
      if (is_last) done(block);
    }
    first += chunk.size();
  } while (first < node.rows.size());
}

}  // namespace

template <int W>
void start_tree(const TreeJob& job, TreeState<W>& state) {
  reset(state.rows, job.binned.n_rows);
  state.grower.start(job.context.params.grow, {.sums = root_sums<W>(job),
                                               .rules = job.context.rules,
                                               .gain_unit = gain_unit(job.context),
                                               .key = tree_key(job.context, job.pair())});
}

template <int W>
void count_root(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state) {
  Grower<W>& grower = state.grower;
  if (grower.to_count().empty()) return;
  const std::span<Sums<W>> histogram = grower.histogram(0);
  for_blocks(job, threads, state, [&](std::span<const Block> blocks, std::size_t slot) {
    for (const Block& block : blocks) {
      for (std::size_t bin = block.first_bin; bin < block.last_bin; ++bin) {
        histogram[bin] = job.root.bin<W>(bin);
      }
      grower.counted(block, slot);
    }
  });
  grower.all_counted();
}

template <int W>
bool split_best(const TreeJob& job, TreeState<W>& state) {
  const auto node = state.grower.split_next();
  if (!node) return false;
  split_rows(state.rows, *node, job.binned, state.grower.nodes()[*node]);
  return true;
}

template <int W>
void count_children(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state) {
  Grower<W>& grower = state.grower;
  if (grower.to_count().empty()) return;
  for_blocks(job, threads, state, [&](std::span<const Block> blocks, std::size_t slot) {
    for (const std::size_t node : grower.to_count()) {
      const std::size_t made = grower.made_by(node);
      const std::span<Sums<W>> histogram = grower.histogram(made);
      const auto done = [&](const Block& block) {
        finish_block<W>(job.binned.layout, block, grower.sums(made), histogram);
        if (node == grower.to_count().back()) grower.counted(block, slot);
      };
      const NodeToCount<W> to_count{.rows = state.rows.in_node(node),
                                    .histogram = histogram,
                                    .is_taken_out = grower.is_taken_out(node)};
      count_node<W>(job, to_count, blocks, state.chunk_sums[slot], done);
    }
  });
  grower.all_counted();
}

template <int W>
GrownTree finish_tree(const TreeJob& job, TreeState<W>& state) {
  const TreeRows& rows = job.context.rows;
  GrownTree grown{.tree = {.tree_class = job.pair().tree_class,
                           .base = job.pair().base,
                           .nodes = std::move(state.grower.nodes())},
                  .node_of_row = std::vector<std::uint16_t>(job.binned.n_rows)};
  std::vector<TreeNode>& nodes = grown.tree.nodes;
  write_leaves(state.rows, nodes, grown.node_of_row);
  std::vector<std::int64_t> hessians;
  if constexpr (!kHasHessian<W>) {
    hessians = hessian_sums(rows, job.pair(), grown.node_of_row, nodes.size());
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Sums<W>& sums = state.grower.sums(i);
    nodes[i].weight = static_cast<double>(sums[kWeight]) * rows.labels.unit;
    if (!nodes[i].is_leaf()) continue;
    nodes[i].gain = 0.0;  // of a split that was not made
    const std::int64_t hessian = kHasHessian<W> ? sums[kSplitWeight<W>] : hessians[i];
    nodes[i].value = leaf_value(job.context, sums[kResidual], hessian);
  }
  return grown;
}

template <int W>
GrownTree grow_tree(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state) {
  start_tree(job, state);
  count_root(job, threads, state);
  while (split_best(job, state)) count_children(job, threads, state);
  return finish_tree(job, state);
}

template GrownTree grow_tree<2>(const TreeJob&, const TreeThreads&, TreeState<2>&);
template GrownTree grow_tree<3>(const TreeJob&, const TreeThreads&, TreeState<3>&);

}  // namespace abcgbm
