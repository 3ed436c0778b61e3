// The data that all trees of an iteration share.
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

/// The weights of rows in one iteration. Rows that are not sampled have weight 0, but their scores
/// are updated, too.
struct IterationWeights {
  LargeVector<std::int64_t> sampled;  // by row; empty: the labels' weights
  std::vector<std::int64_t> by_bin;   // sums of the rows in each bin

  RowWeights by_row(const Labels& labels) const {
    return sampled.empty() ? labels.weights() : RowWeights(sampled);
  }
};

/// The weights of all rows, or of those that are sampled for an iteration.
IterationWeights full_weights(const Binned& binned, const Labels& labels, int n_threads);
IterationWeights sampled_weights(const Binned& binned, const Labels& labels,
                                 const TrainParams& params, std::uint64_t iteration, int n_threads,
                                 const Storage& storage);

/// Constant while the trees grow.
struct IterationContext {
  const TrainParams& params;
  TreeRows rows;
  std::span<const std::int64_t> bin_weights;  // sums of the rows' weights
  SplitRules rules;                           // in units of the integer sums
  double leaf_scale = 1.0;
  std::uint64_t iteration = 0;  // its number
};

IterationContext make_context(const TrainParams& params, const TreeRows& rows,
                              std::span<const std::int64_t> bin_weights, const IterationPlan& plan);

/// The gain of one unit of the sums.
double gain_unit(const IterationContext& context);

/// The key of feature sampling in a tree. It is the same for both trees of a pair of classes, as
/// one is the mirror image of the other.
std::uint64_t tree_key(const IterationContext& context, const ClassPair& pair);

/// The value of a leaf: a Newton step, limited so that a tiny hessian gives neither infinity nor
/// NaN.
double leaf_value(const IterationContext& context, std::int64_t residual, std::int64_t hessian);

}  // namespace abcgbm
