// Grows the single-output trees of an iteration when the rows are sharded over ranks: in lock step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "data/binned.hpp"
#include "grow/iteration_context.hpp"
#include "grow/lock_step.hpp"
#include "grow/root_histograms.hpp"
#include "grow/tree_growth.hpp"

namespace abcgbm {

/// The number of trees that grow together, given the rows of the largest shard; the same on all
/// ranks.
std::size_t n_trees_together(std::size_t max_rows, int n_classes);

/// The counterpart of TreeDriver for several ranks. Holds buffers for reuse.
template <int W>
class RankDriver {
 public:
  RankDriver(const Binned& binned, const Labels& labels, int n_threads, const Storage& storage);

  /// Grows a tree for each pair of classes.
  std::vector<GrownTree> grow(const IterationContext& context, std::span<const ClassPair> pairs);

 private:
  void grow_batch(const IterationContext& context, std::span<const ClassPair> batch,
                  std::vector<GrownTree>& grown);
  void finish(std::span<const TreeJob<W>> jobs, const Communicator& communicator,
              std::vector<GrownTree>& grown);

  const Binned* binned_;
  int n_threads_;
  std::size_t n_together_;  // number of trees that grow together
  RootHistograms roots_;
  LockStep<TreeJob<W>> lock_step_;
};

}  // namespace abcgbm
