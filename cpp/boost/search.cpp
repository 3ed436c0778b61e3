#include "boost/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kRowsPerTask = kBlock * 16;

[[gnu::always_inline]] inline double exp_any(double x) {
  const double e = exp_nonpositive(x < 0.0 ? x : -x);
  return x < 0.0 ? e : 1.0 / e;
}

/// Where a proposal moves the scores when shortened: what to add, and exp of it, by tree and node.
struct Candidate {
  const Proposal* proposal;
  Values values;
  std::vector<std::vector<double>> factors;
};

Candidate make_candidate(const Proposal& proposal, Shortening by) {
  Candidate candidate{
      .proposal = &proposal, .values = values_of(proposal.trees, by), .factors = {}};
  for (const auto& of_tree : candidate.values.tree_class) {
    auto& factors = candidate.factors.emplace_back();
    for (const double value : of_tree) factors.push_back(exp_any(value));
  }
  return candidate;
}

/// Up to kBlock rows as one proposal moves them.
struct RowBlock {
  std::size_t n = 0;
  double value[kBlock];       // of the tree at hand
  double factor[kBlock];      // exp of that
  double base_value[kBlock];  // what the base class loses by it
  double move_of_y[kBlock];
  double others[kBlock];  // sum of the new weights of the classes but y
  double own[kBlock];     // new weight of y
  double base_move[kBlock];
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
      block->base_move[i] += block->base_value[i];
    }
  }
};

struct BaseFactorKernel {
  [[gnu::always_inline]] static inline void run(RowBlock* block) {
    for (std::size_t i = 0; i < block->n; ++i) {
      block->value[i] = -block->base_move[i];
      block->base_value[i] = 0.0;
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
    block.others[i] = block.own[i] = block.move_of_y[i] = block.base_move[i] = 0.0;
  }
}

/// What the classes of one block weigh after the move; e are exp(F - max F) before it,
/// [n_classes][kBlock].
void move_block(const Candidate& candidate, RowBlock& block, std::size_t first, const double* e) {
  const Proposal& proposal = *candidate.proposal;
  for (std::size_t t = 0; t < proposal.trees.size(); ++t) {
    const std::uint16_t* node = proposal.node_of_row[t].data() + first;
    for (std::size_t i = 0; i < block.n; ++i) {
      block.factor[i] = candidate.factors[t][node[i]];
      block.value[i] = candidate.values.tree_class[t][node[i]];
      block.base_value[i] = candidate.values.base[t][node[i]];
    }
    const int k = proposal.trees[t].tree_class;
    dispatch<AddClassKernel>(&block, e + static_cast<std::size_t>(k) * kBlock, std::int64_t{k});
  }
  const int base = proposal.trees.front().base.number();
  dispatch<BaseFactorKernel>(&block);
  dispatch<AddClassKernel>(&block, e + static_cast<std::size_t>(base) * kBlock, std::int64_t{base});
}

/// Row losses after each candidate for the rows [first, last).
void losses_of_rows(const Scores& scores, const Labels& labels,
                    std::span<const Candidate> candidates, std::size_t first, std::size_t last,
                    std::span<std::vector<double>> out) {
  std::vector<double> e(static_cast<std::size_t>(labels.n_classes) * kBlock);
  std::vector<double> largest(kBlock);
  std::vector<double> below(kBlock);  // how far the score of the row's class lies below that
  RowBlock block;
  for (std::size_t start = first; start < last; start += kBlock) {
    const std::size_t n = std::min(kBlock, last - start);
    const ScoreRows rows = rows_of(labels, scores.raw, start, n);
    softmax_terms(rows, {.exponential = e.data(), .stride = kBlock, .largest = largest.data()});
    for (std::size_t i = 0; i < n; ++i) below[i] = largest[i] - rows.of_class(rows.y[i])[i];
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      start_block(block, labels, start, n);
      move_block(candidates[c], block, start, e.data());
      dispatch<LossKernel>(&block, static_cast<const double*>(below.data()), out[c].data() + start);
    }
    check_interrupt();
  }
}

std::vector<double> losses_of(const Scores& scores, const Labels& labels, RowWeights weight,
                              std::span<const Candidate> candidates, int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  std::vector<std::vector<double>> row_losses(candidates.size(), std::vector<double>(n_rows));
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    losses_of_rows(scores, labels, candidates, task * kRowsPerTask,
                   std::min((task + 1) * kRowsPerTask, n_rows), row_losses);
  });
  std::vector<double> losses(candidates.size());
  parallel_for(candidates.size(), n_threads, [&](std::size_t c, std::size_t) {
    losses[c] = total_loss(labels, weight, row_losses[c]);
  });
  return losses;
}

}  // namespace

std::vector<double> losses_after(const Scores& scores, const Labels& labels, RowWeights weight,
                                 std::span<const Proposal> proposals, int n_threads) {
  const double loss_before = loss_of(scores, labels, weight);
  std::vector<Candidate> full;
  full.reserve(proposals.size());
  for (const Proposal& proposal : proposals) full.push_back(make_candidate(proposal, {}));
  std::vector<double> losses = losses_of(scores, labels, weight, full, n_threads);
  for (std::size_t c = 0; c < proposals.size(); ++c) {
    if (!has_split(proposals[c])) {
      losses[c] = std::numeric_limits<double>::infinity();
    } else if (losses[c] > loss_before) {
      const auto loss_at = [&](Shortening by) {
        if (by == Shortening{}) return losses[c];
        const Candidate shortened = make_candidate(proposals[c], by);
        return losses_of(scores, labels, weight, std::span(&shortened, 1), n_threads).front();
      };
      const auto no_estimate = [](int) { return std::optional<bool>(); };
      losses[c] =
          line_search(loss_at, no_estimate, loss_before, has_common_base(proposals[c])).loss;
    }
  }
  return losses;
}

}  // namespace abcgbm
