#include "predict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsPerBlock = 128;
constexpr std::size_t kWalksPerThread = 1 << 15;  // below this a thread is not worth waking

/// Whether a category goes left; one beyond the set's words goes where missing values go.
bool is_in_set(const Forest& forest, const PackedNode& node, double x) {
  const auto place = std::bit_cast<SetPlace>(node.threshold);
  if (!(x >= 0.0 && x < 64.0 * place.n_words)) return (node.left_and_flags & kMissingLeft) != 0;
  const auto code = static_cast<std::uint32_t>(x);
  return ((forest.left_set[place.start + code / 64] >> (code % 64)) & 1u) != 0;
}

double walk(const Forest& forest, std::uint32_t at, const double* row) {
  const PackedNode* nodes = forest.nodes.data();
  while (nodes[at].feature >= 0) {
    const PackedNode& node = nodes[at];
    const double x = row[node.feature];
    const std::uint32_t flags = node.left_and_flags;
    bool is_left = x <= node.threshold;
    if (std::isnan(x)) {
      is_left = (flags & kMissingLeft) != 0;
    } else if ((flags & kIsSet) != 0) {
      is_left = is_in_set(forest, node, x);
    }
    at = (flags >> 2) + (is_left ? 0u : 1u);
  }
  return nodes[at].threshold;
}

void add_block(const Forest& forest, const double* rows, std::size_t n_rows, double* raw,
               std::size_t first, std::size_t last) {
  for (std::size_t tree = first; tree < last; ++tree) {
    if (tree % 256 == 0) check_interrupt();
    double* to_class = raw + forest.tree_class[tree];
    double* to_base = forest.tree_base[tree] < 0 ? nullptr : raw + forest.tree_base[tree];
    const double base_scale = forest.tree_base_scale[tree];
    for (std::size_t i = 0; i < n_rows; ++i) {
      const double value = walk(forest, forest.root[tree], rows + i * forest.n_features);
      to_class[i * forest.n_classes] += value;
      if (to_base != nullptr) to_base[i * forest.n_classes] -= value * base_scale;
    }
  }
}

}  // namespace

void add_trees(const Forest& forest, const double* rows, std::size_t n_rows, double* raw,
               std::size_t first, std::size_t last, int n_threads) {
  const std::size_t n_blocks = (n_rows + kRowsPerBlock - 1) / kRowsPerBlock;
  const std::size_t useful = n_rows * (last - first) / kWalksPerThread + 1;
  const int n_useful = static_cast<int>(std::min(useful, static_cast<std::size_t>(n_threads)));
  parallel_for(n_blocks, n_useful, [&](std::size_t block, std::size_t) {
    const std::size_t start = block * kRowsPerBlock;
    add_block(forest, rows + start * forest.n_features, std::min(kRowsPerBlock, n_rows - start),
              raw + start * forest.n_classes, first, last);
  });
}

}  // namespace abcgbm
