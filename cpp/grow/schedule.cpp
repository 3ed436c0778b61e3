#include "grow/schedule.hpp"

#include <algorithm>
#include <numeric>

namespace abcgbm {
namespace {

constexpr std::size_t kHistogramBytes = std::size_t{1} << 24;  // of all threads together
constexpr std::size_t kBytesPerThread = std::size_t{1}
                                        << 23;  // or this for each thread, if that is more

}  // namespace

std::size_t threads_for(std::size_t n_trees, int n_threads) {
  const auto n = static_cast<std::size_t>(n_threads);
  return 2 * n_trees <= n ? n : 1;
}

std::size_t max_histograms(std::size_t bytes, int n_threads) {
  const std::size_t shard = kHistogramBytes / static_cast<std::size_t>(n_threads);
  return std::max(kMinHistograms, std::max(shard, kBytesPerThread) / bytes);
}

double work_of(const Tree& tree) {
  double work = 0.0;
  for (const TreeNode& node : tree.nodes) {
    if (node.is_leaf()) continue;
    const TreeNode* children = tree.nodes.data() + node.left;
    work += std::min(children[0].weight, children[1].weight);
  }
  return work;
}

std::vector<std::size_t> largest_first(std::span<const double> work) {
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return work[a] != work[b] ? work[a] > work[b] : a < b;
  });
  return order;
}

}  // namespace abcgbm
