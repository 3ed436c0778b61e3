#include "boost/memory.hpp"

#include <algorithm>
#include <cstdint>

#include "boost/base_candidates.hpp"
#include "boost/base_losses.hpp"
#include "grow/lock_step.hpp"
#include "grow/multi_output_growth.hpp"
#include "grow/rank_driver.hpp"
#include "grow/root_histograms.hpp"
#include "grow/schedule.hpp"
#include "tree/histogram.hpp"
#include "tree/partition.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kNode = sizeof(std::uint16_t);  // leaf of a row in a tree
constexpr std::size_t kLoss = sizeof(double);         // of a row
constexpr std::size_t kCopies = 4;  // of a histogram in lock step: kept, ahead, counted, received
constexpr std::size_t kLabel = sizeof(std::int32_t) + sizeof(std::int64_t);  // and weight

/// The number of trees that grow at a time: those of an iteration or, in a search, one for each
/// thread.
int n_growing_of(const TrainingSize& size) {
  if (size.has_ranks) return static_cast<int>(n_trees_together(size.n_rows, size.n_classes));
  return size.n_candidates > 1 ? size.n_threads : std::min(size.n_threads, size.n_classes);
}

std::size_t histogram_bytes(const TrainingSize& size, const TrainParams& params, int n_growing) {
  const std::size_t sums = params.split.hessian_split ? sizeof(Sums<3>) : sizeof(Sums<2>);
  const std::size_t bytes = std::max<std::size_t>(1, size.total_bins * sums);
  const auto n_leaves = static_cast<std::size_t>(params.grow.max_leaf_nodes);
  const auto n_trees = static_cast<std::size_t>(n_growing);
  const std::size_t max_kept =
      size.has_ranks ? max_in_lock_step(bytes, n_trees)
                     : max_histograms(bytes, std::min(size.n_threads, size.n_classes));
  const std::size_t n = std::min(max_kept, std::max(n_leaves, kMinHistograms));
  return n_trees * n * bytes * (size.has_ranks ? kCopies : 1);
}

/// The root histograms of a batch: residuals, hessians if wanted, and weights.
std::size_t root_bytes(const TrainingSize& size, bool has_hessian) {
  const std::size_t total_bins = std::max<std::size_t>(1, size.total_bins);
  const std::size_t n_groups = (static_cast<std::size_t>(size.n_classes) + kLane - 1) / kLane;
  const std::size_t batch =
      std::min(n_groups, max_in_batch(total_bins) / kLane) * total_bins * sizeof(Line);
  return (has_hessian ? 2 : 1) * batch + total_bins * sizeof(std::int64_t);
}

/// The bytes for each leaf of a multi-output tree: 64-bit sums of leaves and nodes, values as
/// floats and, for two trials, as doubles; and the sums of the split search, of nodes and splits.
std::size_t leaf_bytes(std::size_t n_classes, std::size_t bin) {
  const std::size_t sums = 6 * sizeof(std::int64_t);
  const std::size_t values = sizeof(float) + 4 * sizeof(double);
  return n_classes * (sums + values) + 4 * bin;
}

/// The memory of training multi-output trees.
std::vector<MemoryPart> multi_output_bytes(const TrainingSize& size, const TrainParams& params) {
  const auto n_classes = static_cast<std::size_t>(size.n_classes);
  const auto n_threads = static_cast<std::size_t>(size.n_threads);
  const auto max_leaves = static_cast<std::size_t>(params.grow.max_leaf_nodes);
  const std::size_t n_leaves = std::min(max_leaves, size.n_rows);
  const SumLayout sum_layout = sum_layout_of(params, size.n_classes);
  const std::size_t bin = sum_layout.stride() * sizeof(std::int32_t);
  const std::size_t total_bins = std::max<std::size_t>(1, size.total_bins);
  const std::size_t max_kept = size.has_ranks ? kCopies * max_in_lock_step(total_bins * bin, 1)
                                              : max_multi_output_histograms(total_bins, sum_layout);
  const std::size_t n_histograms = std::min(max_kept, std::max(n_leaves, kMinHistograms));
  const std::size_t a_score = sizeof(double) + sizeof(std::int32_t);  // raw score, residual
  return {
      {.name = "scores of the rows", .bytes = size.n_rows * (n_classes * a_score + kLoss)},
      {.name = "sums of the rows",
       .bytes = (size.n_rows + n_threads * MultiOutputJob::kChunk) * bin},
      {.name = "signs of the projections", .bytes = n_classes * bin, .is_of_rows = false},
      {.name = "leaves of the rows", .bytes = size.n_rows * (kNode + kLoss)},
      {.name = "labels and weights", .bytes = size.n_rows * (kLabel + sizeof(std::int64_t))},
      {.name = "rows by node", .bytes = size.n_rows * kRowSetBytes},
      {.name = "histograms", .bytes = n_histograms * total_bins * bin, .is_of_rows = false},
      {.name = "sums of the leaves",
       .bytes = n_leaves * leaf_bytes(n_classes, bin),
       .is_of_rows = false},
  };
}

}  // namespace

std::vector<MemoryPart> training_bytes(const TrainingSize& size, const TrainParams& params) {
  if (params.multi_output) return multi_output_bytes(size, params);
  const auto n_classes = static_cast<std::size_t>(size.n_classes);
  const int n_growing = n_growing_of(size);
  const std::size_t n_tried = n_candidates_at_a_time(size.n_candidates, size.n_rows, n_classes);
  const std::size_t a_score = sizeof(double) + sizeof(std::int64_t);  // raw score, residual
  const std::size_t row_sets = static_cast<std::size_t>(n_growing) * kRowSetBytes;
  const std::size_t sampled = sizeof(std::int64_t);
  return {
      {.name = "scores of the rows", .bytes = size.n_rows * (n_classes * a_score + kLoss)},
      {.name = "trials of the line search",
       .bytes = size.n_rows * (BaseLosses::bytes_per_row() + kLoss)},
      {.name = "leaves of the rows", .bytes = size.n_rows * n_tried * n_classes * kNode},
      {.name = "losses of the candidates",
       .bytes = size.n_candidates > 1 ? size.n_rows * n_tried * kLoss : 0},
      {.name = "labels and weights", .bytes = size.n_rows * (kLabel + sampled)},
      {.name = "rows by node", .bytes = size.n_rows * row_sets},
      {.name = "histograms",
       .bytes = histogram_bytes(size, params, n_growing),
       .is_of_rows = false},
      {.name = "root histograms",
       .bytes = root_bytes(size, params.split.hessian_split),
       .is_of_rows = false},
  };
}

std::size_t validation_bytes(std::size_t n_rows, int n_classes, int n_threads) {
  const auto n_trees = static_cast<std::size_t>(n_classes);  // of an iteration
  const auto n_following = static_cast<std::size_t>(std::min(n_classes, n_threads));
  const std::size_t leading = sizeof(std::int32_t);
  return n_rows * (n_trees * (sizeof(double) + kNode) + n_following * kRowSetBytes + kLoss +
                   leading + kLabel);
}

}  // namespace abcgbm
