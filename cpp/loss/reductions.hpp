// All sums and maxima over rows of the loss and its derivatives, except histograms;
// docs/determinism.md lists them. Sums are integers, so neither the order of the rows nor their
// division into shards matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "loss/derivatives.hpp"
#include "loss/softmax.hpp"

namespace abcgbm {

/// The largest residual and loss of all rows, which determine the grids, given those of parts.
Largest largest_of(const Labels& labels, std::span<const Largest> parts);

/// The weighted losses of the rows of each class, in multiples of 1 / scale.
std::vector<std::int64_t> class_loss_sums(const Labels& labels, std::span<const double> row_loss,
                                          double scale, int n_threads);

/// The losses of all rows.
using RowLosses = std::span<const double>;

/// The weighted sum of the losses for each of several trials, on the grid of its largest loss.
std::vector<double> total_losses(const Labels& labels, RowWeights weight,
                                 std::span<const RowLosses> trials, int n_threads);
double total_loss(const Labels& labels, RowWeights weight, RowLosses row_loss);

/// The weighted hessians of this rank's rows in each node.
std::vector<std::int64_t> hessian_sums(const TreeRows& rows, const ClassPair& pair,
                                       std::span<const std::uint16_t> node_of_row,
                                       std::size_t n_nodes);

/// The weighted sum of the residuals of the rows' own classes, from row-major residuals; the grid
/// of a multi-output split search follows from it.
std::int64_t own_residual_sum(const TreeRows& rows, int n_threads);

/// The rows of a leaf.
using LeafRows = std::span<const std::uint32_t>;

/// The weighted residuals and hessians of the rows in each leaf by class, from row-major residuals:
/// [n_leaves][2][n_classes].
std::vector<std::int64_t> leaf_sums(const TreeRows& rows, std::span<const LeafRows> leaves,
                                    int n_threads);

}  // namespace abcgbm
