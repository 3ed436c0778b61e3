// Rows to sums per bin. Sums are integers, so neither the order of rows nor the split of the work
// matters. A row has W sums: {residual, weight}, or {residual, weight, hessian}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "binned.hpp"
#include "scores.hpp"

namespace abcgbm {

template <int W>
using Sums = std::array<std::int64_t, W>;

template <int W>
using Histogram = std::vector<Sums<W>>;  // [total_bins]

/// Adds the sums of `rows` to the histogram.
template <int W>
void add_rows(const Binned& binned, std::span<const std::uint32_t> rows,
              std::span<const Sums<W>> row_sums, std::span<Sums<W>> histogram);

/// Turns the parent's histogram into the larger child's: parent -= smaller child.
template <int W>
void subtract(std::span<Sums<W>> parent, std::span<const Sums<W>> child);

/// The weight in each bin: the same at the root of every tree.
std::vector<std::int64_t> root_weights(const Binned& binned, const Labels& labels, int n_threads);

/// Residual sums of eight classes for one bin: one cache line, added with SIMD.
inline constexpr std::size_t kLane = 8;
struct alignas(64) Line {
  std::array<std::int64_t, kLane> residual{};
};

/// Root histograms of several classes at once: the bins of a row are the same for every class, so
/// one walk over the table serves all.
///
///   classes c0..c7 of group 0            classes c8..c15 of group 1
///   bin 0 [ . . . . . . . . ]            bin 0 [ . . . . . . . . ]
///   bin 1 [ . . . . . . . . ]            ...
struct RootHistograms {
  std::vector<int> classes;
  std::vector<Line> lines;  // [n_groups][total_bins]

  std::int64_t at(std::size_t class_position, std::size_t bin, std::size_t total_bins) const {
    return lines[class_position / kLane * total_bins + bin].residual[class_position % kLane];
  }
};

/// Fills the root histograms of `roots.classes`. Weights multiply residuals.
void fill_roots(const Binned& binned, const Labels& labels, const Scores& scores, int n_threads,
                RootHistograms& roots);

}  // namespace abcgbm
