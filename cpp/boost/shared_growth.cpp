#include "boost/shared_growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/draw.hpp"
#include "base/fill.hpp"
#include "boost/schedule.hpp"
#include "boost/shared_leaves.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 15;  // of histogram, in the nearest cache

/// An amount of hessian in units of the search.
double units_of(const SharedJob& job, double amount) {
  const TreeRows& rows = job.context.rows;
  return std::ldexp(amount, rows.scores.exponent - job.grid.shift) / rows.labels.unit;
}

/// What chance gains in the direction in which categories are sorted it gains about once more in
/// the others. Without hessians, and where directions are the classes, the expected size of a
/// residual is twice the hessian.
double level_price(const SharedJob& job) {
  const double penalty = job.context.params.split.categorical_penalty;
  const double price = std::min(units_of(job, penalty), 0x1p200);
  const double halved = job.form.has_hessian || job.directions.are_drawn() ? 1.0 : 0.5;
  return (job.directions.n > 1 ? 2.0 : 1.0) * halved * price;
}

SplitRules rules_of(const SharedJob& job) {
  const SplitParams& split = job.context.params.split;
  const double n = job.directions.are_drawn() ? static_cast<double>(job.directions.n) : 1.0;
  const double hessian = std::min(std::ceil(units_of(job, split.min_hessian_leaf * n)), 0x1p62);
  const int shift = job.grid.weight_shift;
  const std::int64_t up = (std::int64_t{1} << shift) - 1;
  const double weight_unit = std::ldexp(job.context.rows.labels.unit, shift);
  return {.min_weight = (split.min_weight + up) >> shift,
          .min_hessian = static_cast<std::int64_t>(hessian),
          .l2 = std::min(units_of(job, split.l2_regularization), 0x1p200),
          .smoothing = split.categorical_smoothing / weight_unit,
          .level_price = level_price(job)};
}

/// The gain of one unit of the sums of the search.
double shared_gain_unit(const SharedJob& job) {
  const TreeRows& rows = job.context.rows;
  const int exponent = rows.scores.exponent - job.grid.shift;
  const int power = job.form.has_hessian ? -exponent : -(2 * exponent + job.grid.weight_shift);
  // What is expected of a drawn direction is the sum over all classes, of hessians too.
  const double n_sums = job.form.has_hessian ? static_cast<double>(rows.labels.n_classes) : 1.0;
  const double n_directions = static_cast<double>(job.directions.n);
  const double factor = job.directions.are_drawn() ? n_sums / n_directions : 1.0;
  return std::ldexp(rows.labels.unit, power) * factor;
}

}  // namespace

RootNode<AllClasses> SharedJob::root_node() const {
  const auto n_classes = static_cast<std::uint64_t>(context.rows.labels.n_classes);
  return {.sums = total,
          .rules = rules_of(*this),
          .gain_unit = shared_gain_unit(*this),
          .key = draw(context.params.seed, Draw::features, context.step, n_classes * n_classes)};
}

std::vector<std::int64_t> SharedJob::residual_size(Rows rows) const {
  std::vector<std::int64_t> size(form.n_directions, 0);
  for (const std::uint32_t row : rows) {
    const std::int32_t* sums = sums_of_rows.data() + row * form.stride();
    for (std::size_t d = 0; d < size.size(); ++d) size[d] += std::abs(sums[d]);
  }
  return size;
}

void SharedJob::sum_rows(Rows rows, bool negated, RowSums& sums) const {
  const std::size_t stride = form.stride();
  sums.resize(rows.size() * stride);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    constexpr std::size_t kAhead = 16;  // rows of a small node are scattered in memory
    __builtin_prefetch(sums_of_rows.data() + rows[std::min(j + kAhead, rows.size() - 1)] * stride);
    std::copy_n(sums_of_rows.data() + rows[j] * stride, stride, sums.data() + j * stride);
  }
  if (!negated) return;
  for (std::int32_t& sum : sums) sum = -sum;
}

void SharedJob::clear(const Block& block, Bins histogram) const {
  const std::size_t stride = form.stride();
  std::ranges::fill(
      histogram.subspan(block.first_bin * stride, (block.last_bin - block.first_bin) * stride), 0);
}

void SharedJob::count(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const {
  count_shared(binned, form, block, {.rows = rows, .sums = sums.data()}, histogram);
}

void SharedJob::finish(const Block& block, const SharedSums& node, Bins histogram) const {
  finish_shared(binned.layout, form, block, node, histogram);
}

SharedForm form_of(const TrainParams& params, int n_classes) {
  return {.n_directions = n_directions_of(params.n_directions, n_classes),
          .has_hessian = params.split.hessian_split};
}

std::size_t most_shared_histograms(std::size_t total_bins, const SharedForm& form) {
  return most_histograms(total_bins * form.stride() * sizeof(std::int32_t), 1);
}

SharedDriver::SharedDriver(const Binned& binned, const Labels& labels, const TrainParams& params,
                           int n_threads, const Storage& storage)
    : binned_(&binned),
      n_directions_(params.n_directions),
      n_threads_(n_threads),
      form_(form_of(params, labels.n_classes)),
      threads_{.n = static_cast<std::size_t>(n_threads),
               .blocks = blocks_of(binned.layout, static_cast<std::size_t>(n_threads),
                                   kBlockBytes / sizeof(std::int32_t) / form_.stride())},
      growth_(make_growth(labels.ranks(), storage)),
      row_sums_(zeros<std::int32_t>(binned.n_rows * form_.stride(), storage)) {}

SharedDriver::Growth SharedDriver::make_growth(const Reducer& ranks, const Storage& storage) const {
  const AllClasses measure{.form = form_};
  if (!ranks.is_alone()) {
    return LockStep<SharedJob>(measure, *binned_, ranks, {1, threads_, n_threads_}, storage);
  }
  const std::size_t most = most_shared_histograms(binned_->layout.total_bins, form_);
  return TreeState<SharedJob>(measure, *binned_, most, threads_.n, storage);
}

const TreeState<SharedJob>& SharedDriver::grow_nodes(const SharedJob& job) {
  if (auto* lock_step = std::get_if<LockStep<SharedJob>>(&growth_)) {
    lock_step->grow(std::span(&job, 1));
    return lock_step->state(0);
  }
  auto& state = std::get<TreeState<SharedJob>>(growth_);
  start_tree(job, state);
  count_nodes(job, threads_, state);
  while (split_best(job, state)) count_nodes(job, threads_, state);
  return state;
}

GrownTree SharedDriver::grow(const StepContext& context) {
  const TreeRows& rows = context.rows;
  const Directions directions =
      directions_of(n_directions_, rows.labels.n_classes, context.params.seed, context.step);
  const SearchGrid grid =
      search_grid(directions, own_residual_sum(rows, n_threads_), rows.labels.total_bits);
  fill_row_sums(rows, directions, grid, form_, n_threads_, row_sums_);
  const SharedJob job{.binned = *binned_,
                      .context = context,
                      .directions = directions,
                      .grid = grid,
                      .form = form_,
                      .sums_of_rows = row_sums_,
                      .total = total_row_sums(rows.labels, row_sums_, form_.stride(), n_threads_)};
  const TreeState<SharedJob>& state = grow_nodes(job);
  return finish_shared_tree(context, state.grower.nodes(), state.rows, n_threads_);
}

}  // namespace abcgbm
