// The loss when the base class moves by less than its trees say: an estimate that costs little.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "scores.hpp"

namespace abcgbm {

/// Of each row only the base class's score differs from one trial to the next. So the other classes
/// are summed up once, and a trial costs as much as a class instead of as much as all.
class BaseLosses {
 public:
  /// `moved` are the scores after the full step: that of these moves, which have a common base.
  BaseLosses(const Scores& moved, const Labels& labels, RowWeights weight,
             std::span<const TreeMove> moves, int n_threads);

  /// Whether the loss falls when the base class moves by 2^-(n + 1) instead of 2^-n of the full
  /// step; none where the losses are so near to each other that an estimate cannot tell.
  std::optional<bool> falls_after(int n_halvings) const;

 private:
  /// Scores as seen from that of the base class after the full step.
  struct Row {
    double others;  // log of the sum of exp over all classes but the base
    double own;     // that of the row's class
    double moved;   // how far the base class has come down
    double weight;
    bool is_base;  // the row's class
  };

  double loss_at(int n_halvings) const;

  std::vector<Row> rows_;
  double total_weight_ = 0.0;
  int n_threads_;
};

}  // namespace abcgbm
