// The search for a base class: what the loss would be after each candidate's step.
#pragma once

#include <span>
#include <vector>

#include "boost/line_search.hpp"
#include "loss/derivatives.hpp"

namespace abcgbm {

/// The loss after the step of each proposal, guarded as it will be; infinite for a proposal without
/// a split. Scores move by the values of leaves, so exp is taken once for each leaf, and once for
/// each row's base class, rather than for each row and class.
std::vector<double> losses_after(const TreeRows& rows, std::span<const Proposal> proposals,
                                 bool base_line_search, int n_threads);

}  // namespace abcgbm
