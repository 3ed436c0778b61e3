#include "base_losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "elementary.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 512;
// Leaf values are rounded anew for each trial, to multiples of 2^-22 at most; and scores of a row
// that is fitted well differ in few digits from their sum.
constexpr double kRelativeError = 1e-5;
constexpr double kErrorOfRow = 1e-12;

/// Some rows, and what is known of them.
struct SomeRows {
  std::size_t first;
  std::size_t n;
  std::array<double, kBlock> largest;  // of the scores but the base's
  std::array<double, kBlock> sum;      // of exp of those, seen from the largest
  std::array<double, kBlock> moved;
};

struct LargestKernel {
  [[gnu::always_inline]] static inline void run(const double* raw, SomeRows* rows) {
    for (std::size_t i = 0; i < rows->n; ++i) {
      rows->largest[i] = std::max(rows->largest[i], raw[i]);
    }
  }
};

struct SumKernel {
  [[gnu::always_inline]] static inline void run(const double* raw, SomeRows* rows) {
    for (std::size_t i = 0; i < rows->n; ++i) {
      rows->sum[i] += exp_nonpositive(raw[i] - rows->largest[i]);
    }
  }
};

/// Runs a kernel for every class but the base.
template <class Kernel>
void for_others(const Scores& scores, const Labels& labels, int base, SomeRows& rows) {
  for (int k = 0; k < labels.n_classes; ++k) {
    if (k == base) continue;
    const std::size_t start = static_cast<std::size_t>(k) * labels.n_rows() + rows.first;
    dispatch<Kernel>(scores.raw.data() + start, &rows);
  }
}

void add_moves(std::span<const TreeMove> moves, SomeRows& rows) {
  for (const TreeMove& move : moves) {
    const std::uint16_t* node = move.node_of_row.data() + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) rows.moved[i] += move.base_value[node[i]];
  }
}

}  // namespace

BaseLosses::BaseLosses(const Scores& moved, const Labels& labels, RowWeights weight,
                       std::span<const TreeMove> moves, int n_threads)
    : rows_(labels.n_rows()), n_threads_(n_threads) {
  const int base = moves.front().base;
  const double* base_raw = moved.raw.data() + static_cast<std::size_t>(base) * rows_.size();
  const std::size_t n_tasks = (rows_.size() + kBlock - 1) / kBlock;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    check_interrupt();
    SomeRows some{.first = task * kBlock,
                  .n = std::min(kBlock, rows_.size() - task * kBlock),
                  .largest = {},
                  .sum = {},
                  .moved = {}};
    some.largest.fill(-HUGE_VAL);
    for_others<LargestKernel>(moved, labels, base, some);
    for_others<SumKernel>(moved, labels, base, some);
    add_moves(moves, some);
    for (std::size_t i = 0; i < some.n; ++i) {
      const std::size_t row = some.first + i;
      const auto y = static_cast<std::size_t>(labels.y[row]);
      rows_[row] = {.others = some.largest[i] + std::log(some.sum[i]) - base_raw[row],
                    .own = moved.raw[y * rows_.size() + row] - base_raw[row],
                    .moved = some.moved[i],
                    .weight = static_cast<double>(weight[row]),
                    .is_base = labels.y[row] == base};
    }
  });
  for (const Row& row : rows_) total_weight_ += row.weight;
}

std::optional<bool> BaseLosses::falls_after(int n_halvings) const {
  const double here = loss_at(n_halvings);
  const double next = loss_at(n_halvings + 1);
  const double error = kRelativeError * std::max(here, next) + kErrorOfRow * total_weight_;
  if (std::abs(next - here) <= error) return std::nullopt;
  return next < here;
}

double BaseLosses::loss_at(int n_halvings) const {
  const double given_back = 1.0 - std::ldexp(1.0, -n_halvings);
  std::vector<double> losses((rows_.size() + kBlock - 1) / kBlock, 0.0);
  parallel_for(losses.size(), n_threads_, [&](std::size_t task, std::size_t) {
    const std::size_t last = std::min((task + 1) * kBlock, rows_.size());
    for (std::size_t i = task * kBlock; i < last; ++i) {
      const Row& row = rows_[i];
      const double base = row.moved * given_back;
      const double all =
          std::max(row.others, base) + std::log1p(std::exp(-std::abs(row.others - base)));
      losses[task] += row.weight * (all - (row.is_base ? base : row.own));
    }
  });
  double loss = 0.0;
  for (const double of_task : losses) loss += of_task;
  return loss;
}

}  // namespace abcgbm
