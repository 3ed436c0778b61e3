// The growth of one tree, single-output or multi-output:
//
//   start_tree                      all rows are in the root
//   count_nodes                     build the histograms of nodes, and search their splits
//   while split_best:               split the best leaf and its rows
//     count_nodes                   count one of its children
//
// The drivers call these functions, for one tree after the other or in lock step. A Job defines
// what is summed:
//
//   Job::Traits, Job::RowSums       see tree/output_traits.hpp; buffer for the sums of some rows
//   binned, params, root_node()     the table, the limits, and the state of the root
//   kChunk                          number of rows whose sums are computed at a time
//   residual_size(rows)             sums of absolute residuals, where the search needs them
//   sum_rows, clear, count, finish  sum rows up and add them to the bins of a block
//   work_of_a_bin()                 relative cost of adding a row to a bin; 1 for two or three sums
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "data/binned.hpp"
#include "tree/grower.hpp"
#include "tree/partition.hpp"

namespace abcgbm {

/// The threads that grow a tree together; each counts some of the blocks.
struct TreeThreads {
  std::size_t n = 1;
  std::vector<Block> blocks;
};

/// A growing tree: its nodes and their rows. Reused for the next tree.
template <class Job>
struct TreeState {
  using Traits = typename Job::Traits;

  TreeState(const Traits& traits, const Binned& binned, std::size_t max_histograms,
            std::size_t n_threads, const Storage& storage)
      : grower(traits, binned.layout, max_histograms, n_threads),
        rows(storage),
        chunk_sums(n_threads) {}

  Grower<Traits> grower;
  RowSets rows;
  std::vector<typename Job::RowSums> chunk_sums;  // by thread: sums of the rows that it is counting
};

/// Calls count(blocks, slot), in several threads if there is enough work.
template <class Job, class Count>
void for_blocks(const Job& job, const TreeThreads& threads, const TreeState<Job>& state,
                const Count& count) {
  constexpr std::size_t kWorkPerThread = 1 << 15;  // that makes waking another thread worthwhile
  std::size_t work = job.binned.layout.total_bins;
  for (const std::size_t node : state.grower.to_count()) {
    work += state.rows.in_node(node).size() * job.binned.layout.n_columns();
  }
  const std::size_t n_useful = work * job.work_of_a_bin() / kWorkPerThread + 1;
  const std::size_t n_blocks = threads.blocks.size();
  const std::size_t n_ranges = std::min({threads.n, n_blocks, n_useful});
  parallel_for(n_ranges, static_cast<int>(n_ranges), [&](std::size_t i, std::size_t slot) {
    const std::size_t first = i * n_blocks / n_ranges;
    const std::size_t last = (i + 1) * n_blocks / n_ranges;
    count(std::span(threads.blocks).subspan(first, last - first), slot);
  });
}

/// A node whose rows are added to its own histogram or subtracted from another one.
template <class Bins>
struct NodeToCount {
  std::span<const std::uint32_t> rows;
  Bins histogram;
  bool is_subtracted;
};

/// Adds the rows of a node to some blocks of its histogram, and calls done(block) for each complete
/// one while it is in the cache. The rows of a large node are processed in chunks, so that their
/// sums stay in the cache, too. `sums` is a buffer.
template <class Job, class OnBlock>
void count_node(const Job& job, const NodeToCount<typename Job::Traits::Bins>& node,
                std::span<const Block> blocks, typename Job::RowSums& sums, const OnBlock& done) {
  std::size_t first = 0;
  do {
    const auto chunk = node.rows.subspan(first, std::min(Job::kChunk, node.rows.size() - first));
    const bool is_last = first + chunk.size() == node.rows.size();
    job.sum_rows(chunk, node.is_subtracted, sums);
    for (const Block& block : blocks) {
      check_interrupt();
      if (first == 0 && !node.is_subtracted) job.clear(block, node.histogram);
      job.count(block, chunk, sums, node.histogram);
      if (is_last) done(block);
    }
    first += chunk.size();
  } while (first < node.rows.size());
}

template <class Job>
void start_tree(const Job& job, TreeState<Job>& state) {
  reset(state.rows, job.binned.n_rows);
  state.grower.start(job.params(), job.root_node());
  if (state.grower.needs_residual_size()) {
    state.grower.set_residual_size(0, job.residual_size(state.rows.in_node(0)));
  }
}

/// Computes the residual sizes of the child with fewer rows; the other has the rest.
template <class Job>
void size_children(const Job& job, std::size_t parent, TreeState<Job>& state) {
  const auto left = static_cast<std::size_t>(state.grower.nodes()[parent].left);
  const std::size_t n_left = state.rows.in_node(left).size();
  const bool right_is_smaller = state.rows.in_node(left + 1).size() < n_left;
  const std::size_t child = right_is_smaller ? left + 1 : left;
  const std::size_t other = right_is_smaller ? left : left + 1;
  const auto size = job.residual_size(state.rows.in_node(child));
  state.grower.set_residual_size(child, size);
  state.grower.set_residual_size(other, difference(state.grower.residual_size(parent), size));
}

/// Splits the best leaf; false if the tree is finished.
template <class Job>
bool split_best(const Job& job, TreeState<Job>& state) {
  const auto node = state.grower.split_next();
  if (!node) return false;
  split_rows(state.rows, *node, job.binned, state.grower.nodes()[*node]);
  if (state.grower.needs_residual_size()) size_children(job, *node, state);
  return true;
}

template <class Job>
void count_nodes(const Job& job, const TreeThreads& threads, TreeState<Job>& state) {
  auto& grower = state.grower;
  if (grower.to_count().empty()) return;
  for_blocks(job, threads, state, [&](std::span<const Block> blocks, std::size_t slot) {
    for (const std::size_t node : grower.to_count()) {
      const std::size_t made = grower.made_by(node);
      const auto histogram = grower.histogram(made);
      const auto done = [&](const Block& block) {
        job.finish(block, grower.sums(made), histogram);
        if (node == grower.to_count().back()) grower.block_counted(block, slot);
      };
      count_node(job,
                 {.rows = state.rows.in_node(node),
                  .histogram = histogram,
                  .is_subtracted = grower.is_subtracted(node)},
                 blocks, state.chunk_sums[slot], done);
    }
  });
  grower.all_blocks_counted();
}

}  // namespace abcgbm
