#include "grow/rank_driver.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "grow/schedule.hpp"
#include "tree/partition.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kSetBytes = std::size_t{1}
                                  << 31;  // of the row sets of trees that grow together

TreeThreads threads_of(const Binned& binned, std::size_t n_trees, int n_threads) {
  const std::size_t n = threads_for(n_trees, n_threads);
  return {.n = n, .blocks = blocks_of(binned.layout, static_cast<std::size_t>(n_threads))};
}

}  // namespace

std::size_t n_trees_together(std::size_t max_rows, int n_classes) {
  const std::size_t bytes = kRowSetBytes * std::max<std::size_t>(1, max_rows);
  return std::clamp<std::size_t>(kSetBytes / bytes, 1, static_cast<std::size_t>(n_classes));
}

template <int W>
RankDriver<W>::RankDriver(const Binned& binned, const Labels& labels, int n_threads,
                          const Storage& storage)
    : binned_(&binned),
      n_threads_(n_threads),
      n_together_(n_trees_together(labels.shard.max_rows, labels.n_classes)),
      lock_step_(SingleOutput<W>(), binned, labels.communicator(),
                 {n_together_, threads_of(binned, n_together_, n_threads), n_threads}, storage) {}

template <int W>
std::vector<GrownTree> RankDriver<W>::grow(const IterationContext& context,
                                           std::span<const ClassPair> pairs) {
  std::vector<GrownTree> grown;
  grown.reserve(pairs.size());
  const std::size_t max_trees = max_in_batch(binned_->layout.total_bins);
  for (std::size_t first = 0; first < pairs.size();) {
    const std::size_t last = end_of_batch(pairs, first, max_trees, kHasHessian<W>);
    grow_batch(context, pairs.subspan(first, last - first), grown);
    first = last;
  }
  return grown;
}

template <int W>
void RankDriver<W>::grow_batch(const IterationContext& context, std::span<const ClassPair> batch,
                               std::vector<GrownTree>& grown) {
  const Communicator& communicator = context.rows.labels.communicator();
  build_root_histograms(*binned_, context.rows, batch, kHasHessian<W>, n_threads_, roots_);
  for (std::size_t first = 0; first < batch.size(); first += n_together_) {
    std::vector<TreeJob<W>> jobs;
    for (std::size_t i = first; i < std::min(first + n_together_, batch.size()); ++i) {
      const TreeRoot root{
          .roots = roots_, .bin_weights = context.bin_weights, .pair = batch[i], .in_batch = i};
      jobs.push_back({.binned = *binned_, .context = context, .root = root});
    }
    lock_step_.grow(jobs);
    finish(jobs, communicator, grown);
  }
}

/// The hessians of all leaves of all trees are reduced in one operation.
template <int W>
void RankDriver<W>::finish(std::span<const TreeJob<W>> jobs, const Communicator& communicator,
                           std::vector<GrownTree>& grown) {
  const std::size_t before = grown.size();
  grown.resize(before + jobs.size());
  std::vector<std::vector<std::int64_t>> of_tree(jobs.size());
  parallel_for(jobs.size(), n_threads_, [&](std::size_t i, std::size_t) {
    grown[before + i] = take_structure(jobs[i], lock_step_.state(i));
    of_tree[i] = node_hessians(jobs[i], grown[before + i]);
  });
  std::vector<std::int64_t> hessians;
  for (const auto& some : of_tree) hessians.insert(hessians.end(), some.begin(), some.end());
  communicator.allreduce_sum(hessians);
  std::size_t at = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto some = std::span(hessians).subspan(at, of_tree[i].size());
    set_leaf_values<W>(jobs[i], lock_step_.state(i), some, grown[before + i]);
    at += some.size();
  }
}

template class RankDriver<2>;
template class RankDriver<3>;

}  // namespace abcgbm
