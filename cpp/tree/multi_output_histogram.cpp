#include "tree/multi_output_histogram.hpp"

#include <algorithm>
#include <array>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLane = SumLayout::kLane;
constexpr std::size_t kMaxLanes = 4;  // of a row, held in registers

using LaneOfSums [[gnu::vector_size(kLane * sizeof(std::int32_t))]] = std::int32_t;

/// N columns that are built together, so that the sums of a row are read once.
template <std::size_t N, class Code>
struct ColumnPair {
  std::array<const Code*, N> code;
  std::array<std::int32_t*, N> bins;
};

/// Some lanes of rows and bins.
struct LanesToAdd {
  std::size_t stride = 0;
  const std::uint32_t* rows = nullptr;
  std::size_t n_rows = 0;
  const std::int32_t* sums = nullptr;  // the first of these lanes, of the first row
};

/// Adds `Lanes` lanes of rows to N columns.
template <std::size_t N, std::size_t Lanes, class Code>
struct AddMultiOutputKernel {
  [[gnu::always_inline]] static inline void run(const LanesToAdd* given,
                                                const ColumnPair<N, Code>* group) {
    const LanesToAdd add = *given;
    const ColumnPair<N, Code> columns = *group;
    for (std::size_t j = 0; j < add.n_rows; ++j) {
      const std::uint32_t row = add.rows[j];
      const std::int32_t* sums = add.sums + j * add.stride;
      std::array<LaneOfSums, Lanes> more;
      for (std::size_t i = 0; i < Lanes; ++i) more[i] = load<LaneOfSums>(sums + i * kLane);
      for (std::size_t c = 0; c < N; ++c) {
        std::int32_t* bin = columns.bins[c] + columns.code[c][row] * add.stride;
        for (std::size_t i = 0; i < Lanes; ++i) {
          store(load<LaneOfSums>(bin + i * kLane) + more[i], bin + i * kLane);
        }
      }
    }
  }
};

/// Calls add_lanes<Lanes>(first) for a few lanes at a time.
template <class AddLanes>
void for_lanes(std::size_t n, const AddLanes& add_lanes) {
  std::size_t first = 0;
  for (; first + kMaxLanes <= n; first += kMaxLanes)
    add_lanes.template operator()<kMaxLanes>(first);
  if (n - first == 1) add_lanes.template operator()<1>(first);
  if (n - first == 2) add_lanes.template operator()<2>(first);
  if (n - first == 3) add_lanes.template operator()<3>(first);
}

/// Adds rows to N columns from `first` on.
template <std::size_t N, class Code>
void add_columns(const Layout& layout, const Columns<Code>& codes, std::size_t first,
                 const LanesToAdd& rows, std::int32_t* histogram) {
  for_lanes(rows.stride / kLane, [&]<std::size_t Lanes>(std::size_t lane) {
    ColumnPair<N, Code> group;
    for (std::size_t c = 0; c < N; ++c) {
      group.code[c] = codes[first + c].data();
      group.bins[c] = histogram + layout.column_bin[first + c] * rows.stride + lane * kLane;
    }
    LanesToAdd add = rows;
    add.sums += lane * kLane;
    dispatch<AddMultiOutputKernel<N, Lanes, Code>>(&add, &group);
  });
}

template <class Code>
void add_block(const Layout& layout, const Columns<Code>& codes, const Block& block,
               const LanesToAdd& rows, std::int32_t* histogram) {
  std::size_t first = block.first_column;
  for (; first + 2 <= block.last_column; first += 2) {
    add_columns<2>(layout, codes, first, rows, histogram);
  }
  if (first < block.last_column) add_columns<1>(layout, codes, first, rows, histogram);
}

void add_listed(const ListedCodes& listed, const LanesToAdd& rows, std::int32_t* histogram) {
  for (std::size_t j = 0; j < rows.n_rows; ++j) {
    const std::int32_t* more = rows.sums + j * rows.stride;
    for (const std::uint32_t bin : listed.bins_of_row(rows.rows[j])) {
      std::int32_t* sums = histogram + bin * rows.stride;
      for (std::size_t i = 0; i < rows.stride; ++i) sums[i] += more[i];
    }
  }
}

/// The common bin of a sparse feature is the node's sums minus the other bins.
void set_common_bin(const Feature& feature, const MultiOutputSums& node, std::int32_t* bins) {
  const std::size_t stride = node.size();
  MultiOutputSums rest = node;
  for (std::uint32_t code = 0; code < feature.n_bins; ++code) {
    if (code == feature.common) continue;
    for (std::size_t i = 0; i < stride; ++i) rest[i] -= bins[code * stride + i];
  }
  std::ranges::copy(rest, bins + feature.common * stride);
}

}  // namespace

void add_to_multi_output(const Binned& binned, const SumLayout& sum_layout, const Block& block,
                         const MultiOutputRows& rows, std::span<std::int32_t> histogram) {
  const LanesToAdd add{.stride = sum_layout.stride(),
                       .rows = rows.rows.data(),
                       .n_rows = rows.rows.size(),
                       .sums = rows.sums};
  if (block.is_listed()) return add_listed(binned.listed, add, histogram.data());
  std::visit(
      [&](const auto& codes) { add_block(binned.layout, codes, block, add, histogram.data()); },
      binned.columns);
}

void finish_multi_output(const Layout& layout, const SumLayout& sum_layout, const Block& block,
                         const MultiOutputSums& node, std::span<std::int32_t> histogram) {
  for (const std::uint32_t f : block.features) {
    const Feature& feature = layout.features[f];
    if (!feature.is_sparse) continue;
    set_common_bin(feature, node, histogram.data() + feature.offset * sum_layout.stride());
  }
}

void subtract_multi_output(const SumLayout& sum_layout, const Block& block,
                           std::span<std::int32_t> parent, std::span<const std::int32_t> child) {
  std::int32_t* from = parent.data();
  const std::int32_t* part = child.data();
  const std::size_t last = block.last_bin * sum_layout.stride();
  for (std::size_t i = block.first_bin * sum_layout.stride(); i < last; ++i) from[i] -= part[i];
}

}  // namespace abcgbm
