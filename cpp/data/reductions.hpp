// All that is summed, merged or maximised over the rows of a table; docs/determinism.md lists it.
// Sums are integers, so neither the order of the rows nor who holds them matters.
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

/// The distinct values of a column in ascending order, with the sums of their weights. -0.0 is 0.0;
/// NaN is left out.
std::vector<WeightedValue> distinct_values(std::span<const double> column,
                                           std::span<const std::int64_t> weight);

/// The same if there are few of them; else nothing, after a look at some rows.
std::optional<std::vector<WeightedValue>> few_distinct_values(std::span<const double> column,
                                                              std::span<const std::int64_t> weight);

/// The same by sorting all rows.
std::vector<WeightedValue> sorted_values(std::span<const double> column,
                                         std::span<const std::int64_t> weight);

/// The digest of a column's values in the rows from `first_row` on. Those of parts add up to that
/// of all rows; it is another if a value is, or if two change places.
std::uint64_t column_digest(std::span<const double> column, std::size_t first_row);

/// The sum of the weights of all rows; of more than 2^62 some number above that.
std::int64_t total_weight(RowWeights weight, std::size_t n_rows);

/// How many rows have each code.
template <class Code>
std::vector<std::size_t> count_codes(std::span<const Code> codes, std::size_t n_bins) {
  std::vector<std::size_t> count(n_bins, 0);
  for (const Code code : codes) ++count[code];
  return count;
}

/// Whether a sparse column lists any of some rows.
bool lists_any(const SparseColumn& column, const std::vector<bool>& has_row);

}  // namespace abcgbm
