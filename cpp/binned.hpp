// The binned table: the form in which training sees the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace abcgbm {

/// Bin codes in both orders: by row for histograms, by column for partition.
template <class Code>
struct Codes {
  std::vector<Code> by_row;     // [n_rows][n_features]
  std::vector<Code> by_column;  // [n_features][n_rows]
};

/// Codes take one byte while every feature has at most 256 bins, else two. The last bin of a
/// feature holds its missing values. `offset[f]` is the first bin of feature f among all bins of
/// the table.
struct Binned {
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::vector<std::uint32_t> offset;  // n_features + 1
  std::variant<Codes<std::uint8_t>, Codes<std::uint16_t>> codes;

  std::size_t total_bins() const { return offset.back(); }
  std::uint32_t n_bins(std::size_t feature) const { return offset[feature + 1] - offset[feature]; }
  std::uint32_t missing_code(std::size_t feature) const { return n_bins(feature) - 1; }
};

}  // namespace abcgbm
