// Transposition between class order and row order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abcgbm {

/// Row-major scores [n_rows][n_classes] and the leaf whose values are added to each row, if any.
struct RowsToMove {
  std::size_t n_rows;
  std::size_t n_classes;
  double* raw;
  const double* value;        // [n_leaves][n_classes]
  const std::uint16_t* leaf;  // of each row; nullptr: no update
};

/// Updates the scores, and writes them in class order: [n_classes][stride].
void move_to_classes(const RowsToMove& rows, double* by_class, std::size_t stride);

/// From [n_classes][stride] to [n_rows][n_classes], for integers that fit into 32 bits.
void to_rows(const std::int64_t* by_class, std::size_t stride, std::size_t n_rows,
             std::size_t n_classes, std::int32_t* by_row);

}  // namespace abcgbm
