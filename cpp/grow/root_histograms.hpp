// Root histograms of the single-output trees of an iteration, one batch of trees at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "data/binned.hpp"
#include "loss/derivatives.hpp"
#include "tree/histogram.hpp"

namespace abcgbm {

/// The residual sums of a pair of classes are differences of the classes' own, so K histograms
/// serve all pairs. Hessian sums belong to one pair. Weights are the same in every tree.
struct RootHistograms {
  std::vector<std::size_t> lane;  // of a class, among the residuals
  HistogramGroups residuals;      // by lane
  HistogramGroups hessians;       // by tree of the batch; only with hessian sums
};

inline constexpr std::size_t kRootBytes = std::size_t{1} << 24;  // memory limit of a batch

/// The maximum number of trees or classes in a batch, at least 1.
std::size_t max_in_batch(std::size_t total_bins);

/// The end of the batch of trees that starts at `first`.
std::size_t end_of_batch(std::span<const ClassPair> trees, std::size_t first, std::size_t max_trees,
                         bool has_hessian);

/// Computes the root histograms of a batch over the rows of all ranks.
void build_root_histograms(const Binned& binned, const TreeRows& rows,
                           std::span<const ClassPair> batch, bool has_hessian, int n_threads,
                           RootHistograms& roots);

/// The root of one tree of a batch.
struct TreeRoot {
  const RootHistograms& roots;
  std::span<const std::int64_t> bin_weights;
  ClassPair pair;
  std::size_t in_batch = 0;

  template <int W>
  Sums<W> bin(std::size_t bin) const {
    Sums<W> sums;
    sums[kResidual] = residual(bin);
    sums[kWeight] = bin_weights[bin];
    if constexpr (kHasHessian<W>) sums[kHessian] = roots.hessians.at(in_batch, bin);
    return sums;
  }

 private:
  std::int64_t residual_of(int k, std::size_t bin) const {
    return roots.residuals.at(roots.lane[static_cast<std::size_t>(k)], bin);
  }
  std::int64_t residual(std::size_t bin) const {
    const std::int64_t of_class = residual_of(pair.tree_class, bin);
    return pair.base.exists() ? of_class - residual_of(pair.base.number(), bin) : of_class;
  }
};

}  // namespace abcgbm
