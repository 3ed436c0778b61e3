#include "loss/scores.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/elementary.hpp"
#include "base/fill.hpp"
#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 256;  // rows whose scores are worked on together, in L1
constexpr std::size_t kRowsPerTask = kBlock * 4;

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

/// The exponent of the power of two by which numbers up to `largest` are scaled to integers of so
/// many bits; at most 1000, where the power and its inverse are still normal numbers.
int scale_exponent(int n_bits, double largest) {
  return largest > 0.0 ? std::min(n_bits - exponent_of(largest), 1000) : 0;
}

int residual_bits(const Labels& labels) { return std::min(48, 60 - labels.total_bits); }

int loss_exponent_of(const Labels& labels, double largest) {
  return scale_exponent(std::min(50, 62 - labels.total_bits), largest);
}

/// Moves the raw scores of the rows [first, first + n), which are class-major with `stride`.
void move_block(double* raw, std::size_t stride, std::span<const TreeMove> moves, std::size_t first,
                std::size_t n) {
  for (const TreeMove& move : moves) {
    double* of_class = raw + static_cast<std::size_t>(move.tree_class) * stride;
    const std::uint16_t* node = move.node_of_row.data() + first;
    const double* value = move.value.data();
    if (move.base < 0) {
      for (std::size_t i = 0; i < n; ++i) of_class[i] += value[node[i]];
      continue;
    }
    double* of_base = raw + static_cast<std::size_t>(move.base) * stride;
    const double* base_value = move.base_value.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint16_t leaf = node[i];
      of_class[i] += value[leaf];
      of_base[i] -= base_value[leaf];
    }
  }
}

/// Calls each(start, n) for the blocks of the rows [first, last).
template <class Each>
void for_blocks(std::size_t first, std::size_t last, const Each& each) {
  for (std::size_t start = first; start < last; start += kBlock) {
    each(start, std::min(kBlock, last - start));
  }
}

/// Moves the rows of one task and computes their residuals and losses.
Largest move_task(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                  std::size_t first, std::size_t last) {
  const double scale = std::ldexp(1.0, scores.exponent);
  Largest largest;
  for_blocks(first, last, [&](std::size_t start, std::size_t n) {
    move_block(scores.raw.data() + start, labels.n_rows(), moves, start, n);
    residuals_and_losses(rows_of(labels, scores.raw, start, n), scale,
                         scores.residual.data() + start, scores.row_loss.data() + start, largest);
  });
  return largest;
}

/// The losses of the rows of one task after the moves, which are not made.
void loss_task(std::span<const double> from, const Labels& labels, std::span<const TreeMove> moves,
               std::size_t first, std::size_t last, std::span<double> row_loss) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  std::vector<double> raw(n_classes * kBlock);
  for_blocks(first, last, [&](std::size_t start, std::size_t n) {
    for (std::size_t k = 0; k < n_classes; ++k) {
      std::copy_n(from.data() + k * labels.n_rows() + start, n, raw.data() + k * kBlock);
    }
    move_block(raw.data(), kBlock, moves, start, n);
    ScoreRows moved = rows_of(labels, from, start, n);
    moved.raw = raw.data();
    moved.stride = kBlock;
    losses_and_leaders(moved, row_loss.data() + start, nullptr);
  });
}

std::size_t n_tasks_of(const Labels& labels) {
  return (labels.n_rows() + kRowsPerTask - 1) / kRowsPerTask;
}

/// Calls each(first, last) for some rows at a time.
template <class Each>
void for_rows(const Labels& labels, int n_threads, const Each& each) {
  parallel_for(n_tasks_of(labels), n_threads, [&](std::size_t task, std::size_t) {
    each(task * kRowsPerTask, std::min((task + 1) * kRowsPerTask, labels.n_rows()));
  });
}

/// Moves all rows and computes residuals, on the grid that the scores name, and losses.
Largest move_all(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads) {
  std::vector<Largest> parts(n_tasks_of(labels));
  for_rows(labels, n_threads, [&](std::size_t first, std::size_t last) {
    parts[first / kRowsPerTask] = move_task(scores, labels, moves, first, last);
  });
  Largest all;
  for (const Largest& part : parts) {
    all.residual = std::max(all.residual, part.residual);
    all.loss = std::max(all.loss, part.loss);
  }
  return all;
}

