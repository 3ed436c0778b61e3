#include "boost/base_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsAtOnce = 256;
constexpr std::size_t kRowsPerTask = kRowsAtOnce * 16;

[[gnu::always_inline]] inline double exp_any(double x) {
  const double e = exp_nonpositive(x < 0.0 ? x : -x);
  return x < 0.0 ? e : 1.0 / e;
}

/// The values and their exponentials of a scaled proposal, by tree and node.
struct Candidate {
  const Proposal* proposal;
  Values values;
  std::vector<std::vector<double>> factors;
};

Candidate make_candidate(const Proposal& proposal, StepScale scale) {
  Candidate candidate{
      .proposal = &proposal, .values = values_of(proposal.trees, scale), .factors = {}};
  for (const auto& of_tree : candidate.values.tree_class) {
    auto& factors = candidate.factors.emplace_back();
    for (const double value : of_tree) factors.push_back(exp_any(value));
  }
  return candidate;
}

/// Up to kRowsAtOnce rows, updated by one proposal.
struct RowChunk {
  std::size_t n = 0;
  double value[kRowsAtOnce];       // of the current tree
  double factor[kRowsAtOnce];      // exp(value)
  double base_value[kRowsAtOnce];  // subtracted from the base class
  double move_of_y[kRowsAtOnce];
  double others[kRowsAtOnce];  // sum of the new exponentials of the classes other than y
  double own[kRowsAtOnce];     // new exponential of y
  double base_move[kRowsAtOnce];
  std::int64_t y[kRowsAtOnce];
};

struct AddClassKernel {
  /// Adds class k, given its exponentials before the move.
  [[gnu::always_inline]] static inline void run(RowChunk* chunk, const double* before,
                                                std::int64_t k) {
    for (std::size_t i = 0; i < chunk->n; ++i) {
      const double e = before[i] * chunk->factor[i];
      const bool is_own = chunk->y[i] == k;
      chunk->others[i] += is_own ? 0.0 : e;
      chunk->own[i] = is_own ? e : chunk->own[i];
      chunk->move_of_y[i] = is_own ? chunk->value[i] : chunk->move_of_y[i];
      chunk->base_move[i] += chunk->base_value[i];
    }
  }
};

struct BaseFactorKernel {
  [[gnu::always_inline]] static inline void run(RowChunk* chunk) {
    for (std::size_t i = 0; i < chunk->n; ++i) {
      chunk->value[i] = -chunk->base_move[i];
      chunk->base_value[i] = 0.0;
      chunk->factor[i] = exp_any(chunk->value[i]);
    }
  }
};

struct LossKernel {
  /// If the row's class is the most probable one, log1p keeps small losses exact.
  [[gnu::always_inline]] static inline void run(const RowChunk* chunk, const double* below,
                                                double* out) {
    for (std::size_t i = 0; i < chunk->n; ++i) {
      const double own = chunk->own[i];
      const double others = chunk->others[i];
      const double likely = log1p_nonnegative(others / own);
      const double unlikely = log_positive(others + own) + (below[i] - chunk->move_of_y[i]);
      out[i] = own > others ? likely : unlikely;
    }
  }
};

void start_chunk(RowChunk& chunk, const Labels& labels, std::size_t first, std::size_t n) {
  chunk.n = n;
  for (std::size_t i = 0; i < n; ++i) {
    chunk.y[i] = labels.y[first + i];
    chunk.others[i] = chunk.own[i] = chunk.move_of_y[i] = chunk.base_move[i] = 0.0;
  }
}

