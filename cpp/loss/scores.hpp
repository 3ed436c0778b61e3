// Scores to residuals and losses (softmax), on integer grids; docs/arithmetic.md states the
// formulas.
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

/// How scores and residuals lie in memory: a tree for one class wants those of a class side by
/// side, a shared one those of a row.
enum class ScoreOrder { by_class, by_row };

/// What the model says of the training rows, and how well. All of it lies where the raw scores do.
struct Scores {
  LargeVector<double> raw;                 // [n_classes][n_rows], or [n_rows][n_classes]
  LargeVector<std::int64_t> residual;      // r - p in multiples of 2^-exponent, [n_classes][n_rows]
  LargeVector<std::int32_t> row_residual;  // the same if scores lie by row, [n_rows][n_classes]
  ScoreOrder order = ScoreOrder::by_class;
  LargeVector<double> row_loss;
  int exponent = 0;
  std::vector<double> class_losses;
  double loss = 0.0;
};

/// The residuals of all rows for a class, if they lie by class.
inline const std::int64_t* residuals_of(const Scores& scores, const Labels& labels, int k) {
  return scores.residual.data() + static_cast<std::size_t>(k) * labels.n_rows();
}

/// The residuals of a row for all classes, if they lie by row.
inline const std::int32_t* residuals_of_row(const Scores& scores, const Labels& labels,
                                            std::size_t row) {
  return scores.row_residual.data() + row * static_cast<std::size_t>(labels.n_classes);
}

/// How far a tree moves each row: raw[class] += value[node], raw[base] -= base_value[node].
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

/// The same after the trees' moves, which are made in the buffer alone.
ScoreRows rows_after(const Labels& labels, std::span<const double> raw,
                     std::span<const TreeMove> moves, std::size_t first, std::size_t n,
                     std::vector<double>& buffer);

/// Starts from the given raw scores, which lie in this order.
Scores make_scores(const Labels& labels, LargeVector<double> raw, int n_threads,
                   ScoreOrder order = ScoreOrder::by_class);

/// Adds the trees' values to the raw scores, then computes residuals and losses anew. Scores that
/// lie by row are moved by one shared tree: there is a move for each class, and rows are in the
/// same leaf for all.
void move_scores(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads);

/// Adds the trees' values to raw scores [n_classes][n_rows]; returns the loss then, and writes the
/// class of each row's largest score, the first among equals.
double move_raw(LargeVector<double>& raw, const Labels& labels, std::span<const TreeMove> moves,
                int n_threads, std::span<std::int32_t> leading);

/// The loss of the rows, weighed otherwise than by their labels' weights.
double loss_of(const Scores& scores, const Labels& labels, RowWeights weight);

/// What that loss would be after the trees' moves; the scores stay where they are.
double loss_after(const Scores& scores, const Labels& labels, RowWeights weight,
                  std::span<const TreeMove> moves, int n_threads);

}  // namespace abcgbm
