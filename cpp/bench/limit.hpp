// The speed limit of histograms: their bare loop on data in the L1 cache.
#pragma once

namespace abcgbm {

/// Seconds to add the `n_sums` sums of one row to one bin: 2 or 3 as in a node's histogram, 8 as in
/// root histograms. The minimum of `n_repeats` runs of a fraction of a millisecond.
double seconds_per_add(int n_sums, int n_repeats);

}  // namespace abcgbm
