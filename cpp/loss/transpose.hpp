// Between arrays that lie by class and arrays that lie by row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// Scores of some rows that lie by row, [n_rows][n_classes], and how far they move: by the values
/// of the leaf of each, unless there are none.
struct RowsToMove {
  std::size_t n_rows;
  std::size_t n_classes;
  double* raw;
  const double* value;        // [n_leaves][n_classes]
  const std::uint16_t* leaf;  // of each row; nullptr: nothing moves
};

/// Moves the scores, and writes them by class: [n_classes][stride].
void move_to_classes(const RowsToMove& rows, double* by_class, std::size_t stride);

/// From [n_classes][stride] to [n_rows][n_classes], of integers that fit into 32 bits.
void to_rows(const std::int64_t* by_class, std::size_t stride, std::size_t n_rows,
             std::size_t n_classes, std::int32_t* by_row);

}  // namespace abcgbm
