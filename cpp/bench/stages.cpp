// The module _bench, which is in no wheel: single stages of an iteration, and the limit of their
// speed.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "bench/estimates.hpp"
#include "bench/failing_new.hpp"
#include "bench/limit.hpp"
#include "bench/many_rows.hpp"
#include "bindings/arrays.hpp"
#include "boost/iteration.hpp"
#include "loss/scores.hpp"
#include "tree/histogram.hpp"
#include "tree/partition.hpp"
#include "tree/split.hpp"

namespace abcgbm {
namespace {

using Integers = nb::ndarray<nb::numpy, std::int64_t>;

constexpr std::size_t kLeaves = 20;

/// The stages of the next iteration, for the tree of class 0 without a base class.
class Stages {
 public:
  Stages(std::shared_ptr<Binned> binned, const Trainer& trainer, int n_threads)
      : binned_(std::move(binned)),
        labels_(trainer.labels()),
        scores_(trainer.scores()),
        n_threads_(n_threads),
        blocks_(blocks_of(binned_->layout, 1)),
        histogram_(binned_->layout.total_bins),
        search_(binned_->layout) {
    reset(rows_, labels_.n_rows());
    use_node(0);
    set_leaves();
  }

  void count_roots() {
    const auto residual = [&](std::size_t k, std::size_t first, std::span<std::int64_t>) {
      return residuals_of(scores_, labels_, static_cast<int>(k)) + first;
    };
    fill_roots(*binned_, labels_.weights(), n_classes(), residual, n_threads_, roots_);
  }

  Integers root_histogram(std::size_t k) const {
    require(k < n_classes(), "k: 0 to n_classes - 1");
    require(!roots_.lines.empty(), "root_histogram: count_roots comes first");
    std::vector<std::int64_t> sums(binned_->layout.total_bins);
    for (std::size_t bin = 0; bin < sums.size(); ++bin) sums[bin] = roots_.at(k, bin);
    return to_numpy(std::move(sums));
  }

  /// Selects the node to count and split.
  void use_node(std::size_t node) {
    require(node < rows_.nodes.size(), "node: 0, or 1 and 2 after split_root");
    node_ = node;
    node_rows_.assign(rows_.in_node(node).begin(), rows_.in_node(node).end());
    sums_.clear();
    total_ = {};
    for (const std::uint32_t row : node_rows_) {
      const std::int64_t weight = labels_.weights()[row];
      sums_.push_back({scores_.residual[row] * weight, weight});
      add(total_, sums_.back());
    }
    is_counted_ = false;
  }

  Integers node_rows() const {
    return to_numpy(std::vector<std::int64_t>(node_rows_.begin(), node_rows_.end()));
  }

  void count_node() {
    const RowsToAdd<2> rows{.rows = node_rows_, .sums = sums_};
    std::ranges::fill(histogram_, Sums<2>{});
    for (const Block& block : blocks_) {
      add_to_block<2>(*binned_, block, rows, histogram_);
      finish_block<2>(binned_->layout, block, total_, histogram_);
    }
    is_counted_ = true;
  }

  Integers node_histogram() const {
    std::vector<std::int64_t> sums;
    for (const Sums<2>& bin : histogram_) sums.insert(sums.end(), bin.begin(), bin.end());
    return to_numpy(std::move(sums), {histogram_.size(), 2});
  }

  /// The best split: feature (-1: none), bin, and the sums on its left.
  std::tuple<int, std::uint32_t, std::int64_t, std::int64_t> find_split() {
    require(is_counted_, "find_split: count_node comes first");
    Split<2> split;
    const NodeToSplit<2> node{.sums = total_, .histogram = histogram_, .rules = rules_};
    search_.try_features(binned_->layout.by_bin, node, split);
    search_.finish(node, split);
    if (node_ == 0) root_split_ = split;
    return {split.feature, split.bin, split.left[kResidual], split.left[kWeight]};
  }

  /// Returns how many rows go left.
  std::size_t split_root() {
    require(root_split_.feature >= 0, "split_root: find_split comes first, and must find one");
    reset(rows_, labels_.n_rows());
    const TreeNode split{.feature = root_split_.feature,
                         .bin = root_split_.bin,
                         .left_set = root_split_.left_set,
                         .missing_left = root_split_.missing_left};
    split_rows(rows_, 0, *binned_, split);
    return rows_.in_node(1).size();
  }

  /// Updates the scores by a tree for each class, and reverts that in the next call.
  double move() {
    std::vector<TreeMove> moves;
    moves.reserve(n_classes());
    std::vector<double> value(kLeaves);
    sign_ = -sign_;
    for (std::size_t i = 0; i < kLeaves; ++i) value[i] = sign_ * std::ldexp(double(i), -8);
    for (std::size_t k = 0; k < n_classes(); ++k) {
      moves.push_back(
          {.tree_class = static_cast<int>(k),
           .base = {},
           .node_of_row = std::span(leaf_of_row_).subspan(k * labels_.n_rows(), labels_.n_rows()),
           .value = value,
           .base_value = {}});
    }
    move_scores(scores_, labels_, moves, n_threads_);
    return scores_.loss;
  }

