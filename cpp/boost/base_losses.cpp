#include "boost/base_losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsAtOnce = 512;
// Leaf values are rounded anew for each trial: at its tenth halving to multiples of 2^-22, and the
// base class gets all trees', each rounded to 2^-32. A score that is off by d changes a row's loss
// by at most d times that loss.
constexpr double kRelativeError = 0x1p-20;
constexpr double kRelativeErrorOfTree = 0x1p-32;
constexpr double kErrorOfRow = 1e-12;  // of the sums of scores

/// log(1 + exp(x))
double softplus(double x) {
  const double of_negative = log1p_nonnegative(exp_nonpositive(-std::abs(x)));
  return x > 0.0 ? x + of_negative : of_negative;
}

/// Up to kRowsAtOnce rows, and what is known of them.
struct RowChunk {
  std::size_t first;
  std::size_t n;
  std::array<double, kRowsAtOnce> largest{};  // of the scores but the base's
  std::array<double, kRowsAtOnce>
      rest{};  // sum of exp of those, seen from the largest, but its own
  std::array<double, kRowsAtOnce> moved{};
};

void add_moves(std::span<const TreeMove> moves, RowChunk& rows) {
  for (const TreeMove& move : moves) {
    const std::uint16_t* node = move.node_of_row.data() + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) rows.moved[i] += move.base_value[node[i]];
  }
}

}  // namespace

BaseLosses::BaseLosses(std::span<const double> moved, const Labels& labels, RowWeights weight,
                       std::span<const TreeMove> moves, int n_threads)
    : labels_(&labels),
      weight_(weight),
      base_(moves.front().base.number()),
      n_threads_(n_threads),
      rows_(labels.n_rows()) {
  const std::size_t n_tasks = (rows_.size() + kRowsAtOnce - 1) / kRowsAtOnce;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    RowChunk chunk{.first = task * kRowsAtOnce,
                   .n = std::min(kRowsAtOnce, rows_.size() - task * kRowsAtOnce)};
    ScoreRows scores = rows_of(labels, moved, chunk.first, chunk.n);
    scores.left_out = BaseClass(base_);
    softmax_terms(scores, {.largest = chunk.largest.data(), .rest = chunk.rest.data()});
    add_moves(moves, chunk);
    for (std::size_t i = 0; i < chunk.n; ++i) {
      const double log_sum = log1p_nonnegative(chunk.rest[i]);
      rows_[chunk.first + i] = {
          .others = (chunk.largest[i] - scores.of_class(base_)[i]) + log_sum,
          .alone = (chunk.largest[i] - scores.of_class(scores.y[i])[i]) + log_sum,
          .moved = chunk.moved[i]};
    }
  });
  total_weight_ = static_cast<double>(total_weight(weight, rows_.size()));
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

/// The loss of a row when the base class has got back a part of what it came down.
double BaseLosses::loss_of(std::size_t row, double given_back) const {
  const double lead = rows_[row].moved * given_back - rows_[row].others;
  return labels_->y[row] == base_ ? softplus(-lead) : rows_[row].alone + softplus(lead);
}

BaseLosses::Sum BaseLosses::sum_of(std::size_t first, std::size_t last, double given_back) const {
  Sum sum;
  for (std::size_t i = first; i < last; ++i) {
    const double loss = loss_of(i, given_back);
    sum.loss += static_cast<double>(weight_[i]) * loss;
    sum.largest = std::max(sum.largest, loss);
  }
  return sum;
}

/// The true loss is itself rounded, row by row.
BaseLosses::Estimate BaseLosses::estimate(int n_halvings) const {
  const double given_back = 1.0 - std::ldexp(1.0, -n_halvings);
  std::vector<Sum> parts((rows_.size() + kRowsAtOnce - 1) / kRowsAtOnce);
  parallel_for(parts.size(), n_threads_, [&](std::size_t task, std::size_t) {
    parts[task] =
        sum_of(task * kRowsAtOnce, std::min((task + 1) * kRowsAtOnce, rows_.size()), given_back);
  });
  Sum all;
  for (const Sum& part : parts) {
    all.loss += part.loss;
    all.largest = std::max(all.largest, part.largest);
  }
  const double of_loss = kRelativeError + kRelativeErrorOfTree * labels_->n_classes;
  const double of_rows = kErrorOfRow + 2.0 * loss_unit(*labels_, all.largest);
  return {.loss = all.loss * labels_->unit,
          .error = (of_loss * all.loss + of_rows * total_weight_) * labels_->unit};
}

}  // namespace abcgbm
