// Serialisation of what ranks exchange about nodes: the best splits in each rank's columns, and
// sums of absolute residuals.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/communicator.hpp"
#include "data/layout.hpp"

namespace abcgbm {

/// Assigns the blocks of columns to ranks; returns those of this rank, and writes the end of each
/// rank's bins.
std::vector<Block> assign_columns(const Layout& layout, const Communicator& communicator,
                                  std::vector<std::size_t>& bin_end);

/// The read position in a message.
using Numbers = Communicator::Values::const_iterator;

/// Writes a split; arrays are preceded by their length.
template <class Split>
void write_split(const Split& split, Communicator::Values& to) {
  to.push_back(std::bit_cast<std::int64_t>(split.score));
  to.push_back(split.feature);
  to.push_back(split.bin);
  to.push_back(split.missing_left ? 1 : 0);
  to.push_back(static_cast<std::int64_t>(split.left.size()));
  to.insert(to.end(), split.left.begin(), split.left.end());
  to.push_back(static_cast<std::int64_t>(split.left_set.size()));
  for (const std::uint64_t word : split.left_set) to.push_back(std::bit_cast<std::int64_t>(word));
}

template <std::size_t N>
void resize(std::array<std::int64_t, N>&, std::int64_t) {}
template <class Int>
void resize(std::vector<Int>& values, std::int64_t n) {
  values.resize(static_cast<std::size_t>(n));
}

template <class Split>
Split read_split(Numbers& from) {
  Split split;
  split.score = std::bit_cast<double>(*from++);
  split.feature = static_cast<int>(*from++);
  split.bin = static_cast<std::uint32_t>(*from++);
  split.missing_left = *from++ != 0;
  resize(split.left, *from++);
  for (auto& sum : split.left) sum = static_cast<std::decay_t<decltype(sum)>>(*from++);
  resize(split.left_set, *from++);
  for (std::uint64_t& word : split.left_set) word = std::bit_cast<std::uint64_t>(*from++);
  return split;
}

inline void write_abs_residuals(std::int64_t sum, Communicator::Values& to) { to.push_back(sum); }
inline void write_abs_residuals(const std::vector<std::int64_t>& sums, Communicator::Values& to) {
  to.insert(to.end(), sums.begin(), sums.end());
}

inline void read_abs_residuals(Numbers& from, std::int64_t& sum) { sum = *from++; }
inline void read_abs_residuals(Numbers& from, std::vector<std::int64_t>& sums) {
  for (std::int64_t& sum : sums) sum = *from++;
}

}  // namespace abcgbm
