#include "boost/validation.hpp"

#include <utility>

#include "base/parallel.hpp"
#include "grow/multi_output_leaves.hpp"

namespace abcgbm {

Validation::Validation(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
                       LargeVector<double> raw, int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      n_threads_(n_threads),
      raw_(std::move(raw)),
      leading_(labels_->n_rows(), storage_of(raw_)),
      loss_(move_raw(raw_, *labels_, {}, n_threads, leading_)),
      rows_(static_cast<std::size_t>(n_threads), RowSets(storage_of(raw_))),
      node_of_row_(storage_of(raw_)) {}

/// Updates the scores by a multi-output tree.
void Validation::add_multi_output(const Tree& tree) {
  node_of_row_.resize(labels_->n_rows());
  apply_tree(*binned_, tree.nodes, rows_.front(), node_of_row_);
  const std::vector<std::uint16_t> numbers = leaf_numbers(tree.nodes);
  for (std::uint16_t& node : node_of_row_) node = numbers[node];
  const std::vector<std::vector<double>> values = multi_output_values(tree, 0);
  const std::vector<TreeMove> moves = multi_output_moves(values, node_of_row_);
  loss_ = move_raw(raw_, *labels_, moves, n_threads_, leading_);
}

void Validation::add(std::span<const Tree> trees) {
  if (!trees.empty() && trees.front().is_multi_output()) return add_multi_output(trees.front());
  const std::size_t n_rows = labels_->n_rows();
  node_of_row_.resize(trees.size() * n_rows);
  std::vector<std::vector<double>> value(trees.size());
  std::vector<std::vector<double>> base_value(trees.size());
  std::vector<TreeMove> moves(trees.size());
  parallel_for(trees.size(), n_threads_, [&](std::size_t t, std::size_t slot) {
    const Tree& tree = trees[t];
    const auto node_of_row = std::span(node_of_row_).subspan(t * n_rows, n_rows);
    apply_tree(*binned_, tree.nodes, rows_[slot], node_of_row);
    for (const TreeNode& node : tree.nodes) {
      value[t].push_back(node.value);
      base_value[t].push_back(node.value * tree.base_scale);
    }
    moves[t] = {.tree_class = tree.tree_class,
                .base = tree.base,
                .node_of_row = node_of_row,
                .value = value[t],
                .base_value = base_value[t]};
  });
  loss_ = move_raw(raw_, *labels_, moves, n_threads_, leading_);
}

}  // namespace abcgbm
