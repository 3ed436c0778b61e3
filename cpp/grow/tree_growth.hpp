// Growth of single-output trees, whose root histograms are computed beforehand.
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

/// A single-output tree to grow, and its inputs.
template <int W>
struct TreeJob {
  using Traits = SingleOutput<W>;
  using RowSums = std::vector<Sums<W>>;
  using Bins = typename Traits::Bins;
  using Rows = std::span<const std::uint32_t>;
  static constexpr std::size_t kChunk = 8192;  // rows whose sums fit into the L2 cache
  static constexpr bool kKnowsRoot = true;     // its histogram is computed beforehand

  const Binned& binned;
  const IterationContext& context;
  TreeRoot root;

  const ClassPair& pair() const { return root.pair; }
  const GrowParams& params() const { return context.params.grow; }
  static constexpr std::size_t work_of_a_bin() { return 1; }
  RootNode<Traits> root_node() const;
  void fill_root(const Block& block, Bins histogram) const;
  std::int64_t abs_residuals(Rows rows) const;
  void sum_rows(Rows rows, bool negated, RowSums& sums) const;
  void clear(const Block& block, Bins histogram) const;
  void add(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const;
  void finish(const Block& block, const Sums<W>& node, Bins histogram) const;
};

/// A grown tree, and the leaf of each row: its node or, in a multi-output tree, its number among
/// the leaves.
struct GrownTree {
  Tree tree;
  LargeVector<std::uint16_t> node_of_row;
};

/// Searches the splits of the root.
template <int W>
void search_root(const TreeJob<W>& job, const TreeThreads& threads, TreeState<TreeJob<W>>& state);

/// The structure of the grown tree, without leaf values.
template <int W>
GrownTree take_structure(const TreeJob<W>& job, TreeState<TreeJob<W>>& state);

/// The hessians of this rank's rows in each node, if histograms hold none; else nothing.
template <int W>
std::vector<std::int64_t> node_hessians(const TreeJob<W>& job, const GrownTree& grown);

/// Sets the leaf values from the hessians of all ranks.
template <int W>
void set_leaf_values(const TreeJob<W>& job, const TreeState<TreeJob<W>>& state,
                     std::span<const std::int64_t> hessians, GrownTree& grown);

/// Grows and completes a tree.
template <int W>
GrownTree grow_tree(const TreeJob<W>& job, const TreeThreads& threads,
                    TreeState<TreeJob<W>>& state);

}  // namespace abcgbm
