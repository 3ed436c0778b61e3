// The leaves of a shared tree: their values, and what its cuts have gained for each class.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grow/iteration_context.hpp"
#include "grow/tree_growth.hpp"
#include "loss/scores.hpp"
#include "tree/partition.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// Completes a tree, given its nodes and the rows of each.
GrownTree finish_multi_output_tree(const IterationContext& context, std::vector<TreeNode> nodes,
                                   const RowSets& rows, int n_threads);

/// The values of a shared tree's leaves times 2^-n_halvings, by class and leaf.
std::vector<std::vector<double>> multi_output_values(const Tree& tree, int n_halvings);

/// How far these move each row, a move for each class.
std::vector<TreeMove> multi_output_moves(const std::vector<std::vector<double>>& values,
                                         std::span<const std::uint16_t> leaf_of_row);

}  // namespace abcgbm
