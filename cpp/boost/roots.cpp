#include "boost/roots.hpp"

#include <algorithm>
#include <set>

#include "loss/hessians.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 24;  // for the histograms of a batch
constexpr std::size_t kNoLane = static_cast<std::size_t>(-1);

}  // namespace

Roots::Roots(const Binned& binned, const Labels& labels, bool has_hessian)
    : binned_(binned), labels_(labels), has_hessian_(has_hessian) {}

void Roots::set_weights(RowWeights weight, int n_threads) {
  row_weights_ = weight;
  weights_ = root_weights(binned_, weight, n_threads);
}

std::size_t Roots::end_of_batch(std::span<const TreeJob> jobs, std::size_t first) const {
  const std::size_t group_bytes = binned_.total_bins * sizeof(Line);
  const std::size_t most = std::max<std::size_t>(1, kBytes / group_bytes) * kLane;
  std::set<int> classes;
  std::size_t last = first;
  while (last < jobs.size() && (!has_hessian_ || last - first < most)) {
    classes.insert(jobs[last].tree_class);
    if (jobs[last].base >= 0) classes.insert(jobs[last].base);
    if (classes.size() > most && last > first) break;
    ++last;
  }
  return last;
}

/// The classes whose residuals a batch needs; each gets a lane.
std::vector<std::size_t> Roots::classes_of(std::span<const TreeJob> batch) {
  std::vector<std::size_t> classes;
  lane_.assign(static_cast<std::size_t>(labels_.n_classes), kNoLane);
  for (const TreeJob& job : batch) {
    for (const int k : {job.tree_class, job.base}) {
      if (k < 0 || lane(k) != kNoLane) continue;
      lane_[static_cast<std::size_t>(k)] = classes.size();
      classes.push_back(static_cast<std::size_t>(k));
    }
  }
  return classes;
}

void Roots::fill(const Scores& scores, std::span<const TreeJob> batch, int n_threads) {
  const std::vector<std::size_t> classes = classes_of(batch);
  const auto residual = [&](std::size_t i, std::size_t first, std::span<std::int64_t>) {
    return scores.residual.data() + classes[i] * labels_.n_rows() + first;
  };
  fill_roots(binned_, row_weights_, classes.size(), residual, n_threads, residuals_);
  if (!has_hessian_) return;
  const auto hessians = [&](std::size_t i, std::size_t first, std::span<std::int64_t> out) {
    abcgbm::hessian(scores, labels_, batch[i].tree_class, batch[i].base, first, out);
    return out.data();
  };
  fill_roots(binned_, row_weights_, batch.size(), hessians, n_threads, hessians_);
}

}  // namespace abcgbm