/// Applies the trees of a proposal to a chunk; e are exp(F - max F) before it,
/// [n_classes][kRowsAtOnce].
void move_chunk(const Candidate& candidate, RowChunk& chunk, std::size_t first, const double* e) {
  const Proposal& proposal = *candidate.proposal;
  for (std::size_t t = 0; t < proposal.trees.size(); ++t) {
    const std::uint16_t* node = proposal.node_of_row[t].data() + first;
    for (std::size_t i = 0; i < chunk.n; ++i) {
      chunk.factor[i] = candidate.factors[t][node[i]];
      chunk.value[i] = candidate.values.tree_class[t][node[i]];
      chunk.base_value[i] = candidate.values.base[t][node[i]];
    }
    const int k = proposal.trees[t].tree_class;
    dispatch<AddClassKernel>(&chunk, e + static_cast<std::size_t>(k) * kRowsAtOnce,
                             std::int64_t{k});
  }
  const int base = proposal.trees.front().base.number();
  dispatch<BaseFactorKernel>(&chunk);
  dispatch<AddClassKernel>(&chunk, e + static_cast<std::size_t>(base) * kRowsAtOnce,
                           std::int64_t{base});
}

/// The losses of the rows [first, last) after the step of each candidate.
void losses_of_rows(const Scores& scores, const Labels& labels,
                    std::span<const Candidate> candidates, std::size_t first, std::size_t last,
                    std::span<LargeVector<double>> out) {
  std::vector<double> e(static_cast<std::size_t>(labels.n_classes) * kRowsAtOnce);
  std::vector<double> largest(kRowsAtOnce);
  std::vector<double> below(kRowsAtOnce);  // largest score minus that of the row's class
  RowChunk chunk;
  for (std::size_t start = first; start < last; start += kRowsAtOnce) {
    const std::size_t n = std::min(kRowsAtOnce, last - start);
    const ScoreRows rows = rows_of(labels, scores.raw, start, n);
    softmax_terms(rows,
                  {.exponential = e.data(), .stride = kRowsAtOnce, .largest = largest.data()});
    for (std::size_t i = 0; i < n; ++i) below[i] = largest[i] - rows.of_class(rows.y[i])[i];
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      start_chunk(chunk, labels, start, n);
      move_chunk(candidates[c], chunk, start, e.data());
      dispatch<LossKernel>(&chunk, static_cast<const double*>(below.data()), out[c].data() + start);
    }
    check_interrupt();
  }
}

std::vector<double> losses_of(const TreeRows& rows, std::span<const Candidate> candidates,
                              int n_threads) {
  const std::size_t n_rows = rows.labels.n_rows();
  const Storage storage = storage_of(rows.scores.raw);
  std::vector<LargeVector<double>> row_losses;
  row_losses.reserve(candidates.size());
  for (std::size_t c = 0; c < candidates.size(); ++c) row_losses.emplace_back(n_rows, storage);
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    losses_of_rows(rows.scores, rows.labels, candidates, task * kRowsPerTask,
                   std::min((task + 1) * kRowsPerTask, n_rows), row_losses);
  });
  const std::vector<RowLosses> trials(row_losses.begin(), row_losses.end());
  return total_losses(rows.labels, rows.weight, trials, n_threads);
}

}  // namespace

std::vector<double> losses_after(const TreeRows& rows, std::span<const Proposal> proposals,
                                 bool base_line_search, int n_threads) {
  const double loss_before = loss_of(rows.scores, rows.labels, rows.weight);
  std::vector<Candidate> full;
  full.reserve(proposals.size());
  for (const Proposal& proposal : proposals) full.push_back(make_candidate(proposal, {}));
  std::vector<double> losses = losses_of(rows, full, n_threads);
  for (std::size_t c = 0; c < proposals.size(); ++c) {
    if (!has_split(proposals[c])) {
      losses[c] = std::numeric_limits<double>::infinity();
      continue;
    }
    const auto loss_at = [&](StepScale scale) {
      if (scale == StepScale{}) return losses[c];
      const Candidate shortened = make_candidate(proposals[c], scale);
      return losses_of(rows, std::span(&shortened, 1), n_threads).front();
    };
    const auto no_estimate = [](int) { return std::optional<bool>(); };
    losses[c] = line_search(loss_at, no_estimate, loss_before,
                            when_to_scale_base(proposals[c], base_line_search))
                    .loss;
  }
  return losses;
}

}  // namespace abcgbm
