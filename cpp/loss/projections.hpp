// Random projections of residuals and hessians, on which multi-output trees search their splits;
// docs/arithmetic.md states the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "loss/derivatives.hpp"
#include "loss/multi_output_sums.hpp"

namespace abcgbm {

/// Either the classes themselves or random sign vectors over the classes.
struct Projections {
  std::size_t n = 0;
  std::size_t n_lanes = 0;  // above n, a multiple of eight
  /// [n_classes][n_lanes]: all bits set where a class has sign -1; lane n has them for every class.
  /// Empty: the classes themselves.
  std::vector<std::int32_t> is_minus{};

  bool are_drawn() const { return !is_minus.empty(); }
};

/// The number of projections: `n_requested`, or all classes if that is 0 or not less.
std::size_t n_projections_of(std::size_t n_requested, int n_classes);

/// The projections of an iteration, drawn by key.
Projections projections_of(std::size_t n_requested, int n_classes, std::uint64_t seed,
                           std::uint64_t iteration);

/// How many bits sums over rows are shortened by to fit into 32.
struct SearchGrid {
  int shift = 0;             // of residuals and hessians
  int weight_shift = 0;      // of weights
  bool rounds_first = true;  // a row is rounded, then weighted, so that weight 2 equals two rows
};

/// `own_sum` is the weighted sum of the residuals of the rows' own classes.
SearchGrid search_grid(const Projections& projections, std::int64_t own_sum, int total_bits);

/// Computes the sums that a multi-output tree takes of every row, [n_rows][stride].
void fill_row_sums(const TreeRows& rows, const Projections& projections, const SearchGrid& grid,
                   const SumLayout& sum_layout, int n_threads, std::span<std::int32_t> out);

/// The sums over the rows of all ranks, given those of each row of this rank.
MultiOutputSums total_row_sums(const Labels& labels, std::span<const std::int32_t> row_sums,
                               std::size_t stride, int n_threads);

}  // namespace abcgbm
