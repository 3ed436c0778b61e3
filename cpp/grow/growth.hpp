// The growth of one tree, single-output or multi-output:
//
//   start_tree                      all rows are in the root
//   build_histograms_and_search     of the root
//   while split_best:               split the best leaf and its rows
//     build_histograms_and_search   of one of its children, usually
//
// A single process runs this loop. Several ranks have their own rounds (lock_step.hpp), which share
// `TreeState`, `reset_tree` and `build_histogram`. A Job defines what is summed:
//
//   Job::Traits, Job::RowSums       see tree/output_traits.hpp; buffer for the sums of some rows
//   binned, params(), root_node()   the table, the limits, and the state of the root
//   kKnowsRoot, fill_root           whether the root's histogram is computed beforehand; if so,
//                                   fill_root(block, histogram) copies a block of it
//   kChunk                          number of rows whose sums are computed at a time
//   abs_residuals(rows)             sums of absolute residuals, where the search needs them
//   sum_rows, clear, add, finish    sum rows up and add them to the bins of a block
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

/// The threads that grow a tree together; each builds some of the blocks.
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
  std::vector<typename Job::RowSums> chunk_sums;  // by thread: sums of the rows that it is adding
};

/// Calls build(blocks, slot), in several threads if there is enough work.
template <class Job, class Build>
void for_blocks(const Job& job, const TreeThreads& threads, const TreeState<Job>& state,
                const Build& build) {
  constexpr std::size_t kMinWorkPerThread = 1 << 15;  // less does not pay for waking a thread
  std::size_t work = job.binned.layout.total_bins;
  for (const std::size_t node : state.grower.to_build()) {
    work += state.rows.in_node(node).size() * job.binned.layout.n_columns();
  }
  const std::size_t n_useful = work * job.work_of_a_bin() / kMinWorkPerThread + 1;
  const std::size_t n_blocks = threads.blocks.size();
  const std::size_t n_ranges = std::min({threads.n, n_blocks, n_useful});
  parallel_for(n_ranges, static_cast<int>(n_ranges), [&](std::size_t i, std::size_t slot) {
    const std::size_t first = i * n_blocks / n_ranges;
    const std::size_t last = (i + 1) * n_blocks / n_ranges;
    build(std::span(threads.blocks).subspan(first, last - first), slot);
  });
}

/// A node whose rows are added to its own histogram or subtracted from another one.
template <class Bins>
struct NodeToBuild {
  std::span<const std::uint32_t> rows;
  Bins histogram;
  bool is_subtracted;
};

/// Adds the rows of a node to some blocks of its histogram, and calls done(block) for each complete
/// one while it is in the cache. The rows of a large node are processed in chunks, so that their
/// sums stay in the cache, too. `sums` is a buffer.
template <class Job, class OnBlock>
void build_histogram(const Job& job, const NodeToBuild<typename Job::Traits::Bins>& node,
                     std::span<const Block> blocks, typename Job::RowSums& sums,
                     const OnBlock& done) {
  std::size_t first = 0;
  do {  // at least once: a node without rows still has blocks to clear and to finish
    const auto chunk = node.rows.subspan(first, std::min(Job::kChunk, node.rows.size() - first));
    const bool is_last = first + chunk.size() == node.rows.size();
    job.sum_rows(chunk, node.is_subtracted, sums);
    for (const Block& block : blocks) {
      check_interrupt();
      if (first == 0 && !node.is_subtracted) job.clear(block, node.histogram);
      job.add(block, chunk, sums, node.histogram);
      if (is_last) done(block);
    }
    first += chunk.size();
  } while (first < node.rows.size());
}

/// Puts all rows into the root of a new tree.
template <class Job>
void reset_tree(const Job& job, TreeState<Job>& state) {
  reset(state.rows, job.binned.n_rows);
  state.grower.start(job.params(), job.root_node());
}

template <class Job>
void start_tree(const Job& job, TreeState<Job>& state) {
  reset_tree(job, state);
  if (state.grower.needs_abs_residuals()) {
    state.grower.set_abs_residuals(0, job.abs_residuals(state.rows.in_node(0)));
  }
}

/// Sums the absolute residuals of the child with fewer rows; the other has the rest.
template <class Job>
void set_abs_residuals_of_children(const Job& job, std::size_t parent, TreeState<Job>& state) {
  const auto left = static_cast<std::size_t>(state.grower.nodes()[parent].left);
  const std::size_t n_left = state.rows.in_node(left).size();
  const bool right_is_smaller = state.rows.in_node(left + 1).size() < n_left;
  const std::size_t child = right_is_smaller ? left + 1 : left;
  const std::size_t other = right_is_smaller ? left : left + 1;
  const auto sum = job.abs_residuals(state.rows.in_node(child));
  state.grower.set_abs_residuals(child, sum);
  state.grower.set_abs_residuals(other, difference(state.grower.abs_residuals(parent), sum));
}

/// Splits the best leaf; false if the tree is finished.
template <class Job>
bool split_best(const Job& job, TreeState<Job>& state) {
  const auto node = state.grower.split_next();
  if (!node) return false;
  split_rows(state.rows, *node, job.binned, state.grower.nodes()[*node]);
  if (state.grower.needs_abs_residuals()) set_abs_residuals_of_children(job, *node, state);
  return true;
}

template <class Job>
void build_histograms_and_search(const Job& job, const TreeThreads& threads,
                                 TreeState<Job>& state) {
  auto& grower = state.grower;
  if (grower.to_build().empty()) return;
  for_blocks(job, threads, state, [&](std::span<const Block> blocks, std::size_t slot) {
    for (const std::size_t node : grower.to_build()) {
      const std::size_t target = grower.histogram_target(node);
      const auto histogram = grower.histogram(target);
      const auto done = [&](const Block& block) {
        job.finish(block, grower.sums(target), histogram);
        // The last node completes this block of all nodes, so its splits can be searched.
        if (node == grower.to_build().back()) grower.search_block(block, slot);
      };
      build_histogram(job,
                      {.rows = state.rows.in_node(node),
                       .histogram = histogram,
                       .is_subtracted = grower.is_subtracted(node)},
                      blocks, state.chunk_sums[slot], done);
    }
  });
  grower.finish_search();
}

}  // namespace abcgbm
