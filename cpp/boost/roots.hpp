// The root histograms of the trees of a step, a batch of trees at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/binned.hpp"
#include "loss/scores.hpp"
#include "tree/histogram.hpp"

namespace abcgbm {

/// A tree to grow: for `tree_class`, against `base` (-1: with plain derivatives).
struct TreeJob {
  int tree_class = 0;
  int base = -1;
};

/// Residual sums of a pair of classes are differences of the classes' own, so K of them serve all
/// pairs; hessian sums are a pair's own. Weights are the same in every tree.
class Roots {
 public:
  Roots(const Binned& binned, const Labels& labels, bool has_hessian);

  /// The weight of each row in the trees to come; kept by reference.
  void set_weights(RowWeights weight, int n_threads);

  /// The end of the batch that starts at `first`: the trees whose histograms fit into some memory.
  std::size_t end_of_batch(std::span<const TreeJob> jobs, std::size_t first) const;
  void fill(const Scores& scores, std::span<const TreeJob> batch, int n_threads);

  std::int64_t residual(const TreeJob& job, std::size_t bin) const {
    const std::int64_t of_class = residuals_.at(lane(job.tree_class), bin);
    return job.base < 0 ? of_class : of_class - residuals_.at(lane(job.base), bin);
  }
  std::int64_t weight(std::size_t bin) const { return weights_[bin]; }
  std::int64_t hessian(std::size_t in_batch, std::size_t bin) const {
    return hessians_.at(in_batch, bin);
  }

 private:
  std::size_t lane(int k) const { return lane_[static_cast<std::size_t>(k)]; }
  std::vector<std::size_t> classes_of(std::span<const TreeJob> batch);

  const Binned& binned_;
  const Labels& labels_;
  bool has_hessian_;
  RowWeights row_weights_;
  std::vector<std::int64_t> weights_;  // by bin
  std::vector<std::size_t> lane_;      // of a class in residuals_
  RootHistograms residuals_;           // by class
  RootHistograms hessians_;            // by tree of the batch
};

}  // namespace abcgbm
