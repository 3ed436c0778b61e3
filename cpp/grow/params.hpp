// Parameters of training and of a single iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base_class.hpp"
#include "data/labels.hpp"
#include "loss/scores.hpp"
#include "tree/grower.hpp"

namespace abcgbm {

/// Split criterion and constraints.
struct SplitParams {
  bool hessian_split =
      false;  // in the gain rows count as their hessian (robust LogitBoost) instead of 1 (MART)
  std::int64_t min_weight = 10;
  double min_hessian_leaf = 0.0;
  double l2_regularization = 0.0;
  double categorical_smoothing = 10.0;  // in units of weight; see SplitRules
  double categorical_penalty =
      0.0;  // in multiples of the gain that sorting categories yields by chance
};

struct TrainParams {
  GrowParams grow;
  SplitParams split;
  double learning_rate = 0.1;
  double subsample = 1.0;  // fraction of the rows that are sampled for each iteration
  std::uint64_t seed = 0;
  bool multi_output = false;      // one tree for all classes in each iteration
  std::size_t n_projections = 0;  // on which multi-output trees search splits; 0: all classes
  bool base_line_search = false;  // search the base class's step length in every iteration
};

inline ScoreOrder order_of(const TrainParams& params) {
  return params.multi_output ? ScoreOrder::by_row : ScoreOrder::by_class;
}

/// The trees of an iteration: one for each of `classes` except the base class. Several bases are
/// candidates: the one with the smallest loss after its step is chosen. Without base derivatives
/// the residual of class k is r_k - p_k even if a base class takes the negated values of the trees
/// (the paper's "Mb").
struct IterationPlan {
  std::vector<int> classes;
  std::vector<BaseClass> bases;  // at least one; may be no class
  bool base_derivatives = false;
  double leaf_scale = 1.0;
  std::uint64_t iteration = 0;  // its number; part of the key of random draws
};

}  // namespace abcgbm
