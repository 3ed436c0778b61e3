// The loss when the base class moves by less than its trees say: an estimate that costs little.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/storage.hpp"
#include "loss/scores.hpp"

namespace abcgbm {

/// Of each row only the base class's score differs from one trial to the next. So the other classes
/// are summed up once, and a trial costs as much as a class instead of as much as all.
class BaseLosses {
 public:
  /// The moves of the full step, which have a common base, and what of it is yet to be added to the
  /// raw scores.
  struct Moves {
    std::span<const TreeMove> full;
    std::span<const TreeMove> to_full;
  };

  /// Labels and weights are kept by reference.
  BaseLosses(std::span<const double> raw, const Labels& labels, RowWeights weight,
             const Moves& moves, int n_threads, const Storage& storage);

  /// A loss, and how far from the true one it may be.
  struct Estimate {
    double loss = 0.0;
    double error = 0.0;
  };

  /// The loss when the base class moves by 2^-n of the full step.
  const Estimate& loss_at(int n_halvings);

  /// Whether the loss falls when that move is halved once more; none where the losses are so near
  /// to each other that estimates cannot tell.
  std::optional<bool> falls_if_halved_again(int n_halvings);

  static constexpr std::size_t bytes_per_row() { return 3 * sizeof(double); }

 private:
  /// The loss of a row is alone + log(1 + exp(lead + given_back * moved)), with the part of its
  /// move that the base class gets back.
  struct Rows {
    LargeVector<double> alone;  // the loss if there were no base class; 0 for rows of that class
    LargeVector<double> lead;   // of the base class over all others; of these for its own rows
    LargeVector<double> moved;  // how far the base class has come down; up for its own rows
  };

  /// The loss of some rows, in units of their weights, and of the one that has the largest.
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
  std::vector<Estimate> losses_;  // by number of halvings, as far as they have been asked for
  double total_weight_ = 0.0;
};

}  // namespace abcgbm
