// Histograms of multi-output trees; docs/determinism.md lists the sums.
#pragma once

#include <cstdint>
#include <span>

#include "data/binned.hpp"
#include "loss/multi_output_sums.hpp"

namespace abcgbm {

/// Rows to add, and their sums, [rows.size()][stride].
struct MultiOutputRows {
  std::span<const std::uint32_t> rows;
  const std::int32_t* sums;
};

/// Adds rows to the bins of one block, except to the common bins of sparse features.
void add_to_multi_output(const Binned& binned, const SumLayout& sum_layout, const Block& block,
                         const MultiOutputRows& rows, std::span<std::int32_t> histogram);

/// Sets the common bins of sparse features, after all rows were added, to the node's sums minus the
/// other bins.
void finish_multi_output(const Layout& layout, const SumLayout& sum_layout, const Block& block,
                         const MultiOutputSums& node, std::span<std::int32_t> histogram);

/// Turns a block of the parent's histogram into that of the other child.
void subtract_multi_output(const SumLayout& sum_layout, const Block& block,
                           std::span<std::int32_t> parent, std::span<const std::int32_t> child);

}  // namespace abcgbm
