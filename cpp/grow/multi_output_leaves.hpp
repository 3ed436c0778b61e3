// Completion of multi-output trees: leaf values, and the gains of splits by class.
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

/// Completes a tree from its nodes and their rows.
GrownTree finish_multi_output_tree(const IterationContext& context, std::vector<TreeNode> nodes,
                                   const RowSets& rows, int n_threads);

/// The leaf values times 2^-n_halvings, by class and leaf.
std::vector<std::vector<double>> multi_output_values(const Tree& tree, int n_halvings);

/// The resulting moves of the scores, one for each class.
std::vector<TreeMove> multi_output_moves(const std::vector<std::vector<double>>& values,
                                         std::span<const std::uint16_t> leaf_of_row);

}  // namespace abcgbm
