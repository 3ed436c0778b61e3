// Row-major scores, as multi-output trees update them: all classes of a row at once. For the
// softmax a few rows at a time are transposed to class order, in the L1 cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "loss/scores.hpp"

namespace abcgbm {

/// A multi-output tree's update of the scores.
struct LeafMove {
  std::span<const std::uint16_t> leaf_of_row;  // empty: no row moves
  std::vector<double> value;                   // [n_leaves][n_classes]
};

/// Collects the moves of a multi-output tree, which are one for each class.
LeafMove leaf_move(std::span<const TreeMove> moves);

/// Updates some rows, and computes their residuals and losses.
Largest move_rows(Scores& scores, const Labels& labels, const LeafMove& move, std::size_t first,
                  std::size_t last);

/// Computes the losses that some rows would have after the move.
void losses_of_rows(const Scores& scores, const Labels& labels, const LeafMove& move,
                    std::size_t first, std::size_t last, std::span<double> row_loss);

}  // namespace abcgbm
