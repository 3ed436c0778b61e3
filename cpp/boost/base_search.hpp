// The losses after the steps of several base class candidates.
#pragma once

#include <span>
#include <vector>

#include "boost/line_search.hpp"
#include "loss/derivatives.hpp"

namespace abcgbm {

/// The loss after the step of each proposal, with its line search; infinite for a proposal without
/// a split. Scores change by leaf values, so exp is computed once for each leaf and once for each
/// row's base class, rather than for each row and class.
std::vector<double> losses_after(const TreeRows& rows, std::span<const Proposal> proposals,
                                 bool base_line_search, int n_threads);

}  // namespace abcgbm
