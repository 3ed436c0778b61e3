// Sparse columns that never list the same row, and can be stored as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/binned.hpp"

namespace abcgbm {

/// A bundle of sparse features, such as the one-hot columns of one category.
using Bundle = std::vector<std::uint32_t>;

/// The bundles of a table, each of at most `most_bins` bins: those that list a good part of the
/// rows, and all others too where they are few.
std::vector<Bundle> find_bundles(const Binned& binned, std::size_t most_bins);

}  // namespace abcgbm
