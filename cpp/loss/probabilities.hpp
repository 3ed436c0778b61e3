// Raw scores to class probabilities.
#pragma once

#include <cstddef>
#include <span>

namespace abcgbm {

/// Replaces row-major scores [n_rows][n_classes] by probabilities or their logarithms.
void softmax_rows(std::span<double> raw, std::size_t n_classes, bool logarithm, int n_threads);

}  // namespace abcgbm
