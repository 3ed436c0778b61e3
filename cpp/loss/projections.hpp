// The directions in which the cuts of a shared tree are measured, and what its rows are in them;
// docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "loss/derivatives.hpp"
#include "loss/multi_output_sums.hpp"

namespace abcgbm {

/// All classes, or some vectors with a +1 or a -1 for each class.
struct Projections {
  std::size_t n = 0;
  std::size_t n_lanes = 0;  // above n, a multiple of eight
  /// [n_classes][n_lanes]: all bits where a class has -1; lane n has them for every class. None:
  /// all classes.
  std::vector<std::int32_t> is_minus{};

  bool are_drawn() const { return !is_minus.empty(); }
};

/// How many there are: as many as asked for; all classes if these are no more, or if none are asked
/// for.
std::size_t n_projections_of(std::size_t n_requested, int n_classes);

/// The directions of a step: as many as asked for, drawn by key; all classes if these are no more,
/// or if none are asked for.
Projections projections_of(std::size_t n_requested, int n_classes, std::uint64_t seed,
                           std::uint64_t iteration);

/// By how many bits sums over rows are shortened to fit into 32.
struct SearchGrid {
  int shift = 0;             // of residuals and hessians
  int weight_shift = 0;      // of weights
  bool weighs_later = true;  // a row is shortened first, then weighed: so weight 2 is the row twice
};

/// `own_sum` is that of the residuals of the rows' own classes times weights.
SearchGrid search_grid(const Projections& projections, std::int64_t own_sum, int total_bits);

/// Writes what a shared tree sums of all rows, [n_rows][stride].
void fill_row_sums(const TreeRows& rows, const Projections& projections, const SearchGrid& grid,
                   const SumLayout& sum_layout, int n_threads, std::span<std::int32_t> out);

/// The sums of all rows, given those of each of this rank's.
MultiOutputSums total_row_sums(const Labels& labels, std::span<const std::int32_t> row_sums,
                               std::size_t stride, int n_threads);

}  // namespace abcgbm
