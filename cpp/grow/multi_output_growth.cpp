#include "grow/multi_output_growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/draw.hpp"
#include "base/fill.hpp"
#include "grow/multi_output_leaves.hpp"
#include "grow/schedule.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 15;  // of histogram, fits into the L1 cache

/// Converts an amount of hessian to units of the split search.
double units_of(const MultiOutputJob& job, double amount) {
  const TreeRows& rows = job.context.rows;
  return std::ldexp(amount, rows.scores.exponent - job.grid.shift) / rows.labels.unit;
}

/// The gain by chance in the projection in which categories are sorted recurs about once in the
/// other projections. Without hessians, if the projections are the classes, the expected magnitude
/// of a residual is twice the hessian.
double category_penalty(const MultiOutputJob& job) {
  const double penalty = job.context.params.split.categorical_penalty;
  const double clipped = std::min(units_of(job, penalty), 0x1p200);
  const double halved = job.sum_layout.has_hessian || job.projections.are_drawn() ? 1.0 : 0.5;
  return (job.projections.n > 1 ? 2.0 : 1.0) * halved * clipped;
}

SplitRules rules_of(const MultiOutputJob& job) {
  const SplitParams& split = job.context.params.split;
  const double n = job.projections.are_drawn() ? static_cast<double>(job.projections.n) : 1.0;
  const double hessian = std::min(std::ceil(units_of(job, split.min_hessian_leaf * n)), 0x1p62);
  const int shift = job.grid.weight_shift;
  const std::int64_t up = (std::int64_t{1} << shift) - 1;
  const double weight_unit = std::ldexp(job.context.rows.labels.unit, shift);
  return {.min_weight = (split.min_weight + up) >> shift,
          .min_hessian = static_cast<std::int64_t>(hessian),
          .l2 = std::min(units_of(job, split.l2_regularization), 0x1p200),
          .smoothing = split.categorical_smoothing / weight_unit,
          .category_penalty = category_penalty(job)};
}

/// The gain of one unit of the sums of the split search.
double multi_output_gain_unit(const MultiOutputJob& job) {
  const TreeRows& rows = job.context.rows;
  const int exponent = rows.scores.exponent - job.grid.shift;
  const int power =
      job.sum_layout.has_hessian ? -exponent : -(2 * exponent + job.grid.weight_shift);
  // The expectation over random projections is the sum over all classes, of hessians as well.
  const double n_sums =
      job.sum_layout.has_hessian ? static_cast<double>(rows.labels.n_classes) : 1.0;
  const double n_projections = static_cast<double>(job.projections.n);
  const double factor = job.projections.are_drawn() ? n_sums / n_projections : 1.0;
  return std::ldexp(rows.labels.unit, power) * factor;
}

}  // namespace

RootNode<MultiOutput> MultiOutputJob::root_node() const {
  const auto n_classes = static_cast<std::uint64_t>(context.rows.labels.n_classes);
  return {
      .sums = total,
      .rules = rules_of(*this),
      .gain_unit = multi_output_gain_unit(*this),
      .key = draw(context.params.seed, Draw::features, context.iteration, n_classes * n_classes)};
}

std::vector<std::int64_t> MultiOutputJob::abs_residuals(Rows rows) const {
  std::vector<std::int64_t> totals(sum_layout.n_projections, 0);
  for (const std::uint32_t row : rows) {
    const std::int32_t* sums = sums_of_rows.data() + row * sum_layout.stride();
    for (std::size_t d = 0; d < totals.size(); ++d) totals[d] += std::abs(sums[d]);
  }
  return totals;
}

void MultiOutputJob::sum_rows(Rows rows, bool negated, RowSums& sums) const {
  const std::size_t stride = sum_layout.stride();
  sums.resize(rows.size() * stride);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    constexpr std::size_t kAhead = 16;  // as rows of a small node are scattered in memory
    __builtin_prefetch(sums_of_rows.data() + rows[std::min(j + kAhead, rows.size() - 1)] * stride);
    std::copy_n(sums_of_rows.data() + rows[j] * stride, stride, sums.data() + j * stride);
  }
  if (!negated) return;
  for (std::int32_t& sum : sums) sum = -sum;
}

