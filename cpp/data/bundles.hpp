// Exclusive feature bundling: sparse columns that never list the same row are stored as one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/binned.hpp"

namespace abcgbm {

/// Bundles of at most `max_bins` bins each: all that list a good part of the rows, and the others
/// if they are few. Sparse columns are given by feature; those of dense features are empty.
std::vector<Bundle> find_bundles(std::span<const Feature> features,
                                 std::span<const SparseColumn> sparse, std::size_t n_rows,
                                 std::size_t max_bins);

}  // namespace abcgbm
