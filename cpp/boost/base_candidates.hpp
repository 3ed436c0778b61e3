// The candidates for the base class of a step: the trees of each, and the choice among them.
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

/// The step that was chosen. The proposal's nodes of rows are those of the grown trees.
struct Choice {
  std::vector<GrownTree> grown;
  Proposal proposal;
  std::vector<double> losses;  // after the step of each candidate, if there are several
};

/// Has the trees of all candidates grown, and takes the one with the smallest loss after its step.
Choice choose(const IterationPlan& plan, const IterationContext& context, const GrowTrees& grow,
              int n_threads);

/// How many of so many candidates are tried at the same time, at least one.
std::size_t n_candidates_at_a_time(std::size_t n_candidates, std::size_t n_rows,
                                   std::size_t n_classes);

}  // namespace abcgbm
