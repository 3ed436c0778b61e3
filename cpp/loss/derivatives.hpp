// The derivatives of the loss at single rows, as a tree sums them.
#pragma once

#include <cstdint>
#include <span>

#include "base/base_class.hpp"
#include "data/labels.hpp"
#include "loss/scores.hpp"
#include "loss/sums.hpp"

namespace abcgbm {

/// The rows that the trees of a step are grown on.
struct TreeRows {
  const Scores& scores;
  const Labels& labels;
  RowWeights weight;  // of each row in the step: 0 if it was not drawn
};

/// What a tree sums of each of some rows, in their order: residual, weight and, with W = 3,
/// hessian.
template <int W>
void row_sums(const TreeRows& rows, const ClassPair& pair, std::span<const std::uint32_t> list,
              std::span<Sums<W>> out);

}  // namespace abcgbm
