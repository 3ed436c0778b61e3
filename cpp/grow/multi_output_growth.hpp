// Growth of multi-output trees: one tree for all classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "data/binned.hpp"
#include "grow/growth.hpp"
#include "grow/iteration_context.hpp"
#include "grow/lock_step.hpp"
#include "grow/tree_growth.hpp"
#include "loss/projections.hpp"
#include "tree/output_traits.hpp"

namespace abcgbm {

/// A multi-output tree to grow, and its inputs.
struct MultiOutputJob {
  using Traits = MultiOutput;
  using RowSums = MultiOutputBins;
  using Bins = Traits::Bins;
  using Rows = std::span<const std::uint32_t>;
  static constexpr std::size_t kChunk = 2048;  // rows whose sums fit into the L2 cache
  static constexpr bool kKnowsRoot = false;

  const Binned& binned;
  const IterationContext& context;
  const Projections& projections;
  SearchGrid grid;
  SumLayout sum_layout;
  std::span<const std::int32_t> sums_of_rows;  // [n_rows][stride]
  MultiOutputSums total;                       // over all rows

  const GrowParams& params() const { return context.params.grow; }
  std::size_t work_of_a_bin() const { return sum_layout.stride() / 4; }
  RootNode<Traits> root_node() const;
  std::vector<std::int64_t> abs_residuals(Rows rows) const;
  void sum_rows(Rows rows, bool negated, RowSums& sums) const;
  void clear(const Block& block, Bins histogram) const;
  void add(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const;
  void finish(const Block& block, const MultiOutputSums& node, Bins histogram) const;
};

/// Grows the tree of an iteration. Holds buffers for reuse, and a reference to the table.
class MultiOutputDriver {
 public:
  MultiOutputDriver(const Binned& binned, const Labels& labels, const TrainParams& params,
                    int n_threads, const Storage& storage);

  GrownTree grow(const IterationContext& context);

 private:
  using Growth = std::variant<TreeState<MultiOutputJob>, LockStep<MultiOutputJob>>;
  Growth make_growth(const Communicator& communicator, const Storage& storage) const;
  const TreeState<MultiOutputJob>& grow_nodes(const MultiOutputJob& job);

  const Binned* binned_;
  std::size_t n_projections_;  // 0: all classes
  int n_threads_;
  SumLayout sum_layout_;
  TreeThreads threads_;
  Growth growth_;                       // single process, or lock step with other ranks
  LargeVector<std::int32_t> row_sums_;  // [n_rows][stride], with 0 in the padding
};

/// The layout of the sums of a bin.
SumLayout sum_layout_of(const TrainParams& params, int n_classes);

/// How many histograms a tree may keep.
std::size_t max_multi_output_histograms(std::size_t total_bins, const SumLayout& sum_layout);

}  // namespace abcgbm
