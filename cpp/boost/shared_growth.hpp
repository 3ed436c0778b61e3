// A tree for all classes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "boost/growth.hpp"
#include "boost/lock_step.hpp"
#include "boost/step_context.hpp"
#include "boost/tree_growth.hpp"
#include "data/binned.hpp"
#include "loss/directions.hpp"
#include "tree/measure.hpp"

namespace abcgbm {

/// A shared tree to grow, and what it is grown from.
struct SharedJob {
  using Measure = AllClasses;
  using RowSums = SharedBins;
  using Bins = Measure::Bins;
  using Rows = std::span<const std::uint32_t>;
  static constexpr std::size_t kChunk = 2048;  // rows whose sums stay in L2, of some directions
  static constexpr bool kKnowsRoot = false;

  const Binned& binned;
  const StepContext& context;
  const Directions& directions;
  SearchGrid grid;
  SharedForm form;
  std::span<const std::int32_t> sums_of_rows;  // [n_rows][stride]
  SharedSums total;                            // of all rows

  const GrowParams& params() const { return context.params.grow; }
  std::size_t work_of_a_bin() const { return form.stride() / 4; }
  RootNode<Measure> root_node() const;
  std::vector<std::int64_t> residual_size(Rows rows) const;
  void sum_rows(Rows rows, bool negated, RowSums& sums) const;
  void clear(const Block& block, Bins histogram) const;
  void count(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const;
  void finish(const Block& block, const SharedSums& node, Bins histogram) const;
};

/// Grows the shared tree of a step. Holds buffers to use again at each step. The table is kept by
/// reference.
class SharedDriver {
 public:
  SharedDriver(const Binned& binned, const Labels& labels, const TrainParams& params, int n_threads,
               const Storage& storage);

  GrownTree grow(const StepContext& context);

 private:
  using Growth = std::variant<TreeState<SharedJob>, LockStep<SharedJob>>;
  Growth make_growth(const Reducer& ranks, const Storage& storage) const;
  const TreeState<SharedJob>& grow_nodes(const SharedJob& job);

  const Binned* binned_;
  std::size_t n_directions_;  // that are drawn; 0: all classes
  int n_threads_;
  SharedForm form_;
  TreeThreads threads_;
  Growth growth_;                       // alone, or with other ranks
  LargeVector<std::int32_t> row_sums_;  // [n_rows][stride], 0 where nothing is summed
};

/// The sums of a bin of a shared tree.
SharedForm form_of(const TrainParams& params, int n_classes);

/// How many histograms a shared tree keeps at most.
std::size_t most_shared_histograms(std::size_t total_bins, const SharedForm& form);

}  // namespace abcgbm
