// First and second derivatives of the loss at single rows, as single-output trees sum them.
#pragma once

#include <cstdint>
#include <span>

#include "base/base_class.hpp"
#include "data/labels.hpp"
#include "loss/scores.hpp"
#include "loss/sums.hpp"

namespace abcgbm {

/// The rows that the trees of an iteration are trained on.
struct TreeRows {
  const Scores& scores;
  const Labels& labels;
  RowWeights weight;  // weight in this iteration: 0 if the row was not sampled
};

/// The sums that a tree takes of each listed row: residual, weight and, with W = 3, hessian.
template <int W>
void row_sums(const TreeRows& rows, const ClassPair& pair, std::span<const std::uint32_t> list,
              std::span<Sums<W>> out);

}  // namespace abcgbm
