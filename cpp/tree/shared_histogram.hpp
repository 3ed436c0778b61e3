// Rows to sums per bin, for shared trees; docs/reductions.md lists what is summed.
#pragma once

#include <cstdint>
#include <span>

#include "data/binned.hpp"
#include "loss/shared_sums.hpp"

namespace abcgbm {

/// Rows to be counted, and the sums of each, [rows.size()][stride].
struct SharedRowsToCount {
  std::span<const std::uint32_t> rows;
  const std::int32_t* sums;
};

/// Adds rows to the bins of one block; of sparse features not to the common bin.
void count_shared(const Binned& binned, const SharedForm& form, const Block& block,
                  const SharedRowsToCount& rows, std::span<std::int32_t> histogram);

/// Once all rows have been added: the common bins of sparse features have what is left of the
/// node's sums.
void finish_shared(const Layout& layout, const SharedForm& form, const Block& block,
                   const SharedSums& node, std::span<std::int32_t> histogram);

/// Turns a block of the parent into that of the other child.
void subtract_shared(const SharedForm& form, const Block& block, std::span<std::int32_t> parent,
                     std::span<const std::int32_t> child);

}  // namespace abcgbm
