#include "loss/transpose.hpp"

#include <array>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kFour = 4;
constexpr std::size_t kAhead = std::size_t{1}
                               << 11;  // scores; prefetch distance, into the next rows

/// Transposes a 4 x 4 tile in registers.
template <class Four>
[[gnu::always_inline]] inline void transpose(std::array<Four, kFour>& rows) {
  const Four even01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 2, 6);
  const Four odd01 = __builtin_shufflevector(rows[0], rows[1], 1, 5, 3, 7);
  const Four even23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 2, 6);
  const Four odd23 = __builtin_shufflevector(rows[2], rows[3], 1, 5, 3, 7);
  rows[0] = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
  rows[2] = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
  rows[3] = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
}

struct MoveKernel {
  using Four = Wide<kFour>::Doubles;

  [[gnu::always_inline]] static inline void run(const RowsToMove* given, double* by_class,
                                                std::size_t stride) {
    const RowsToMove rows = *given;
    const std::size_t n_whole = rows.n_rows / kFour * kFour;
    const std::size_t k_whole = rows.n_classes / kFour * kFour;
    for (std::size_t i = 0; i < n_whole; i += kFour) {
      for (std::size_t k = 0; k < k_whole; k += kFour) move_tile(rows, i, k, by_class, stride);
    }
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
      for (std::size_t k = i < n_whole ? k_whole : 0; k < rows.n_classes; ++k) {
        double& raw = rows.raw[i * rows.n_classes + k];
        if (rows.leaf != nullptr) raw += rows.value[rows.leaf[i] * rows.n_classes + k];
        by_class[k * stride + i] = raw;
      }
    }
  }

  [[gnu::always_inline]] static inline void move_tile(const RowsToMove& rows, std::size_t i,
                                                      std::size_t k, double* by_class,
                                                      std::size_t stride) {
    std::array<Four, kFour> tile;
    for (std::size_t r = 0; r < kFour; ++r) {
      double* raw = rows.raw + (i + r) * rows.n_classes + k;
      tile[r] = load<Four>(raw);
      __builtin_prefetch(raw + kAhead, 1);
      if (rows.leaf == nullptr) continue;
      tile[r] += load<Four>(rows.value + rows.leaf[i + r] * rows.n_classes + k);
      store(tile[r], raw);
    }
    transpose(tile);
    for (std::size_t c = 0; c < kFour; ++c) store(tile[c], by_class + (k + c) * stride + i);
  }
};

struct ToRowsKernel {
  using Four = Wide<kFour>::Integers;
  using ShortFour = Wide<kFour>::ShortIntegers;

  [[gnu::always_inline]] static inline void run(const std::int64_t* by_class, std::size_t stride,
                                                std::size_t n_rows, std::size_t n_classes,
                                                std::int32_t* by_row) {
    const std::size_t n_whole = n_rows / kFour * kFour;
    const std::size_t k_whole = n_classes / kFour * kFour;
    for (std::size_t i = 0; i < n_whole; i += kFour) {
      for (std::size_t k = 0; k < k_whole; k += kFour) {
        std::array<Four, kFour> tile;
        for (std::size_t c = 0; c < kFour; ++c) {
          tile[c] = load<Four>(by_class + (k + c) * stride + i);
        }
        transpose(tile);
        for (std::size_t r = 0; r < kFour; ++r) {
          store(__builtin_convertvector(tile[r], ShortFour), by_row + (i + r) * n_classes + k);
        }
      }
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
      for (std::size_t k = i < n_whole ? k_whole : 0; k < n_classes; ++k) {
        by_row[i * n_classes + k] =
            static_cast<std::int32_t>(load<std::int64_t>(by_class + k * stride + i));
      }
    }
  }
};

}  // namespace

void move_to_classes(const RowsToMove& rows, double* by_class, std::size_t stride) {
  dispatch<MoveKernel>(&rows, by_class, stride);
}

void to_rows(const std::int64_t* by_class, std::size_t stride, std::size_t n_rows,
             std::size_t n_classes, std::int32_t* by_row) {
  dispatch<ToRowsKernel>(by_class, stride, n_rows, n_classes, by_row);
}

}  // namespace abcgbm
