// Histograms of single-output trees: all sums over the rows of nodes; docs/determinism.md lists
// them. Sums are integers, so neither the order of the rows nor the division of the work matters.
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

/// Rows to add, and their sums.
template <int W>
struct RowsToAdd {
  std::span<const std::uint32_t> rows;
  std::span<const Sums<W>> sums;  // in the order of `rows`
};

/// Adds rows to the bins of one block, except to the common bins of sparse features.
template <int W>
void add_to_block(const Binned& binned, const Block& block, const RowsToAdd<W>& rows,
                  std::span<Sums<W>> histogram);

/// Sets the common bins of sparse features, after all rows were added, to the node's sums minus the
/// other bins.
template <int W>
void finish_block(const Layout& layout, const Block& block, const Sums<W>& node,
                  std::span<Sums<W>> histogram);

/// Turns a block of the parent's histogram into that of the other child.
template <int W>
void subtract_block(const Block& block, std::span<Sums<W>> parent, std::span<const Sums<W>> child);

/// The weight of each bin, which is the same at the root of every tree.
std::vector<std::int64_t> root_weights(const Binned& binned, RowWeights weight, int n_threads);

/// A value of each row for each of several trees: values(tree, first, scratch) returns those of the
/// rows [first, first + scratch.size()), in scratch or elsewhere.
using RowValues =
    std::function<const std::int64_t*(std::size_t, std::size_t, std::span<std::int64_t>)>;

/// The sums of eight trees for one bin: one cache line, added with SIMD.
inline constexpr std::size_t kLane = 8;
struct alignas(64) Line {
  std::array<std::int64_t, kLane> sum{};
};
inline void subtract(Line& line, const Line& part) { subtract(line.sum, part.sum); }

/// Root histograms of several trees: the bins of a row are the same for every tree, so one pass
/// over the table serves all.
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

/// Builds the root histograms of n trees from weighted values.
void fill_roots(const Binned& binned, RowWeights weight, std::size_t n_trees,
                const RowValues& values, int n_threads, HistogramGroups& roots);

}  // namespace abcgbm
