#include "grow/tree_growth.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "loss/reductions.hpp"

namespace abcgbm {
namespace {

/// The sums of the root are those of the bins of any feature.
template <int W>
Sums<W> root_sums(const TreeJob<W>& job) {
  Sums<W> sums{};
  const Layout& layout = job.binned.layout;
  const Feature& feature = layout.features[layout.by_bin.front()];
  for (std::size_t bin = feature.offset; bin < feature.offset + feature.n_bins; ++bin) {
    add(sums, job.root.template bin<W>(bin));
  }
  return sums;
}

}  // namespace

template <int W>
RootNode<SingleOutput<W>> TreeJob<W>::root_node() const {
  SplitRules rules = context.rules;
  // Without a base class the expected magnitude of a residual is twice the hessian.
  if (!kHasHessian<W> && !pair().base.exists()) rules.category_penalty *= 0.5;
  return {.sums = root_sums(*this),
          .rules = rules,
          .gain_unit = gain_unit(context),
          .key = tree_key(context, pair())};
}

template <int W>
std::int64_t TreeJob<W>::abs_residuals(Rows rows) const {
  std::int64_t total = 0;
  RowSums sums;
  for (std::size_t first = 0; first < rows.size(); first += kChunk) {
    sum_rows(rows.subspan(first, std::min(kChunk, rows.size() - first)), false, sums);
    for (const Sums<W>& of_row : sums) total += std::abs(of_row[kResidual]);
  }
  return total;
}

template <int W>
void TreeJob<W>::sum_rows(Rows rows, bool negated, RowSums& sums) const {
  sums.resize(rows.size());
  row_sums<W>(context.rows, pair(), rows, sums);
  if (!negated) return;
  for (Sums<W>& of_row : sums) {
    for (std::int64_t& sum : of_row) sum = -sum;
  }
}

template <int W>
void TreeJob<W>::clear(const Block& block, Bins histogram) const {
  std::ranges::fill(histogram.subspan(block.first_bin, block.last_bin - block.first_bin),
                    Sums<W>{});
}

template <int W>
void TreeJob<W>::add(const Block& block, Rows rows, const RowSums& sums, Bins histogram) const {
  add_to_block<W>(binned, block, {.rows = rows, .sums = sums}, histogram);
}

template <int W>
void TreeJob<W>::finish(const Block& block, const Sums<W>& node, Bins histogram) const {
  finish_block<W>(binned.layout, block, node, histogram);
}

template <int W>
void TreeJob<W>::fill_root(const Block& block, Bins histogram) const {
  for (std::size_t bin = block.first_bin; bin < block.last_bin; ++bin) {
    histogram[bin] = root.template bin<W>(bin);
  }
}

template <int W>
void search_root(const TreeJob<W>& job, const TreeThreads& threads, TreeState<TreeJob<W>>& state) {
  auto& grower = state.grower;
  if (grower.to_build().empty()) return;
  const std::span<Sums<W>> histogram = grower.histogram(0);
  for_blocks(job, threads, state, [&](std::span<const Block> blocks, std::size_t slot) {
    for (const Block& block : blocks) {
      job.fill_root(block, histogram);
      grower.search_block(block, slot);
    }
  });
  grower.finish_search();
}

template <int W>
GrownTree take_structure(const TreeJob<W>& job, TreeState<TreeJob<W>>& state) {
  const TreeRows& rows = job.context.rows;
  GrownTree grown{
      .tree = {.tree_class = job.pair().tree_class,
               .base = job.pair().base,
               .nodes = std::move(state.grower.nodes())},
      .node_of_row = LargeVector<std::uint16_t>(job.binned.n_rows, storage_of(rows.scores.raw))};
  write_leaves(state.rows, grown.tree.nodes, grown.node_of_row);
  return grown;
}

template <int W>
std::vector<std::int64_t> node_hessians(const TreeJob<W>& job, const GrownTree& grown) {
  if constexpr (kHasHessian<W>) return {};
  return hessian_sums(job.context.rows, job.pair(), grown.node_of_row, grown.tree.nodes.size());
}

template <int W>
void set_leaf_values(const TreeJob<W>& job, const TreeState<TreeJob<W>>& state,
                     std::span<const std::int64_t> hessians, GrownTree& grown) {
  std::vector<TreeNode>& nodes = grown.tree.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Sums<W>& sums = state.grower.sums(i);
    nodes[i].weight = static_cast<double>(sums[kWeight]) * job.context.rows.labels.unit;
    if (!nodes[i].is_leaf()) continue;
    nodes[i].gain = 0.0;  // of a split that was found but not made
    const std::int64_t hessian = kHasHessian<W> ? sums[kSplitWeight<W>] : hessians[i];
    nodes[i].value = leaf_value(job.context, sums[kResidual], hessian);
  }
}

template <int W>
GrownTree grow_tree(const TreeJob<W>& job, const TreeThreads& threads,
                    TreeState<TreeJob<W>>& state) {
  start_tree(job, state);
  search_root(job, threads, state);
  while (split_best(job, state)) build_histograms_and_search(job, threads, state);
  GrownTree grown = take_structure(job, state);
  set_leaf_values(job, state, node_hessians(job, grown), grown);
  return grown;
}

template struct TreeJob<2>;
template struct TreeJob<3>;
template GrownTree take_structure<2>(const TreeJob<2>&, TreeState<TreeJob<2>>&);
template GrownTree take_structure<3>(const TreeJob<3>&, TreeState<TreeJob<3>>&);
template std::vector<std::int64_t> node_hessians<2>(const TreeJob<2>&, const GrownTree&);
template std::vector<std::int64_t> node_hessians<3>(const TreeJob<3>&, const GrownTree&);
template void set_leaf_values<2>(const TreeJob<2>&, const TreeState<TreeJob<2>>&,
                                 std::span<const std::int64_t>, GrownTree&);
template void set_leaf_values<3>(const TreeJob<3>&, const TreeState<TreeJob<3>>&,
                                 std::span<const std::int64_t>, GrownTree&);
template GrownTree grow_tree<2>(const TreeJob<2>&, const TreeThreads&, TreeState<TreeJob<2>>&);
template GrownTree grow_tree<3>(const TreeJob<3>&, const TreeThreads&, TreeState<TreeJob<3>>&);

}  // namespace abcgbm
