// Estimates of the loss for several step lengths of the base class.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/storage.hpp"
#include "loss/scores.hpp"

namespace abcgbm {

/// Between trials only the base class's score of a row changes. So the softmax over the other
/// classes is reduced to three numbers a row once, and a trial costs as much as one class. The
/// exact losses are compared only where two estimates are closer than their errors, so the choice
/// is that of the exact losses.
class BaseLosses {
 public:
  /// The moves of the full step, and those that are still to be applied to the raw scores.
  struct Moves {
    std::span<const TreeMove> full;
    std::span<const TreeMove> to_full;
  };

  /// Keeps references to the labels and weights.
  BaseLosses(std::span<const double> raw, const Labels& labels, RowWeights weight,
             const Moves& moves, int n_threads, const Storage& storage);

  /// An estimated loss, and a bound of its error.
  struct Estimate {
    double loss = 0.0;
    double error = 0.0;
  };

  /// The loss when the base class moves by 2^-n_halvings of the full step.
  const Estimate& loss_at(int n_halvings);

  /// Whether the loss falls when that move is halved again; no value if the estimates are too
  /// close.
  std::optional<bool> falls_if_halved_again(int n_halvings);

  static constexpr std::size_t bytes_per_row() { return 3 * sizeof(double); }

 private:
  /// The loss of a row is without_base + log(1 + exp(lead + given_back * moved)), where given_back
  /// is the fraction of its move that the base class gets back.
  struct Rows {
    LargeVector<double> without_base;  // loss without the base class; 0 for rows of that class
    LargeVector<double> lead;   // of the base class over all others; for its own rows the reverse
    LargeVector<double> moved;  // fall of the base class's score; rise for its own rows
  };

  /// The weighted loss of some rows, and the largest single loss.
  struct Sum {
    double loss = 0.0;
    double largest = 0.0;
  };

  Sum sum_of(std::size_t first, std::size_t last, double given_back) const;
  Estimate estimate(int n_halvings) const;

  const Labels* labels_;
  RowWeights weight_;
  int n_threads_;
  Rows rows_;
  std::vector<Estimate> losses_;  // by number of halvings, computed on demand
  double total_weight_ = 0.0;
};

}  // namespace abcgbm
