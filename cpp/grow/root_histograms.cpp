#include "grow/root_histograms.hpp"

#include <algorithm>
#include <set>

#include "loss/hessians.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kNoLane = static_cast<std::size_t>(-1);

/// Assigns a lane to each class whose residuals the batch needs.
std::vector<int> give_lanes(std::span<const ClassPair> batch, int n_classes,
                            RootHistograms& roots) {
  std::vector<int> classes;
  roots.lane.assign(static_cast<std::size_t>(n_classes), kNoLane);
  for (const ClassPair& pair : batch) {
    for (const int k : {pair.tree_class, pair.base.number_or(pair.tree_class)}) {
      std::size_t& lane = roots.lane[static_cast<std::size_t>(k)];
      if (lane != kNoLane) continue;
      lane = classes.size();
      classes.push_back(k);
    }
  }
  return classes;
}

}  // namespace

std::size_t max_in_batch(std::size_t total_bins) {
  const std::size_t group_bytes = total_bins * sizeof(Line);
  return std::max<std::size_t>(1, kRootBytes / group_bytes) * kLane;
}

std::size_t end_of_batch(std::span<const ClassPair> trees, std::size_t first, std::size_t max_trees,
                         bool has_hessian) {
  std::set<int> classes;
  std::size_t last = first;
  while (last < trees.size() && (!has_hessian || last - first < max_trees)) {
    classes.insert(trees[last].tree_class);
    classes.insert(trees[last].base.number_or(trees[last].tree_class));
    if (classes.size() > max_trees && last > first) break;
    ++last;
  }
  return last;
}

void build_root_histograms(const Binned& binned, const TreeRows& rows,
                           std::span<const ClassPair> batch, bool has_hessian, int n_threads,
                           RootHistograms& roots) {
  const std::vector<int> classes = give_lanes(batch, rows.labels.n_classes, roots);
  const auto residual = [&](std::size_t i, std::size_t first, std::span<std::int64_t>) {
    return residuals_of(rows.scores, rows.labels, classes[i]) + first;
  };
  fill_roots(binned, rows.weight, classes.size(), residual, n_threads, roots.residuals);
  rows.labels.communicator().allreduce_sum(roots.residuals.sums());
  if (!has_hessian) return;
  const auto hessians = [&](std::size_t i, std::size_t first, std::span<std::int64_t> out) {
    hessian(rows.scores, rows.labels, batch[i], first, out);
    return out.data();
  };
  fill_roots(binned, rows.weight, batch.size(), hessians, n_threads, roots.hessians);
  rows.labels.communicator().allreduce_sum(roots.hessians.sums());
}

}  // namespace abcgbm