 private:
  std::size_t n_classes() const { return static_cast<std::size_t>(labels_.n_classes); }

  void set_leaves() {
    for (std::size_t k = 0; k < n_classes(); ++k) {
      for (std::size_t i = 0; i < labels_.n_rows(); ++i) {
        leaf_of_row_.push_back(static_cast<std::uint16_t>((k + i) % kLeaves));
      }
    }
  }

  std::shared_ptr<const Binned> binned_;
  Labels labels_;
  Scores scores_;
  int n_threads_;
  std::vector<Block> blocks_;
  HistogramGroups roots_;
  RowSets rows_;
  std::size_t node_ = 0;
  std::vector<std::uint32_t> node_rows_;
  std::vector<Sums<2>> sums_;  // of the node's rows
  Sums<2> total_{};
  Histogram<2> histogram_;
  bool is_counted_ = false;
  SplitRules rules_{.min_weight = 10};
  SplitSearch<2> search_;
  Split<2> root_split_;
  std::vector<std::uint16_t> leaf_of_row_;  // [n_classes][n_rows]
  double sign_ = -1.0;
};

std::unique_ptr<Stages> make_stages(std::shared_ptr<Binned> binned, const Trainer& trainer,
                                    int n_threads) {
  require(binned != nullptr && binned->n_rows == trainer.labels().n_rows(),
          "binned: the table of the training");
  require(!trainer.is_multi_output(), "trainer: without multi-output trees");
  require(n_threads >= 1, "n_threads: at least 1");
  return std::make_unique<Stages>(std::move(binned), trainer, n_threads);
}

double limit_seconds(int n_sums, int n_repeats) {
  require(n_sums == 2 || n_sums == 3 || n_sums == 8, "n_sums: 2, 3 or 8");
  require(n_repeats >= 1 && n_repeats <= 10000, "n_repeats: 1 to 10000");
  const nb::gil_scoped_release release;
  return seconds_per_add(n_sums, n_repeats);
}

/// The sum of 0 to n - 1, added up by several threads while the calling thread cannot allocate: a
/// job must have all it needs before helpers know of it.
std::size_t sum_without_memory(std::size_t n, int n_threads) {
  const nb::gil_scoped_release release;
  std::atomic<std::size_t> sum{0};
  parallel_for(n, n_threads, [](std::size_t, std::size_t) {});  // so that the threads exist
  const FailingNew failing;
  parallel_for(n, n_threads, [&](std::size_t i, std::size_t) { sum += i; });
  return sum;
}

bool memory_can_fail() {
  try {
    const FailingNew failing;
    return std::vector<int>(1).empty();
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace
}  // namespace abcgbm

NB_MODULE(_bench, m) {
  using namespace abcgbm;
  using namespace nb::literals;
  nb::module_::import_("abcgbm._core");  // defines the types
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Stages>(m, "Stages", "The stages of an iteration, for benchmarks.")
      .def(nb::new_(&make_stages), "binned"_a, "trainer"_a, "n_threads"_a = 1)
      .def("count_roots", &Stages::count_roots, Unlocked(),
           "Fill the root histograms of all classes.")
      .def("root_histogram", &Stages::root_histogram, "k"_a,
           "Sums of residuals of class k by bin, of shape (total_bins,).")
      .def("use_node", &Stages::use_node, "node"_a,
           "Select the node to count and split: 0, the root, or one of its children, 1 and 2.")
      .def("node_rows", &Stages::node_rows, "The rows of the node.")
      .def("count_node", &Stages::count_node, Unlocked(), "Fill the histogram of the node.")
      .def("node_histogram", &Stages::node_histogram,
           "Sums of residuals and of weights by bin, of shape (total_bins, 2).")
      .def("find_split", &Stages::find_split, Unlocked(),
           "The best split of the node: feature (-1: none), bin, residual and weight on its left.")
      .def("split_root", &Stages::split_root, Unlocked(),
           "Split the rows of the root by its best split; return how many go left.")
      .def("move_scores", &Stages::move, Unlocked(),
           "Update the scores by artificial trees, and revert that in the next call; return the "
           "loss.");
  bind_estimates(m);
  bind_many_rows(m);
  m.def("sum_without_memory", &sum_without_memory, "n"_a, "n_threads"_a,
        "The sum of 0 to n - 1, computed by a pool that cannot allocate.");
  m.def("memory_can_fail", &memory_can_fail,
        "Whether sum_without_memory works here; sanitizers have their own allocator.");
  m.def("limit_seconds", &limit_seconds, "n_sums"_a, "n_repeats"_a = 1000,
        "Seconds to add 2, 3 or 8 sums of one row to one bin, all in the L1 cache.");
}
