// One tree over the rows of a table, step by step:
//
//   start_tree, count_root          the root, whose histogram is there already
//   while split_best:               the best leaf is split, and so are its rows
//     count_children                the rows of a child are summed up, and cuts are looked for
//   finish_tree                     the values of the leaves
//
// Who calls these, for one tree after the other or for several in turn, is the driver's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/base_class.hpp"
#include "boost/roots.hpp"
#include "boost/step_context.hpp"
#include "data/binned.hpp"
#include "tree/grower.hpp"
#include "tree/partition.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// A tree to grow, and what it is grown from.
struct TreeJob {
  const Binned& binned;
  const StepContext& context;
  TreeRoot root;

  const ClassPair& pair() const { return root.pair; }
};

/// The threads that grow a tree together; each counts some of the blocks of columns.
struct TreeThreads {
  std::size_t n = 1;
  std::vector<Block> blocks;
};

/// A tree while it grows: its nodes, and the rows of each. To be used again for the next tree.
template <int W>
struct TreeState {
  TreeState(const Binned& binned, std::size_t most_histograms, std::size_t n_threads)
      : grower(binned.layout, most_histograms, n_threads), chunk_sums(n_threads) {}

  Grower<W> grower;
  RowSets rows;
  std::vector<std::vector<Sums<W>>> chunk_sums;  // by thread: of the rows that it is counting
};

/// A grown tree, and the leaf that each row is in.
struct GrownTree {
  Tree tree;
  std::vector<std::uint16_t> node_of_row;
};

template <int W>
void start_tree(const TreeJob& job, TreeState<W>& state);

template <int W>
void count_root(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state);

/// False if the tree is finished.
template <int W>
bool split_best(const TreeJob& job, TreeState<W>& state);

template <int W>
void count_children(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state);

template <int W>
GrownTree finish_tree(const TreeJob& job, TreeState<W>& state);

/// All of that.
template <int W>
GrownTree grow_tree(const TreeJob& job, const TreeThreads& threads, TreeState<W>& state);

}  // namespace abcgbm
