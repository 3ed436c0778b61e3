// What a tree sums of its rows, and how its cuts are looked for: all that the grower of a tree for
// one class and that of a shared one do not have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/layout.hpp"
#include "loss/shared_sums.hpp"
#include "loss/sums.hpp"
#include "tree/histogram.hpp"
#include "tree/shared_histogram.hpp"
#include "tree/shared_split.hpp"
#include "tree/split.hpp"

namespace abcgbm {

template <int W>
struct OneClass {
  using Sums = abcgbm::Sums<W>;
  using Number = std::int64_t;
  using Histogram = abcgbm::Histogram<W>;
  using Bins = std::span<Sums>;
  using Cut = abcgbm::Cut<W>;
  using NodeToCut = abcgbm::NodeToCut<W>;
  using Search = CutSearch<W>;
  using ResidualSize = std::int64_t;
  static constexpr bool has_hessian() { return kHasHessian<W>; }

  Histogram make_histogram(std::size_t n_bins) const { return Histogram(n_bins); }
  std::size_t histogram_bytes(std::size_t n_bins) const { return n_bins * sizeof(Sums); }
  /// All sums of a histogram, one after the other.
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
  double gain_of(const Cut& cut, const Sums& node, const SplitRules& rules) const {
    return abcgbm::gain_of<W>(cut, node, rules);
  }
};

struct AllClasses {
  using Sums = SharedSums;
  using Number = std::int32_t;
  using Histogram = SharedBins;
  using Bins = std::span<std::int32_t>;
  using Cut = SharedCut;
  using NodeToCut = SharedNode;
  using Search = SharedCutSearch;
  using ResidualSize = std::vector<std::int64_t>;  // by direction

  SharedForm form{};
  bool has_hessian() const { return form.has_hessian; }

  Histogram make_histogram(std::size_t n_bins) const { return Histogram(n_bins * form.stride()); }
  std::size_t histogram_bytes(std::size_t n_bins) const {
    return n_bins * form.stride() * sizeof(std::int32_t);
  }
  std::span<std::int32_t> numbers(Bins bins) const { return bins; }
  void copy(const Block& block, Bins from, Bins to) const {
    const std::size_t first = block.first_bin * form.stride();
    const std::size_t n = (block.last_bin - block.first_bin) * form.stride();
    std::ranges::copy(from.subspan(first, n), to.subspan(first, n).begin());
  }
  Search make_search(const Layout& layout) const { return {layout, form}; }
  std::int64_t weight_of(const Sums& sums) const { return sums[form.weight_at()]; }
  void subtract(const Block& block, Bins parent, Bins child) const {
    subtract_shared(form, block, parent, child);
  }
  double gain_of(const Cut& cut, const Sums& node, const SplitRules& rules) const {
    return shared_gain(form, cut, node, rules);
  }
};

}  // namespace abcgbm
