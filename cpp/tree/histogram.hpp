// Rows to sums per bin: what training sums over the rows of nodes, all of it; docs/determinism.md
// lists it. Sums are integers, so neither the order of rows nor the split of the work matters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/simd.hpp"
#include "data/binned.hpp"
#include "data/labels.hpp"
#include "loss/sums.hpp"

namespace abcgbm {

template <int W>
using Histogram = std::vector<Sums<W>>;  // [total_bins]

/// The sums of a row in registers, to be added to several bins.
template <int W>
class HeldSums {
 public:
  [[gnu::always_inline]] explicit HeldSums(const Sums<W>& sums)
      : two_(load<Two>(sums.data())), last_(sums.back()) {}

  [[gnu::always_inline]] void add_to(Sums<W>& bin) const {
    store(load<Two>(bin.data()) + two_, bin.data());
    if constexpr (kHasHessian<W>) bin[kHessian] += last_;
  }

 private:
  using Two = Wide<2>::Integers;
  Two two_;
  std::int64_t last_;
};

/// Rows to be counted, and the sums of each.
template <int W>
struct RowsToCount {
  std::span<const std::uint32_t> rows;
  std::span<const Sums<W>> sums;  // in the order of `rows`
};

/// Adds rows to the bins of one block; of sparse features not to the common bin.
template <int W>
void count_block(const Binned& binned, const Block& block, const RowsToCount<W>& rows,
                 std::span<Sums<W>> histogram);

/// Once all rows have been added: the common bins of sparse features have what is left of the
/// node's sums.
template <int W>
void finish_block(const Layout& layout, const Block& block, const Sums<W>& node,
                  std::span<Sums<W>> histogram);

/// Turns a block of the parent into that of the other child.
template <int W>
void subtract_block(const Block& block, std::span<Sums<W>> parent, std::span<const Sums<W>> child);

/// The weight in each bin: the same at the root of every tree.
std::vector<std::int64_t> root_weights(const Binned& binned, RowWeights weight, int n_threads);

/// One value of each row, for each of several trees: values(tree, first, scratch) returns those of
/// the rows [first, first + scratch.size()), either in scratch or wherever they are.
using RowValues =
    std::function<const std::int64_t*(std::size_t, std::size_t, std::span<std::int64_t>)>;

/// Sums of eight trees for one bin: one cache line, added with SIMD.
inline constexpr std::size_t kLane = 8;
struct alignas(64) Line {
  std::array<std::int64_t, kLane> sum{};
};
inline void subtract(Line& line, const Line& part) { subtract(line.sum, part.sum); }

/// Root histograms of several trees at once: the bins of a row are the same for every tree, so one
/// walk over the table serves all.
///
///   trees 0..7, group 0                  trees 8..15, group 1
///   bin 0 [ . . . . . . . . ]            bin 0 [ . . . . . . . . ]
///   bin 1 [ . . . . . . . . ]            ...
struct HistogramGroups {
  std::size_t total_bins = 0;
  std::vector<Line> lines;  // [n_groups][total_bins]

  std::int64_t at(std::size_t tree, std::size_t bin) const {
    return lines[tree / kLane * total_bins + bin].sum[tree % kLane];
  }
  std::span<std::int64_t> sums() {
    return {lines.empty() ? nullptr : lines.front().sum.data(), lines.size() * kLane};
  }
};

/// Fills the root histograms of n trees. Weights multiply the values.
void fill_roots(const Binned& binned, RowWeights weight, std::size_t n_trees,
                const RowValues& values, int n_threads, HistogramGroups& roots);

}  // namespace abcgbm
