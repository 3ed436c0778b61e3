// Which threads grow which trees, in what order, and how much memory they may take for it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tree/tree.hpp"

namespace abcgbm {

/// How many threads grow one tree: one, but where half of them would have no tree all grow one
/// after the other together.
std::size_t threads_for(std::size_t n_trees, int n_threads);

/// How many histograms of so many bytes a thread may keep, if so many grow trees; at least 3.
inline constexpr std::size_t kMinHistograms = 3;
std::size_t max_histograms(std::size_t bytes, int n_threads);

/// What growing the tree has cost: the weight of the rows that were counted, of each split those of
/// the lighter side.
double work_of(const Tree& tree);

/// The order in which trees are begun: what is much work comes first, so that no thread begins with
/// it when the others are done.
std::vector<std::size_t> largest_first(std::span<const double> work);

}  // namespace abcgbm
