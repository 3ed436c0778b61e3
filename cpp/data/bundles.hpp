// Sparse columns that never list the same row, and can be stored as one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/binned.hpp"

namespace abcgbm {

/// Bundles of at most `most_bins` bins each: those that list a good part of the rows, and all
/// others too where they are few. Sparse columns are by feature; those of others are empty.
std::vector<Bundle> find_bundles(std::span<const Feature> features,
                                 std::span<const SparseColumn> sparse, std::size_t n_rows,
                                 std::size_t max_bins);

}  // namespace abcgbm
