#include "grow/tree_driver.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "grow/schedule.hpp"

namespace abcgbm {

template <int W>
TreeDriver<W>::TreeDriver(const Binned& binned, int n_classes, int n_threads,
                          const Storage& storage)
    : binned_(&binned),
      n_threads_(n_threads),
      last_work_(static_cast<std::size_t>(n_classes), 0.0) {
  const std::size_t bytes = binned.layout.total_bins * sizeof(Sums<W>);
  const std::size_t max_kept = max_histograms(bytes, std::min(n_threads, n_classes));
  for (int i = 0; i < n_threads; ++i) {  // the first one may grow a tree with all threads
    states_.emplace_back(SingleOutput<W>(), binned, max_kept,
                         static_cast<std::size_t>(i == 0 ? n_threads : 1), storage);
  }
}

template <int W>
std::vector<GrownTree> TreeDriver<W>::grow(const IterationContext& context,
                                           std::span<const ClassPair> pairs) {
  std::vector<GrownTree> grown(pairs.size());
  const Layout& layout = binned_->layout;
  const std::size_t n_per_tree = threads_for(pairs.size(), n_threads_);
  const TreeThreads threads{.n = n_per_tree, .blocks = blocks_of(layout, n_per_tree)};
  const std::size_t max_trees = max_in_batch(layout.total_bins);
  for (std::size_t first = 0; first < pairs.size();) {
    const std::size_t last = end_of_batch(pairs, first, max_trees, kHasHessian<W>);
    const auto batch = pairs.subspan(first, last - first);
    build_root_histograms(*binned_, context.rows, batch, kHasHessian<W>, n_threads_, roots_);
    for_each_tree(batch, n_per_tree, [&](std::size_t i, TreeState<TreeJob<W>>& state) {
      const TreeRoot root{
          .roots = roots_, .bin_weights = context.bin_weights, .pair = batch[i], .in_batch = i};
      grown[first + i] =
          grow_tree<W>({.binned = *binned_, .context = context, .root = root}, threads, state);
    });
    first = last;
  }
  for (const auto& [tree, _] : grown) {
    last_work_[static_cast<std::size_t>(tree.tree_class)] = work_of(tree);
  }
  return grown;
}

/// Calls each(i, state) for the trees of a batch: in parallel, or in sequence if all threads grow
/// one tree together.
template <int W>
template <class Each>
void TreeDriver<W>::for_each_tree(std::span<const ClassPair> batch, std::size_t n_per_tree,
                                  const Each& each) {
  if (n_per_tree > 1) {
    for (std::size_t i = 0; i < batch.size(); ++i) each(i, states_.front());
    return;
  }
  std::vector<double> work;
  for (const ClassPair& pair : batch) {
    work.push_back(last_work_[static_cast<std::size_t>(pair.tree_class)]);
  }
  const std::vector<std::size_t> order = largest_first(work);
  parallel_for(batch.size(), n_threads_,
               [&](std::size_t i, std::size_t slot) { each(order[i], states_[slot]); });
}

template class TreeDriver<2>;
template class TreeDriver<3>;

}  // namespace abcgbm
