#include "boost/base_losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 512;
// Leaf values are rounded anew for each trial, to multiples of 2^-22 at most. A score that is off
// by so much changes a row's loss by less than this part of it.
constexpr double kRelativeError = 1e-5;
constexpr double kErrorOfRow = 1e-12;  // of the sums of scores

/// log(1 + exp(x))
double softplus(double x) {
  const double few = log1p_nonnegative(exp_nonpositive(-std::abs(x)));
  return x > 0.0 ? x + few : few;
}

/// Up to kBlock rows, and what is known of them.
struct RowBlock {
  std::size_t first;
  std::size_t n;
  std::array<double, kBlock> largest{};  // of the scores but the base's
  std::array<double, kBlock> rest{};     // sum of exp of those, seen from the largest, but its own
  std::array<double, kBlock> moved{};
};

void add_moves(std::span<const TreeMove> moves, RowBlock& rows) {
  for (const TreeMove& move : moves) {
    const std::uint16_t* node = move.node_of_row.data() + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) rows.moved[i] += move.base_value[node[i]];
  }
}

}  // namespace

BaseLosses::BaseLosses(const Scores& moved, const Labels& labels, RowWeights weight,
                       std::span<const TreeMove> moves, int n_threads)
    : labels_(&labels),
      weight_(weight),
      base_(moves.front().base),
      n_threads_(n_threads),
      rows_(labels.n_rows()) {
  const std::size_t n_tasks = (rows_.size() + kBlock - 1) / kBlock;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    RowBlock block{.first = task * kBlock, .n = std::min(kBlock, rows_.size() - task * kBlock)};
    ScoreRows scores = rows_of(labels, moved.raw, block.first, block.n);
    scores.left_out = base_;
    softmax_terms(scores, {.largest = block.largest.data(), .rest = block.rest.data()});
    add_moves(moves, block);
    for (std::size_t i = 0; i < block.n; ++i) {
      const double log_sum = log1p_nonnegative(block.rest[i]);
      rows_[block.first + i] = {
          .others = (block.largest[i] - scores.of_class(base_)[i]) + log_sum,
          .alone = (block.largest[i] - scores.of_class(scores.y[i])[i]) + log_sum,
          .moved = block.moved[i]};
    }
  });
  for (std::size_t i = 0; i < rows_.size(); ++i) total_weight_ += static_cast<double>(weight[i]);
}

std::optional<bool> BaseLosses::falls_after(int n_halvings) {
  const Loss here = known_loss_at(n_halvings);
  const Loss next = known_loss_at(n_halvings + 1);
  if (std::abs(next.sum - here.sum) <= error_of(here) + error_of(next)) return std::nullopt;
  return next.sum < here.sum;
}

/// The loss of a row when the base class has got back a part of what it came down.
double BaseLosses::loss_of(std::size_t row, double given_back) const {
  const double lead = rows_[row].moved * given_back - rows_[row].others;
  return labels_->y[row] == base_ ? softplus(-lead) : rows_[row].alone + softplus(lead);
}

BaseLosses::Loss BaseLosses::loss_at(int n_halvings) const {
  const double given_back = 1.0 - std::ldexp(1.0, -n_halvings);
  std::vector<Loss> losses((rows_.size() + kBlock - 1) / kBlock);
  parallel_for(losses.size(), n_threads_, [&](std::size_t task, std::size_t) {
    Loss some;
    const std::size_t last = std::min((task + 1) * kBlock, rows_.size());
    for (std::size_t i = task * kBlock; i < last; ++i) {
      const double loss = loss_of(i, given_back);
      some.sum += static_cast<double>(weight_[i]) * loss;
      some.largest = std::max(some.largest, loss);
    }
    losses[task] = some;
  });
  Loss all;
  for (const Loss& some : losses) {
    all.sum += some.sum;
    all.largest = std::max(all.largest, some.largest);
  }
  return all;
}

const BaseLosses::Loss& BaseLosses::known_loss_at(int n_halvings) {
  const auto at = static_cast<std::size_t>(n_halvings);
  while (losses_.size() <= at) losses_.push_back(loss_at(static_cast<int>(losses_.size())));
  return losses_[at];
}

/// How far the estimate may be from the true loss, which is itself rounded, row by row.
double BaseLosses::error_of(const Loss& loss) const {
  const double rounding = loss_unit(*labels_, loss.largest);
  return kRelativeError * loss.sum + (kErrorOfRow + 2.0 * rounding) * total_weight_;
}

}  // namespace abcgbm
