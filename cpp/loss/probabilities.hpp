// Raw scores of rows to their probabilities.
#pragma once

#include <cstddef>
#include <span>

namespace abcgbm {

/// Probabilities, or their logarithms, of row-major scores [n_rows][n_classes], in place.
void softmax_rows(std::span<double> raw, std::size_t n_classes, bool logarithm, int n_threads);

}  // namespace abcgbm
