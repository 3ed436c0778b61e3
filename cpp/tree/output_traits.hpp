// Traits of single-output and multi-output trees: sums, histograms and split search. The grower is
// written once for both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/layout.hpp"
#include "loss/multi_output_sums.hpp"
#include "loss/sums.hpp"
#include "tree/histogram.hpp"
#include "tree/multi_output_histogram.hpp"
#include "tree/multi_output_split.hpp"
#include "tree/split.hpp"

namespace abcgbm {

template <int W>
struct SingleOutput {
  using Sums = abcgbm::Sums<W>;
  using Number = std::int64_t;
  using Histogram = abcgbm::Histogram<W>;
  using Bins = std::span<Sums>;
  using Split = abcgbm::Split<W>;
  using NodeToSplit = abcgbm::NodeToSplit<W>;
  using Search = SplitSearch<W>;
  using AbsResiduals = std::int64_t;
  static constexpr bool has_hessian() { return kHasHessian<W>; }

  Histogram make_histogram(std::size_t n_bins) const { return Histogram(n_bins); }
  std::size_t histogram_bytes(std::size_t n_bins) const { return n_bins * sizeof(Sums); }
  /// All sums of a histogram as one array.
  std::span<std::int64_t> numbers(Bins bins) const {
    return {bins.empty() ? nullptr : bins.front().data(), bins.size() * W};
  }
  void copy(const Block& block, Bins from, Bins to) const {
    const std::size_t n = block.last_bin - block.first_bin;
    std::ranges::copy(from.subspan(block.first_bin, n), to.subspan(block.first_bin, n).begin());
  }
  Search make_search(const Layout& layout) const { return Search(layout); }
  std::int64_t weight_of(const Sums& sums) const { return sums[kWeight]; }
  void subtract(const Block& block, Bins parent, Bins child) const {
    subtract_block<W>(block, parent, child);
  }
  double gain_of(const Split& split, const Sums& node, const SplitRules& rules) const {
    return abcgbm::gain_of<W>(split, node, rules);
  }
};

struct MultiOutput {
  using Sums = MultiOutputSums;
  using Number = std::int32_t;
  using Histogram = MultiOutputBins;
  using Bins = std::span<std::int32_t>;
  using Split = MultiOutputSplit;
  using NodeToSplit = MultiOutputNode;
  using Search = MultiOutputSplitSearch;
  using AbsResiduals = std::vector<std::int64_t>;  // by projection

  SumLayout sum_layout{};
  bool has_hessian() const { return sum_layout.has_hessian; }

  Histogram make_histogram(std::size_t n_bins) const {
    return Histogram(n_bins * sum_layout.stride());
  }
  std::size_t histogram_bytes(std::size_t n_bins) const {
    return n_bins * sum_layout.stride() * sizeof(std::int32_t);
  }
  std::span<std::int32_t> numbers(Bins bins) const { return bins; }
  void copy(const Block& block, Bins from, Bins to) const {
    const std::size_t first = block.first_bin * sum_layout.stride();
    const std::size_t n = (block.last_bin - block.first_bin) * sum_layout.stride();
    std::ranges::copy(from.subspan(first, n), to.subspan(first, n).begin());
  }
  Search make_search(const Layout& layout) const { return {layout, sum_layout}; }
  std::int64_t weight_of(const Sums& sums) const { return sums[sum_layout.weight_at()]; }
  void subtract(const Block& block, Bins parent, Bins child) const {
    subtract_multi_output(sum_layout, block, parent, child);
  }
  double gain_of(const Split& split, const Sums& node, const SplitRules& rules) const {
    return multi_output_gain(sum_layout, split, node, rules);
  }
};

}  // namespace abcgbm
