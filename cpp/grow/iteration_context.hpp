// What all trees of a step have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "base/storage.hpp"
#include "data/binned.hpp"
#include "grow/params.hpp"
#include "loss/derivatives.hpp"
#include "tree/scan.hpp"

namespace abcgbm {

/// What rows weigh in the trees of a step. Rows that are not drawn weigh nothing, but are moved by
/// the trees.
struct IterationWeights {
  LargeVector<std::int64_t> drawn;   // by row; none: all take part, as their labels say
  std::vector<std::int64_t> by_bin;  // the sums of the rows in each bin

  RowWeights by_row(const Labels& labels) const {
    return drawn.empty() ? labels.weights() : RowWeights(drawn);
  }
};

/// The weights of all rows, or of those that are drawn for a step of this number.
IterationWeights full_weights(const Binned& binned, const Labels& labels, int n_threads);
IterationWeights sampled_weights(const Binned& binned, const Labels& labels,
                                 const TrainParams& params, std::uint64_t iteration, int n_threads,
                                 const Storage& storage);

/// It stays as it is while the trees grow.
struct IterationContext {
  const TrainParams& params;
  TreeRows rows;
  std::span<const std::int64_t> bin_weights;  // the sums of the rows' weights
  SplitRules rules;                           // in units of this step's integer sums
  double leaf_scale = 1.0;
  std::uint64_t iteration = 0;  // its number
};

IterationContext make_context(const TrainParams& params, const TreeRows& rows,
                              std::span<const std::int64_t> bin_weights, const IterationPlan& plan);

/// The gain of one unit of the sums.
double gain_unit(const IterationContext& context);

/// The key of the draws of features for a tree: the same for both trees of a pair of classes, which
/// mirror each other.
std::uint64_t tree_key(const IterationContext& context, const ClassPair& pair);

/// The value of a leaf, given the sums of its rows: a Newton step, bounded, so that a tiny hessian
/// gives neither infinity nor NaN.
double leaf_value(const IterationContext& context, std::int64_t residual, std::int64_t hessian);

}  // namespace abcgbm
