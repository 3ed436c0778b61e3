// Raw scores, residuals and losses of the training rows (softmax), on integer grids;
// docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "base/storage.hpp"
#include "data/labels.hpp"
#include "loss/grid.hpp"
#include "loss/softmax.hpp"

namespace abcgbm {

/// Memory order of scores and residuals: single-output trees read those of a class, multi-output
/// trees those of a row.
enum class ScoreOrder { by_class, by_row };

/// Raw scores, residuals and losses of the training rows, all in the storage of the raw scores.
struct Scores {
  LargeVector<double> raw;                 // [n_classes][n_rows], or [n_rows][n_classes]
  LargeVector<std::int64_t> residual;      // r - p in multiples of 2^-exponent, [n_classes][n_rows]
  LargeVector<std::int32_t> row_residual;  // the same in row order, [n_rows][n_classes]
  ScoreOrder order = ScoreOrder::by_class;
  LargeVector<double> row_loss;
  int exponent = 0;
  std::vector<double> class_losses;
  double loss = 0.0;
};

/// The residuals of all rows for one class, in class order.
inline const std::int64_t* residuals_of(const Scores& scores, const Labels& labels, int k) {
  return scores.residual.data() + static_cast<std::size_t>(k) * labels.n_rows();
}

/// The residuals of a row for all classes, in row order.
inline const std::int32_t* residuals_of_row(const Scores& scores, const Labels& labels,
                                            std::size_t row) {
  return scores.row_residual.data() + row * static_cast<std::size_t>(labels.n_classes);
}

/// A tree's update of the scores: raw[class] += value[node], raw[base] -= base_value[node].
struct TreeMove {
  int tree_class = 0;
  BaseClass base;
  std::span<const std::uint16_t> node_of_row;
  std::span<const double> value;       // by node
  std::span<const double> base_value;  // by node
};

/// Rows [first, first + n) of raw scores [n_classes][n_rows].
ScoreRows rows_of(const Labels& labels, std::span<const double> raw, std::size_t first,
                  std::size_t n);

/// The same rows after the moves, in the buffer; the raw scores stay as they are.
ScoreRows rows_after(const Labels& labels, std::span<const double> raw,
                     std::span<const TreeMove> moves, std::size_t first, std::size_t n,
                     std::vector<double>& buffer);

/// Computes residuals and losses of raw scores, which are in the given order.
Scores make_scores(const Labels& labels, LargeVector<double> raw, int n_threads,
                   ScoreOrder order = ScoreOrder::by_class);

/// Adds the trees' values to the raw scores, then updates residuals and losses. In row order the
/// moves are those of one multi-output tree: one for each class, with the same leaf of every row.
void move_scores(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads);

/// Adds the trees' values to raw scores [n_classes][n_rows], and writes the class of each row's
/// largest score, the first among equals. Returns the new loss.
double move_raw(LargeVector<double>& raw, const Labels& labels, std::span<const TreeMove> moves,
                int n_threads, std::span<std::int32_t> leading);

/// The loss with other weights than those of the labels.
double loss_of(const Scores& scores, const Labels& labels, RowWeights weight);

/// The loss that the scores would have after the moves.
double loss_after(const Scores& scores, const Labels& labels, RowWeights weight,
                  std::span<const TreeMove> moves, int n_threads);

}  // namespace abcgbm