/// The losses of the rows of each class, as integers. Some rows at a time have sums of their own.
std::vector<std::int64_t> sum_losses(const Scores& scores, const Labels& labels, double scale,
                                     int n_threads) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const RowWeights weight = labels.weights();
  std::vector<std::int64_t> parts(n_tasks_of(labels) * n_classes, 0);
  for_rows(labels, n_threads, [&](std::size_t first, std::size_t last) {
    std::int64_t* const part = parts.data() + first / kRowsPerTask * n_classes;
    for (std::size_t i = first; i < last; ++i) {
      part[labels.y[i]] += weight[i] * round_to_int(scores.row_loss[i] * scale);
    }
  });
  std::vector<std::int64_t> sums(n_classes, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % n_classes] += parts[i];
  return sums;
}

void set_losses(Scores& scores, const Labels& labels, double largest, int n_threads) {
  const int exponent = loss_exponent_of(labels, largest);
  const double unit = std::ldexp(labels.unit, -exponent);
  const std::vector<std::int64_t> sums =
      sum_losses(scores, labels, std::ldexp(1.0, exponent), n_threads);
  std::int64_t total = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    scores.class_losses[k] = static_cast<double>(sums[k]) * unit;
    total += sums[k];
  }
  scores.loss = static_cast<double>(total) * unit;
}

}  // namespace

ScoreRows rows_of(const Labels& labels, std::span<const double> raw, std::size_t first,
                  std::size_t n) {
  return {.n = n,
          .stride = labels.n_rows(),
          .n_classes = labels.n_classes,
          .raw = raw.data() + first,
          .y = labels.y.data() + first};
}

Scores make_scores(const Labels& labels, std::vector<double> raw, int n_threads) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  Scores scores;
  scores.raw = std::move(raw);
  scores.residual = filled(n_classes * labels.n_rows(), std::int64_t{0});
  scores.row_loss.resize(labels.n_rows());
  scores.class_losses.resize(n_classes);
  scores.exponent = residual_bits(labels);  // right if a row gives its class at most a half
  move_scores(scores, labels, {}, n_threads);
  return scores;
}

void move_scores(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads) {
  // The grid follows from the largest residual. It is mostly the last one; otherwise all is
  // computed once more.
  const Largest largest = move_all(scores, labels, moves, n_threads);
  const int exponent = scale_exponent(residual_bits(labels), largest.residual);
  if (exponent != scores.exponent) {
    scores.exponent = exponent;
    move_all(scores, labels, {}, n_threads);
  }
  set_losses(scores, labels, largest.loss, n_threads);
}

double move_raw(std::vector<double>& raw, const Labels& labels, std::span<const TreeMove> moves,
                int n_threads, std::span<std::int32_t> leading) {
  const std::size_t n_rows = labels.n_rows();
  std::vector<double> row_loss(n_rows);
  for_rows(labels, n_threads, [&](std::size_t first, std::size_t last) {
    for_blocks(first, last, [&](std::size_t start, std::size_t n) {
      move_block(raw.data() + start, n_rows, moves, start, n);
      losses_and_leaders(rows_of(labels, raw, start, n), row_loss.data() + start,
                         leading.data() + start);
    });
  });
  return total_loss(labels, labels.weights(), row_loss);
}

double loss_of(const Scores& scores, const Labels& labels, RowWeights weight) {
  if (weight == labels.weights()) return scores.loss;
  return total_loss(labels, weight, scores.row_loss);
}

double loss_after(const Scores& scores, const Labels& labels, RowWeights weight,
                  std::span<const TreeMove> moves, int n_threads) {
  std::vector<double> row_loss(labels.n_rows());
  for_rows(labels, n_threads, [&](std::size_t first, std::size_t last) {
    loss_task(scores.raw, labels, moves, first, last, row_loss);
  });
  return total_loss(labels, weight, row_loss);
}

double loss_unit(const Labels& labels, double largest) {
  return std::ldexp(1.0, -loss_exponent_of(labels, largest));
}

double total_loss(const Labels& labels, RowWeights weight, std::span<const double> row_loss) {
  double largest = 0.0;
  for (const double loss : row_loss) largest = std::max(largest, loss);
  const int exponent = loss_exponent_of(labels, largest);
  const double scale = std::ldexp(1.0, exponent);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < row_loss.size(); ++i) {
    sum += weight[i] * round_to_int(row_loss[i] * scale);
  }
  return static_cast<double>(sum) * std::ldexp(labels.unit, -exponent);
}

}  // namespace abcgbm
