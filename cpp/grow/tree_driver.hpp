// Grows the single-output trees of an iteration in a single process.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "data/binned.hpp"
#include "grow/iteration_context.hpp"
#include "grow/root_histograms.hpp"
#include "grow/tree_growth.hpp"

namespace abcgbm {

/// Holds buffers for reuse, and a reference to the table.
template <int W>
class TreeDriver {
 public:
  TreeDriver(const Binned& binned, int n_classes, int n_threads, const Storage& storage);

  /// Grows a tree for each pair of classes.
  std::vector<GrownTree> grow(const IterationContext& context, std::span<const ClassPair> pairs);

 private:
  template <class Each>
  void for_each_tree(std::span<const ClassPair> batch, std::size_t n_per_tree, const Each& each);

  const Binned* binned_;
  int n_threads_;
  RootHistograms roots_;
  std::vector<TreeState<TreeJob<W>>> states_;  // by thread
  std::vector<double> last_work_;              // of the previous tree of each class
};

}  // namespace abcgbm
