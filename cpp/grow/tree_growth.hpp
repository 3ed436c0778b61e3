// A tree for one class, whose root histogram is there already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "base/storage.hpp"
#include "data/binned.hpp"
#include "grow/growth.hpp"
#include "grow/iteration_context.hpp"
#include "grow/root_histograms.hpp"
#include "tree/output_traits.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// A tree to grow, and what it is grown from.
template <int W>
struct TreeJob {
  using Traits = SingleOutput<W>;
  using RowSums = std::vector<Sums<W>>;
  using Bins = typename Traits::Bins;
  using Rows = std::span<const std::uint32_t>;
  static constexpr std::size_t kChunk = 8192;  // rows whose sums stay in L2
  static constexpr bool kKnowsRoot = true;     // its histogram is there already

  const Binned& binned;
  const IterationContext& context;
  TreeRoot root;

  const ClassPair& pair() const { return root.pair; }
  const GrowParams& params() const { return context.params.grow; }
  static constexpr std::size_t work_of_a_bin() { return 1; }
  RootNode<Traits> root_node() const;
  void fill_root(const Block& block, Bins histogram) const;
  std::int64_t residual_size(Rows rows) const;
  void sum_rows(Rows rows, bool negated, RowSums& sums) const;
  void clear(const Block& block, Bins histogram) const;
  void count(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const;
  void finish(const Block& block, const Sums<W>& node, Bins histogram) const;
};

/// A grown tree, and the leaf that each row is in (which lies where the scores do): its node or, in
/// a shared tree, its number among the leaves.
struct GrownTree {
  Tree tree;
  LargeVector<std::uint16_t> node_of_row;
};

/// Looks for the cuts of the root.
template <int W>
void count_root(const TreeJob<W>& job, const TreeThreads& threads, TreeState<TreeJob<W>>& state);

/// A tree whose leaves have no values yet.
template <int W>
GrownTree without_values(const TreeJob<W>& job, TreeState<TreeJob<W>>& state);

/// The hessians of this rank's rows in each node, where histograms hold none; else nothing.
template <int W>
std::vector<std::int64_t> node_hessians(const TreeJob<W>& job, const GrownTree& grown);

/// Sets the values of the leaves, given those of all ranks.
template <int W>
void set_leaf_values(const TreeJob<W>& job, const TreeState<TreeJob<W>>& state,
                     std::span<const std::int64_t> hessians, GrownTree& grown);

/// All of a tree.
template <int W>
GrownTree grow_tree(const TreeJob<W>& job, const TreeThreads& threads,
                    TreeState<TreeJob<W>>& state);

}  // namespace abcgbm
