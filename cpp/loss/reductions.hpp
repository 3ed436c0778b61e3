// What is summed or maximised over rows for the loss and its derivatives, but the histograms;
// docs/determinism.md lists it. Sums are integers, so neither the order of the rows nor who holds
// them matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base_class.hpp"
#include "loss/derivatives.hpp"
#include "loss/softmax.hpp"

namespace abcgbm {

/// The largest of all rows, which decides the grids, given that of some rows at a time.
Largest largest_of(const Labels& labels, std::span<const Largest> parts);

/// The losses of the rows of each class times their weights, in multiples of 1 / scale.
std::vector<std::int64_t> class_loss_sums(const Labels& labels, std::span<const double> row_loss,
                                          double scale, int n_threads);

/// The losses of all rows.
using RowLosses = std::span<const double>;

/// The sum of the rows' losses times their weights, on the grid that the largest of them decides;
/// for each of several trials.
std::vector<double> total_losses(const Labels& labels, RowWeights weight,
                                 std::span<const RowLosses> trials, int n_threads);
double total_loss(const Labels& labels, RowWeights weight, RowLosses row_loss);

/// The hessians of the rows in each node times their weights: of this rank's rows.
std::vector<std::int64_t> hessian_sums(const TreeRows& rows, const ClassPair& pair,
                                       std::span<const std::uint16_t> node_of_row,
                                       std::size_t n_nodes);

/// The residuals of the rows' own classes times their weights, if residuals lie by row: the grid of
/// a shared tree's search follows.
std::int64_t own_residual_sum(const TreeRows& rows, int n_threads);

/// The rows of a leaf.
using LeafRows = std::span<const std::uint32_t>;

/// The residuals and the hessians of the rows in each leaf times their weights, class by class, if
/// residuals lie by row: [n_leaves][2][n_classes].
std::vector<std::int64_t> leaf_sums(const TreeRows& rows, std::span<const LeafRows> leaves,
                                    int n_threads);

}  // namespace abcgbm
