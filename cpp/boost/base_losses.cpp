#include "boost/base_losses.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsAtOnce = 256;
// Leaf values are rounded again in each trial: after ten halvings to multiples of 2^-22, and the
// base class gets the values of all trees, each rounded to 2^-32. An error d of a score changes a
// row's loss by at most d times that loss.
constexpr double kRelativeError = 0x1p-20;
constexpr double kRelativeErrorOfTree = 0x1p-32;
constexpr double kErrorOfRow = 1e-12;  // of the sums of scores

/// Up to kRowsAtOnce rows, and their softmax terms.
struct RowChunk {
  std::size_t first;
  std::size_t n;
  std::array<double, kRowsAtOnce> largest{};  // score, the base class left out
  std::array<double, kRowsAtOnce> rest{};     // sum of exponentials relative to it, without its own
  std::array<double, kRowsAtOnce> moved{};
};

void add_moves(std::span<const TreeMove> moves, RowChunk& rows) {
  for (const TreeMove& move : moves) {
    const std::uint16_t* node = move.node_of_row.data() + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) rows.moved[i] += move.base_value[node[i]];
  }
}

/// Computes the losses of some rows: without_base + log(1 + exp(lead + given_back * moved)).
struct TrialRows {
  std::size_t n;
  const double* without_base;
  const double* lead;
  const double* moved;
  double given_back;
  double* loss;
};

struct TrialKernel {
  [[gnu::always_inline]] static inline void run(const TrialRows* given) {
    const TrialRows rows = *given;
    for (std::size_t i = 0; i < rows.n; ++i) {
      const double x = rows.lead[i] + rows.given_back * rows.moved[i];
      const double of_negative = log1p_nonnegative(exp_nonpositive(x > 0.0 ? -x : x));
      rows.loss[i] = rows.without_base[i] + ((x > 0.0 ? x : 0.0) + of_negative);
    }
  }
};

}  // namespace

BaseLosses::BaseLosses(std::span<const double> raw, const Labels& labels, RowWeights weight,
                       const Moves& moves, int n_threads, const Storage& storage)
    : labels_(&labels), weight_(weight), n_threads_(n_threads) {
  const std::size_t n_rows = labels.n_rows();
  for (auto* of_rows : {&rows_.without_base, &rows_.lead, &rows_.moved}) {
    *of_rows = LargeVector<double>(n_rows, storage);
  }
  const BaseClass base = moves.full.front().base;
  const std::size_t n_tasks = (n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    RowChunk chunk{.first = task * kRowsAtOnce,
                   .n = std::min(kRowsAtOnce, n_rows - task * kRowsAtOnce)};
    std::vector<double> buffer;
    ScoreRows scores = moves.to_full.empty()
                           ? rows_of(labels, raw, chunk.first, chunk.n)
                           : rows_after(labels, raw, moves.to_full, chunk.first, chunk.n, buffer);
    scores.left_out = base;
    softmax_terms(scores, {.largest = chunk.largest.data(), .rest = chunk.rest.data()});
    add_moves(moves.full, chunk);
    for (std::size_t i = 0; i < chunk.n; ++i) {
      const double log_sum = log1p_nonnegative(chunk.rest[i]);
      const double others = (chunk.largest[i] - scores.of_class(base.number())[i]) + log_sum;
      const double without_base = (chunk.largest[i] - scores.of_class(scores.y[i])[i]) + log_sum;
      const bool is_base = base.is(scores.y[i]);
      rows_.without_base[chunk.first + i] = is_base ? 0.0 : without_base;
      rows_.lead[chunk.first + i] = is_base ? others : -others;
      rows_.moved[chunk.first + i] = is_base ? -chunk.moved[i] : chunk.moved[i];
    }
  });
  std::int64_t total = total_weight(weight, n_rows);
  labels.communicator().allreduce_sum(total);
  total_weight_ = static_cast<double>(total);
}

std::optional<bool> BaseLosses::falls_if_halved_again(int n_halvings) {
  const Estimate here = loss_at(n_halvings);
  const Estimate next = loss_at(n_halvings + 1);
  if (std::abs(next.loss - here.loss) <= here.error + next.error) return std::nullopt;
  return next.loss < here.loss;
}

const BaseLosses::Estimate& BaseLosses::loss_at(int n_halvings) {
  const auto at = static_cast<std::size_t>(n_halvings);
  while (losses_.size() <= at) losses_.push_back(estimate(static_cast<int>(losses_.size())));
  return losses_[at];
}

BaseLosses::Sum BaseLosses::sum_of(std::size_t first, std::size_t last, double given_back) const {
  std::array<double, kRowsAtOnce> losses;
  const TrialRows rows{.n = last - first,
                       .without_base = rows_.without_base.data() + first,
                       .lead = rows_.lead.data() + first,
                       .moved = rows_.moved.data() + first,
                       .given_back = given_back,
                       .loss = losses.data()};
  dispatch<TrialKernel>(&rows);
  Sum sum;
  for (std::size_t i = 0; i < rows.n; ++i) {
    sum.loss += static_cast<double>(weight_[first + i]) * losses[i];
    sum.largest = std::max(sum.largest, losses[i]);
  }
  return sum;
}

/// The bound includes the rounding of the exact loss, row by row.
BaseLosses::Estimate BaseLosses::estimate(int n_halvings) const {
  const double given_back = 1.0 - std::ldexp(1.0, -n_halvings);
  std::vector<Sum> parts((labels_->n_rows() + kRowsAtOnce - 1) / kRowsAtOnce);
  parallel_for(parts.size(), n_threads_, [&](std::size_t task, std::size_t) {
    parts[task] = sum_of(task * kRowsAtOnce, std::min((task + 1) * kRowsAtOnce, labels_->n_rows()),
                         given_back);
  });
  Sum all;
  for (const Sum& part : parts) {
    all.loss += part.loss;
    all.largest = std::max(all.largest, part.largest);
  }
  const auto of_ranks = labels_->communicator().allgather({std::bit_cast<std::int64_t>(all.loss)});
  all.loss = 0.0;
  for (const auto& of_rank : of_ranks) all.loss += std::bit_cast<double>(of_rank.front());
  labels_->communicator().allreduce_max(std::span(&all.largest, 1));
  const double of_loss = kRelativeError + kRelativeErrorOfTree * labels_->n_classes;
  const double of_rows = kErrorOfRow + 2.0 * loss_unit(*labels_, all.largest);
  return {.loss = all.loss * labels_->unit,
          .error = (of_loss * all.loss + of_rows * total_weight_) * labels_->unit};
}

}  // namespace abcgbm
