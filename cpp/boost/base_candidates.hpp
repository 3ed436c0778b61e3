// The trees of all candidates for the base class of an iteration, and the choice among them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "boost/line_search.hpp"
#include "grow/params.hpp"
#include "grow/tree_growth.hpp"
#include "loss/derivatives.hpp"

namespace abcgbm {

/// Grows a tree for each pair of classes.
using GrowTrees = std::function<std::vector<GrownTree>(std::span<const ClassPair>)>;

/// The chosen step. The proposal refers to the rows' leaves in `grown`.
struct Choice {
  std::vector<GrownTree> grown;
  Proposal proposal;
  std::vector<double> losses;  // after the step of each candidate, if there are several
};

/// Grows the trees of all candidates, and chooses the one with the smallest loss after its step.
Choice choose(const IterationPlan& plan, const IterationContext& context, const GrowTrees& grow,
              int n_threads);

/// The number of candidates whose trees are in memory at the same time, at least one.
std::size_t n_candidates_at_a_time(std::size_t n_candidates, std::size_t n_rows,
                                   std::size_t n_classes);

}  // namespace abcgbm
