// Rows to sums per bin, for shared trees; docs/determinism.md lists what is summed.
#pragma once

#include <cstdint>
#include <span>

#include "data/binned.hpp"
#include "loss/multi_output_sums.hpp"

namespace abcgbm {

/// Rows to be counted, and the sums of each, [rows.size()][stride].
struct MultiOutputRows {
  std::span<const std::uint32_t> rows;
  const std::int32_t* sums;
};

/// Adds rows to the bins of one block; of sparse features not to the common bin.
void count_multi_output(const Binned& binned, const SumLayout& sum_layout, const Block& block,
                        const MultiOutputRows& rows, std::span<std::int32_t> histogram);

/// Once all rows have been added: the common bins of sparse features have what is left of the
/// node's sums.
void finish_multi_output(const Layout& layout, const SumLayout& sum_layout, const Block& block,
                         const MultiOutputSums& node, std::span<std::int32_t> histogram);

/// Turns a block of the parent into that of the other child.
void subtract_multi_output(const SumLayout& sum_layout, const Block& block,
                           std::span<std::int32_t> parent, std::span<const std::int32_t> child);

}  // namespace abcgbm
