// Scores that lie by row, as shared trees move them: all classes of a row at once. Some rows at a
// time are laid out by class in the nearest cache, where the softmax is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "loss/scores.hpp"

namespace abcgbm {

/// How far a shared tree moves each row.
struct LeafMove {
  std::span<const std::uint16_t> leaf_of_row;  // none: no row moves
  std::vector<double> value;                   // [n_leaves][n_classes]
};

/// The moves of one shared tree, which are one for each class.
LeafMove leaf_move(std::span<const TreeMove> moves);

/// Moves some rows and computes their residuals and losses.
Largest move_rows(Scores& scores, const Labels& labels, const LeafMove& move, std::size_t first,
                  std::size_t last);

/// The losses of some rows after the move, which is not made.
void losses_of_rows(const Scores& scores, const Labels& labels, const LeafMove& move,
                    std::size_t first, std::size_t last, std::span<double> row_loss);

}  // namespace abcgbm