void MultiOutputJob::clear(const Block& block, Bins histogram) const {
  const std::size_t stride = sum_layout.stride();
  std::ranges::fill(
      histogram.subspan(block.first_bin * stride, (block.last_bin - block.first_bin) * stride), 0);
}

void MultiOutputJob::add(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const {
  add_to_multi_output(binned, sum_layout, block, {.rows = rows, .sums = sums.data()}, histogram);
}

void MultiOutputJob::finish(const Block& block, const MultiOutputSums& node, Bins histogram) const {
  finish_multi_output(binned.layout, sum_layout, block, node, histogram);
}

SumLayout sum_layout_of(const TrainParams& params, int n_classes) {
  return {.n_projections = n_projections_of(params.n_projections, n_classes),
          .has_hessian = params.split.hessian_split};
}

std::size_t max_multi_output_histograms(std::size_t total_bins, const SumLayout& sum_layout) {
  return max_histograms(total_bins * sum_layout.stride() * sizeof(std::int32_t), 1);
}

MultiOutputDriver::MultiOutputDriver(const Binned& binned, const Labels& labels,
                                     const TrainParams& params, int n_threads,
                                     const Storage& storage)
    : binned_(&binned),
      n_projections_(params.n_projections),
      n_threads_(n_threads),
      sum_layout_(sum_layout_of(params, labels.n_classes)),
      threads_{.n = static_cast<std::size_t>(n_threads),
               .blocks = blocks_of(binned.layout, static_cast<std::size_t>(n_threads),
                                   kBlockBytes / sizeof(std::int32_t) / sum_layout_.stride())},
      growth_(make_growth(labels.communicator(), storage)),
      row_sums_(zeros<std::int32_t>(binned.n_rows * sum_layout_.stride(), storage)) {}

MultiOutputDriver::Growth MultiOutputDriver::make_growth(const Communicator& communicator,
                                                         const Storage& storage) const {
  const MultiOutput traits{.sum_layout = sum_layout_};
  if (!communicator.is_single()) {
    return LockStep<MultiOutputJob>(traits, *binned_, communicator, {1, threads_, n_threads_},
                                    storage);
  }
  const std::size_t max_kept = max_multi_output_histograms(binned_->layout.total_bins, sum_layout_);
  return TreeState<MultiOutputJob>(traits, *binned_, max_kept, threads_.n, storage);
}

const TreeState<MultiOutputJob>& MultiOutputDriver::grow_nodes(const MultiOutputJob& job) {
  if (auto* lock_step = std::get_if<LockStep<MultiOutputJob>>(&growth_)) {
    lock_step->grow(std::span(&job, 1));
    return lock_step->state(0);
  }
  auto& state = std::get<TreeState<MultiOutputJob>>(growth_);
  start_tree(job, state);
  build_histograms_and_search(job, threads_, state);
  while (split_best(job, state)) build_histograms_and_search(job, threads_, state);
  return state;
}

GrownTree MultiOutputDriver::grow(const IterationContext& context) {
  const TreeRows& rows = context.rows;
  const Projections projections =
      projections_of(n_projections_, rows.labels.n_classes, context.params.seed, context.iteration);
  const SearchGrid grid =
      search_grid(projections, own_residual_sum(rows, n_threads_), rows.labels.total_bits);
  fill_row_sums(rows, projections, grid, sum_layout_, n_threads_, row_sums_);
  const MultiOutputJob job{
      .binned = *binned_,
      .context = context,
      .projections = projections,
      .grid = grid,
      .sum_layout = sum_layout_,
      .sums_of_rows = row_sums_,
      .total = total_row_sums(rows.labels, row_sums_, sum_layout_.stride(), n_threads_)};
  const TreeState<MultiOutputJob>& state = grow_nodes(job);
  return finish_multi_output_tree(context, state.grower.nodes(), state.rows, n_threads_);
}

}  // namespace abcgbm
