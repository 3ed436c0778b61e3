// What is asked of a training, and of one of its steps.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base_class.hpp"
#include "data/labels.hpp"
#include "loss/scores.hpp"
#include "tree/grower.hpp"

namespace abcgbm {

/// What a cut is measured by, and what it must leave on each side.
struct SplitParams {
  bool hessian_split = false;  // rows weigh their hessian in the gain, not 1 (robust LogitBoost)
  std::int64_t min_weight = 10;
  double min_hessian_leaf = 0.0;
  double l2_regularization = 0.0;
  double categorical_smoothing = 10.0;  // weight, see SplitRules
  double categorical_penalty = 0.0;     // times what chance gains by sorting categories
};

struct TrainParams {
  GrowParams grow;
  SplitParams split;
  double learning_rate = 0.1;
  double subsample = 1.0;  // share of the rows that a step's trees are grown on
  std::uint64_t seed = 0;
  bool multi_output = false;      // one tree a step, for all classes
  std::size_t n_projections = 0;  // that a shared tree's cuts are measured in; 0: all classes
  bool base_line_search = false;  // how far the base class moves is sought at every step
};

inline ScoreOrder order_of(const TrainParams& params) {
  return params.multi_output ? ScoreOrder::by_row : ScoreOrder::by_class;
}

/// What a step grows: a tree for each of `classes` but the base class. Several bases are
/// candidates: the one with the smallest loss after its step is taken. Without base derivatives the
/// residual of class k is r_k - p_k even where a base class takes the trees' values with a minus
/// sign (the paper's "Mb").
struct IterationPlan {
  std::vector<int> classes;
  std::vector<BaseClass> bases;  // at least one, which may be none
  bool base_derivatives = false;
  double leaf_scale = 1.0;
  std::uint64_t iteration = 0;  // its number; part of the key of random draws
};

}  // namespace abcgbm
