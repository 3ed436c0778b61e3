// All sums, merges and maxima over the rows of a table; docs/determinism.md lists them. Sums are
// integers, so neither the order of the rows nor their division into shards matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/binned.hpp"
#include "data/labels.hpp"

namespace abcgbm {

struct WeightedValue {
  double value;
  std::int64_t weight;
};

/// The ascending distinct values of a column with the sums of their weights. -0.0 counts as 0.0;
/// NaN is left out.
std::vector<WeightedValue> distinct_values(std::span<const double> column,
                                           std::span<const std::int64_t> weight);

/// The same if there are few of them, otherwise nothing; gives up after a part of the rows.
std::optional<std::vector<WeightedValue>> few_distinct_values(std::span<const double> column,
                                                              std::span<const std::int64_t> weight);

/// The same by sorting all rows.
std::vector<WeightedValue> sorted_values(std::span<const double> column,
                                         std::span<const std::int64_t> weight);

/// Digest of the values in the rows from `first_row` on. Digests of parts add up to that of all
/// rows. A changed value, or two swapped ones, change it.
std::uint64_t column_digest(std::span<const double> column, std::size_t first_row);

/// The sum of the weights; above 2^62 some larger number.
std::int64_t total_weight(RowWeights weight, std::size_t n_rows);

/// The number of rows with each code.
template <class Code>
std::vector<std::size_t> count_codes(std::span<const Code> codes, std::size_t n_bins) {
  std::vector<std::size_t> count(n_bins, 0);
  for (const Code code : codes) ++count[code];
  return count;
}

/// Whether a sparse column lists any of the marked rows.
bool lists_any(const SparseColumn& column, const std::vector<bool>& has_row);

}  // namespace abcgbm
