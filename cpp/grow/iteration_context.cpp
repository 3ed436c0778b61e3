#include "grow/iteration_context.hpp"

#include <algorithm>
#include <cmath>

#include "base/draw.hpp"
#include "loss/grid.hpp"
#include "tree/histogram.hpp"

namespace abcgbm {
namespace {

constexpr double kLargestLeaf = 50.0;  // limit of a leaf value before the learning rate

/// Converts an amount of hessian to units of the integer sums.
double hessian_units(const TreeRows& rows, double amount) {
  return std::ldexp(amount, rows.scores.exponent) / rows.labels.unit;
}

/// The weight of each bin over the rows of all ranks.
std::vector<std::int64_t> bin_weights(const Binned& binned, const Labels& labels, RowWeights weight,
                                      int n_threads) {
  std::vector<std::int64_t> weights = root_weights(binned, weight, n_threads);
  labels.communicator().allreduce_sum(weights);
  return weights;
}

}  // namespace

IterationWeights full_weights(const Binned& binned, const Labels& labels, int n_threads) {
  return {.sampled = {}, .by_bin = bin_weights(binned, labels, labels.weights(), n_threads)};
}

IterationWeights sampled_weights(const Binned& binned, const Labels& labels,
                                 const TrainParams& params, std::uint64_t iteration, int n_threads,
                                 const Storage& storage) {
  const std::size_t n_sampled = std::max<std::size_t>(
      1, labels.n_rows());  // at least one, as an empty array stands for all rows
  IterationWeights weights{.sampled = LargeVector<std::int64_t>(n_sampled, storage), .by_bin = {}};
  for (std::size_t i = 0; i < labels.n_rows(); ++i) {
    const std::uint64_t number = labels.row_id(i);
    const bool is_sampled =
        to_unit(draw(params.seed, Draw::rows, iteration, number)) < params.subsample;
    weights.sampled[i] = is_sampled ? labels.weights()[i] : 0;
  }
  if (!params.multi_output) {  // multi-output trees do not use them
    weights.by_bin = bin_weights(binned, labels, RowWeights(weights.sampled), n_threads);
  }
  return weights;
}

IterationContext make_context(const TrainParams& params, const TreeRows& rows,
                              std::span<const std::int64_t> bin_weights,
                              const IterationPlan& plan) {
  const SplitParams& split = params.split;
  const double min_hessian =
      std::min(std::ceil(hessian_units(rows, split.min_hessian_leaf)), 0x1p62);
  // l2 is limited so that scores can be multiplied; all leaf values are 0 long before.
  const double l2 = std::min(hessian_units(rows, split.l2_regularization), 0x1p200);
  return {
      .params = params,
      .rows = rows,
      .bin_weights = bin_weights,
      .rules = {.min_weight = split.min_weight,
                .min_hessian = std::max<std::int64_t>(1, static_cast<std::int64_t>(min_hessian)),
                .l2 = l2,
                .smoothing = split.categorical_smoothing / rows.labels.unit,
                .category_penalty =
                    std::min(hessian_units(rows, split.categorical_penalty), 0x1p200)},
      .leaf_scale = plan.leaf_scale,
      .iteration = plan.iteration};
}

double gain_unit(const IterationContext& context) {
  const int power = context.params.split.hessian_split ? -1 : -2;
  return std::ldexp(context.rows.labels.unit, power * context.rows.scores.exponent);
}

std::uint64_t tree_key(const IterationContext& context, const ClassPair& pair) {
  const auto [low, high] = std::minmax({pair.tree_class, pair.base.number_or(pair.tree_class)});
  const auto n_classes = static_cast<std::uint64_t>(context.rows.labels.n_classes);
  const std::uint64_t number =
      static_cast<std::uint64_t>(low) * n_classes + static_cast<std::uint64_t>(high);
  return draw(context.params.seed, Draw::features, context.iteration, number);
}

double leaf_value(const IterationContext& context, std::int64_t residual, std::int64_t hessian) {
  if (residual == 0) return 0.0;
  const double h = static_cast<double>(hessian) + context.rules.l2;
  const double newton = context.leaf_scale * (static_cast<double>(residual) / h);
  return on_leaf_grid(context.params.learning_rate *
                      std::clamp(newton, -kLargestLeaf, kLargestLeaf));
}

}  // namespace abcgbm
