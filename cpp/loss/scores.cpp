#include "loss/scores.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fill.hpp"
#include "loss/reductions.hpp"
#include "loss/row_chunks.hpp"
#include "loss/scores_by_row.hpp"

namespace abcgbm {
namespace {

/// Updates the class-major raw scores of the rows [first, first + n).
void move_chunk(double* raw, std::size_t stride, std::span<const TreeMove> moves, std::size_t first,
                std::size_t n) {
  for (const TreeMove& move : moves) {
    double* of_class = raw + static_cast<std::size_t>(move.tree_class) * stride;
    const std::uint16_t* node = move.node_of_row.data() + first;
    const double* value = move.value.data();
    if (!move.base.exists()) {
      for (std::size_t i = 0; i < n; ++i) of_class[i] += value[node[i]];
      continue;
    }
    double* of_base = raw + static_cast<std::size_t>(move.base.number()) * stride;
    const double* base_value = move.base_value.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint16_t leaf = node[i];
      of_class[i] += value[leaf];
      of_base[i] -= base_value[leaf];
    }
  }
}

/// Updates the rows of one task, and computes their residuals and losses.
Largest move_task(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                  std::size_t first, std::size_t last) {
  const double scale = std::ldexp(1.0, scores.exponent);
  Largest largest;
  for_chunks(first, last, [&](std::size_t start, std::size_t n) {
    move_chunk(scores.raw.data() + start, labels.n_rows(), moves, start, n);
    residuals_and_losses(rows_of(labels, scores.raw, start, n), scale,
                         scores.residual.data() + start, scores.row_loss.data() + start, largest);
  });
  return largest;
}

/// Computes the losses that the rows of one task would have after the moves.
void loss_task(std::span<const double> from, const Labels& labels, std::span<const TreeMove> moves,
               std::size_t first, std::size_t last, std::span<double> row_loss) {
  std::vector<double> buffer;
  for_chunks(first, last, [&](std::size_t start, std::size_t n) {
    losses_and_leaders(rows_after(labels, from, moves, start, n, buffer), row_loss.data() + start,
                       nullptr);
  });
}

/// Updates all rows, and computes losses and, on the current grid, residuals.
Largest move_all(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads) {
  std::vector<Largest> parts(n_row_tasks(labels.n_rows()));
  const bool is_by_row = scores.order == ScoreOrder::by_row;
  const LeafMove by_leaf = is_by_row ? leaf_move(moves) : LeafMove();
  for_row_tasks(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    parts[first / kRowsPerTask] = is_by_row ? move_rows(scores, labels, by_leaf, first, last)
                                            : move_task(scores, labels, moves, first, last);
  });
  return largest_of(labels, parts);
}

int bits_of(ScoreOrder order) {
  return order == ScoreOrder::by_row ? kMultiOutputResidualBits : kResidualBits;
}

void set_losses(Scores& scores, const Labels& labels, double largest, int n_threads) {
  const int exponent = loss_exponent(labels, largest);
  const double unit = std::ldexp(labels.unit, -exponent);
  const std::vector<std::int64_t> sums =
      class_loss_sums(labels, scores.row_loss, std::ldexp(1.0, exponent), n_threads);
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

ScoreRows rows_after(const Labels& labels, std::span<const double> raw,
                     std::span<const TreeMove> moves, std::size_t first, std::size_t n,
                     std::vector<double>& buffer) {
  ScoreRows rows = rows_of(labels, raw, first, n);
  buffer.resize(static_cast<std::size_t>(labels.n_classes) * n);
  for (int k = 0; k < labels.n_classes; ++k) {
    std::copy_n(rows.of_class(k), n, buffer.data() + static_cast<std::size_t>(k) * n);
  }
  move_chunk(buffer.data(), n, moves, first, n);
  rows.raw = buffer.data();
  rows.stride = n;
  return rows;
}

Scores make_scores(const Labels& labels, LargeVector<double> raw, int n_threads, ScoreOrder order) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const Storage storage = storage_of(raw);
  Scores scores;
  scores.order = order;
  scores.raw = std::move(raw);
  const std::size_t n_scores = n_classes * labels.n_rows();
  if (order == ScoreOrder::by_class) scores.residual = zeros<std::int64_t>(n_scores, storage);
  if (order == ScoreOrder::by_row) scores.row_residual = zeros<std::int32_t>(n_scores, storage);
  scores.row_loss = LargeVector<double>(labels.n_rows(), storage);
  scores.class_losses.resize(n_classes);
  scores.exponent = residual_exponent(labels, 0.5, bits_of(order));  // the most likely one
  move_scores(scores, labels, {}, n_threads);
  return scores;
}

void move_scores(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads) {
  // The grid depends on the largest residual, so two passes would be needed. But from one iteration
  // to the next the largest seldom crosses a power of two (about forty times in a long training),
  // so residuals are rounded to the last grid at once, and all is computed again if the grid has
  // changed.
  const Largest largest = move_all(scores, labels, moves, n_threads);
  const int exponent = residual_exponent(labels, largest.residual, bits_of(scores.order));
  if (exponent != scores.exponent) {
    scores.exponent = exponent;
    move_all(scores, labels, {}, n_threads);
  }
  set_losses(scores, labels, largest.loss, n_threads);
}

double move_raw(LargeVector<double>& raw, const Labels& labels, std::span<const TreeMove> moves,
                int n_threads, std::span<std::int32_t> leading) {
  const std::size_t n_rows = labels.n_rows();
  LargeVector<double> row_loss(n_rows, storage_of(raw));
  for_row_tasks(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    for_chunks(first, last, [&](std::size_t start, std::size_t n) {
      move_chunk(raw.data() + start, n_rows, moves, start, n);
      losses_and_leaders(rows_of(labels, raw, start, n), row_loss.data() + start,
                         leading.data() + start);
    });
  });
  return total_loss(labels, labels.weights(), row_loss);
}

double loss_of(const Scores& scores, const Labels& labels, RowWeights weight) {
  if (weight == labels.weights()) return scores.loss;  // the same array
  return total_loss(labels, weight, scores.row_loss);
}

double loss_after(const Scores& scores, const Labels& labels, RowWeights weight,
                  std::span<const TreeMove> moves, int n_threads) {
  LargeVector<double> row_loss(labels.n_rows(), storage_of(scores.raw));
  const bool is_by_row = scores.order == ScoreOrder::by_row;
  const LeafMove by_leaf = is_by_row ? leaf_move(moves) : LeafMove();
  for_row_tasks(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    if (is_by_row) {
      losses_of_rows(scores, labels, by_leaf, first, last, row_loss);
    } else {
      loss_task(scores.raw, labels, moves, first, last, row_loss);
    }
  });
  return total_loss(labels, weight, row_loss);
}

}  // namespace abcgbm
