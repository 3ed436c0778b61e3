#include "search.hpp"

#include <algorithm>
#include <cmath>

#include "elementary.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kRowsPerTask = kBlock * 16;

[[gnu::always_inline]] inline double exp_any(double x) {
  const double e = exp_nonpositive(x < 0.0 ? x : -x);
  return x < 0.0 ? e : 1.0 / e;
}

/// Factors exp(value) of the nodes of each tree.
std::vector<std::vector<double>> factors_of(const Proposal& proposal) {
  std::vector<std::vector<double>> factors;
  for (const Tree& tree : proposal.trees) {
    auto& of_tree = factors.emplace_back();
    for (const TreeNode& node : tree.nodes) of_tree.push_back(exp_any(node.value));
  }
  return factors;
}

/// Up to kBlock rows as one proposal moves them.
struct RowBlock {
  std::size_t n = 0;
  double value[kBlock];   // of the tree at hand
  double factor[kBlock];  // exp of that
  double move_of_y[kBlock];
  double others[kBlock];  // sum of the new weights of the classes but y
  double own[kBlock];     // new weight of y
  double all_moves[kBlock];
  std::int64_t y[kBlock];
};

struct AddClassKernel {
  /// Adds class k, whose weight before the move is given.
  [[gnu::always_inline]] static inline void run(RowBlock* block, const double* before,
                                                std::int64_t k) {
    for (std::size_t i = 0; i < block->n; ++i) {
      const double e = before[i] * block->factor[i];
      const bool is_own = block->y[i] == k;
      block->others[i] += is_own ? 0.0 : e;
      block->own[i] = is_own ? e : block->own[i];
      block->move_of_y[i] = is_own ? block->value[i] : block->move_of_y[i];
      block->all_moves[i] += block->value[i];
    }
  }
};

struct BaseFactorKernel {
  [[gnu::always_inline]] static inline void run(RowBlock* block) {
    for (std::size_t i = 0; i < block->n; ++i) {
      block->value[i] = -block->all_moves[i];
      block->factor[i] = exp_any(block->value[i]);
    }
  }
};

struct LossKernel {
  /// Where the row's class is the likeliest, log1p keeps small losses exact.
  [[gnu::always_inline]] static inline void run(const RowBlock* block, const double* below,
                                                double* out) {
    for (std::size_t i = 0; i < block->n; ++i) {
      const double own = block->own[i];
      const double others = block->others[i];
      const double likely = log1p_nonnegative(others / own);
      const double unlikely = log_positive(others + own) + (below[i] - block->move_of_y[i]);
      out[i] = own > others ? likely : unlikely;
    }
  }
};

void start_block(RowBlock& block, const Labels& labels, std::size_t first, std::size_t n) {
  block.n = n;
  for (std::size_t i = 0; i < n; ++i) {
    block.y[i] = labels.y[first + i];
    block.others[i] = block.own[i] = block.move_of_y[i] = block.all_moves[i] = 0.0;
  }
}

/// What the classes of one block weigh after one proposal; e are exp(F - max F) before it,
/// [n_classes][kBlock].
void move_block(const Proposal& proposal, const std::vector<std::vector<double>>& factors,
                RowBlock& block, std::size_t first, const double* e) {
  for (std::size_t t = 0; t < proposal.trees.size(); ++t) {
    const Tree& tree = proposal.trees[t];
    const std::uint16_t* node = proposal.node_of_row[t].data() + first;
    for (std::size_t i = 0; i < block.n; ++i) {
      block.factor[i] = factors[t][node[i]];
      block.value[i] = tree.nodes[node[i]].value;
    }
    const auto k = static_cast<std::size_t>(tree.tree_class);
    dispatch<AddClassKernel>(&block, e + k * kBlock, std::int64_t{tree.tree_class});
  }
  const int base = proposal.trees.front().base;
  dispatch<BaseFactorKernel>(&block);
  dispatch<AddClassKernel>(&block, e + static_cast<std::size_t>(base) * kBlock, std::int64_t{base});
}

}  // namespace

std::vector<double> losses_after(const Scores& scores, const Labels& labels,
                                 std::span<const Proposal> proposals, int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  std::vector<std::vector<std::vector<double>>> factors;
  factors.reserve(proposals.size());
  for (const Proposal& proposal : proposals) factors.push_back(factors_of(proposal));
  std::vector<std::vector<double>> row_losses(proposals.size(), std::vector<double>(n_rows));
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    const std::size_t last = std::min((task + 1) * kRowsPerTask, n_rows);
    std::vector<double> e(static_cast<std::size_t>(labels.n_classes) * kBlock);
    std::vector<double> below(kBlock);
    RowBlock block;
    for (std::size_t first = task * kRowsPerTask; first < last; first += kBlock) {
      const std::size_t n = std::min(kBlock, last - first);
      exponentials(scores, labels, first, n, kBlock, e, below);
      for (std::size_t c = 0; c < proposals.size(); ++c) {
        start_block(block, labels, first, n);
        move_block(proposals[c], factors[c], block, first, e.data());
        dispatch<LossKernel>(&block, below.data(), row_losses[c].data() + first);
      }
    }
  });
  std::vector<double> losses;
  losses.reserve(proposals.size());
  for (const auto& of_rows : row_losses) losses.push_back(total_loss(labels, of_rows));
  return losses;
}

}  // namespace abcgbm
