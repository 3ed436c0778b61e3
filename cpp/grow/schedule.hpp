// Assignment of trees to threads, and limits on the memory of histograms.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tree/tree.hpp"

namespace abcgbm {

/// The number of threads that grow one tree together: all, one tree after the other, if otherwise
/// at least half of them would have no tree; else one.
std::size_t threads_for(std::size_t n_trees, int n_threads);

/// How many histograms of this size a thread may keep, at least 3. The memory of histograms is
/// limited; fewer histograms mean more work, never another tree.
inline constexpr std::size_t kMinHistograms = 3;
std::size_t max_histograms(std::size_t bytes, int n_threads);

/// The cost of growing a tree: the weight of the rows that are added to histograms, which for each
/// split are those of the lighter side.
double work_of(const Tree& tree);

/// The order in which to grow trees: most work first, so that no thread starts a large tree when
/// the others are done.
std::vector<std::size_t> largest_first(std::span<const double> work);

}  // namespace abcgbm
