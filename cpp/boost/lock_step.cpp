#include "boost/lock_step.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "boost/exchanged.hpp"
#include "boost/schedule.hpp"
#include "boost/shared_growth.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 28;  // of the histograms of all trees
constexpr std::size_t kMostBytesOfTree = std::size_t{1} << 24;
constexpr std::size_t kLeastBytesOfTree = std::size_t{1} << 22;

}  // namespace

std::size_t most_in_lock_step(std::size_t histogram_bytes, std::size_t n_trees) {
  const std::size_t bytes = std::clamp(kBytes / n_trees, kLeastBytesOfTree, kMostBytesOfTree);
  return std::max(kLeastHistograms, bytes / histogram_bytes);
}

template <class Job>
LockStep<Job>::LockStep(const Measure& measure, const Binned& binned, const Reducer& ranks,
                        TreesTogether together, const Storage& storage)
    : measure_(measure),
      binned_(&binned),
      ranks_(&ranks),
      threads_(std::move(together.threads)),
      n_threads_(together.n_threads),
      row_sums_(static_cast<std::size_t>(together.n_threads)) {
  const std::size_t bytes = measure.histogram_bytes(binned.layout.total_bins);
  most_ = most_in_lock_step(bytes, together.n);
  is_scattered_ = ranks.n_ranks() > 1 && together.n * bytes >= ranks.scatters_from();
  own_ = is_scattered_ ? deal_columns(binned.layout, ranks, bin_end_) : threads_.blocks;
  trees_.reserve(together.n);
  for (std::size_t i = 0; i < together.n; ++i) {
    trees_.push_back({.state = TreeState<Job>(measure, binned, most_, threads_.n, storage)});
  }
}

template <class Job>
void LockStep<Job>::grow(std::span<const Job> jobs) {
  start(jobs);
  std::vector<std::vector<Wanted>> of_tree(jobs.size());
  for (;;) {
    for_trees(jobs.size(), [&](std::size_t i) { go_on(jobs[i], trees_[i]); });
    if (exchange_cuts(jobs.size())) continue;
    for_trees(jobs.size(), [&](std::size_t i) { of_tree[i] = ask(i); });
    std::vector<Wanted> wanted;
    for (const auto& some : of_tree) wanted.insert(wanted.end(), some.begin(), some.end());
    if (wanted.empty()) break;
    count(jobs, wanted);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<RowSets::Range> in_order;
    for (const std::size_t set : trees_[i].set_of) {
      in_order.push_back(trees_[i].state.rows.nodes[set]);
    }
    trees_[i].state.rows.nodes = std::move(in_order);
  }
}

/// Trees side by side or, where there is but one, all threads for it.
template <class Job>
template <class Each>
void LockStep<Job>::for_trees(std::size_t n, const Each& each) {
  if (n == 1) return each(0);
  parallel_for(n, n_threads_, [&](std::size_t i, std::size_t) { each(i); });
}

template <class Job>
void LockStep<Job>::start(std::span<const Job> jobs) {
  for_trees(jobs.size(), [&](std::size_t i) {
    GrowingTree& tree = trees_[i];
    reset(tree.state.rows, binned_->n_rows);
    tree.state.grower.start(jobs[i].params(), jobs[i].root_node());
    tree.set_of = {0};
    tree.children.clear();
    tree.waiting = kRoot;
    tree.is_grown = false;
  });
  set_sizes_of_roots(jobs);
  for_trees(jobs.size(), [&](std::size_t i) {
    Children& root = trees_[i].children[kRoot];
    if constexpr (Job::kKnowsRoot) {
      root.counted[0] = measure_.make_histogram(binned_->layout.total_bins);
      for (const Block& block : threads_.blocks) jobs[i].fill_root(block, root.counted[0]);
    }
  });
}

template <class Job>
void LockStep<Job>::set_sizes_of_roots(std::span<const Job> jobs) {
  if (!trees_.front().state.grower.needs_residual_size()) return;
  std::vector<std::int64_t> sums;
  std::vector<Size> sizes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    sizes.push_back(jobs[i].residual_size(trees_[i].state.rows.in_node(0)));
    write_size(sizes.back(), sums);
  }
  ranks_->sum(sums);
  Numbers from = sums.begin();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    read_size(from, sizes[i]);
    trees_[i].state.grower.set_residual_size(0, sizes[i]);
  }
}

// ------------------------------------------------------------------------------------- splitting

template <class Job>
void LockStep<Job>::go_on(const Job& job, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  while (!tree.is_grown) {
    if (tree.waiting != kNone) {
      if (!knows_children(tree)) return;
      take_children(job, tree);
      if (tree.waiting != kNone) return;  // for what other ranks have found
    }
    const auto leaf = grower.split_next();
    tree.is_grown = !leaf.has_value();
    if (!leaf) break;
    const auto known = tree.children.find(*leaf);
    const std::size_t left = known != tree.children.end()
                                 ? known->second.left
                                 : split(*leaf, grower.nodes()[*leaf], tree).left;
    tree.set_of.push_back(left);
    tree.set_of.push_back(left + 1);
    tree.waiting = *leaf;
  }
}

template <class Job>
typename LockStep<Job>::Children& LockStep<Job>::split(std::size_t leaf, const TreeNode& how,
                                                       GrowingTree& tree) {
  RowSets& rows = tree.state.rows;
  Children& children = tree.children[leaf];
  children.left = rows.nodes.size();
  split_rows(rows, tree.set_of[leaf], *binned_, how);
  return children;
}

template <class Job>
std::size_t LockStep<Job>::side_of(const GrowingTree& tree, std::size_t node) {
  return tree.waiting == kRoot ? 0 : (node + 1) % 2;  // left children have odd numbers
}

template <class Job>
bool LockStep<Job>::knows_children(const GrowingTree& tree) const {
  const auto& grower = tree.state.grower;
  const Children& children = tree.children.at(tree.waiting);
  if (grower.to_count().empty()) return true;
  if (tree.waiting != kRoot && grower.needs_residual_size() && !children.has_size) return false;
  return std::ranges::all_of(grower.to_count(), [&](std::size_t node) {
    return !children.counted[side_of(tree, node)].empty();
  });
}

template <class Job>
void LockStep<Job>::take_sizes(const Children& children, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  if (tree.waiting == kRoot || !grower.needs_residual_size()) return;
  const auto left = static_cast<std::size_t>(grower.nodes()[tree.waiting].left);
  grower.set_residual_size(left, children.left_size);
  grower.set_residual_size(left + 1,
                           difference(grower.residual_size(tree.waiting), children.left_size));
}

/// The histograms of the nodes that are to be counted are known: cuts are looked for in our
/// columns.
template <class Job>
void LockStep<Job>::take_children(const Job& job, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  Children& children = tree.children.at(tree.waiting);
  if (!grower.to_count().empty()) {
    take_sizes(children, tree);
    parallel_for(threads_.n, static_cast<int>(threads_.n), [&](std::size_t i, std::size_t slot) {
      const std::size_t last = (i + 1) * own_.size() / threads_.n;
      for (std::size_t b = i * own_.size() / threads_.n; b < last; ++b) {
        check_interrupt();
        for (const std::size_t node : grower.to_count()) {
          const std::size_t made = grower.made_by(node);
          Histogram& counted = children.counted[side_of(tree, node)];
          if (grower.is_taken_out(node)) {
            measure_.subtract(own_[b], grower.histogram(made), counted);
          } else {
            measure_.copy(own_[b], counted, grower.histogram(made));
          }
          job.finish(own_[b], grower.sums(made), grower.histogram(made));
        }
        grower.counted(own_[b], slot);
      }
    });
    tree.found = grower.best_cuts();
    if (is_scattered_) return;
  }
  take_cuts(std::exchange(tree.found, {}), tree);
}

template <class Job>
void LockStep<Job>::take_cuts(std::vector<Cut> cuts, GrowingTree& tree) {
  tree.state.grower.take_cuts(std::move(cuts));
  tree.children.erase(tree.waiting);
  tree.waiting = kNone;
}

/// Of all trees that wait for cuts at once; false if none does.
template <class Job>
bool LockStep<Job>::exchange_cuts(std::size_t n_trees) {
  Reducer::Values found;
  for (std::size_t i = 0; i < n_trees; ++i) {
    for (const Cut& cut : trees_[i].found) write_cut(cut, found);
  }
  if (found.empty()) return false;
  const std::vector<Reducer::Values> of_ranks = ranks_->gather(found);
  std::vector<Numbers> from;
  from.reserve(of_ranks.size());
  for (const Reducer::Values& of_rank : of_ranks) from.push_back(of_rank.begin());
  for (std::size_t i = 0; i < n_trees; ++i) {
    std::vector<Cut> best(trees_[i].found.size());
    if (best.empty()) continue;
    for (Numbers& of_rank : from) {
      for (Cut& cut : best) {
        Cut other = read_cut<Cut>(of_rank);
        if (cut.is_beaten_by(other.score, other.feature, other.missing_left)) {
          cut = std::move(other);
        }
      }
    }
    trees_[i].found.clear();
    take_cuts(std::move(best), trees_[i]);
  }
  return true;
}

// ---------------------------------------------------------------------------------------- asking

template <class Job>
std::vector<typename LockStep<Job>::Wanted> LockStep<Job>::ask(std::size_t number) {
  std::vector<Wanted> wanted;
  GrowingTree& tree = trees_[number];
  if (tree.is_grown) return wanted;
  const Children& children = tree.children.at(tree.waiting);
  for (const std::size_t node : tree.state.grower.to_count()) {
    const std::size_t side = side_of(tree, node);
    if (children.counted[side].empty()) {
      wanted.push_back({.tree = number, .leaf = tree.waiting, .side = side});
    }
  }
  ask_ahead(number, wanted);
  return wanted;
}

/// Of the open leaves the better half of those that can be split yet will most likely be.
template <class Job>
void LockStep<Job>::ask_ahead(std::size_t number, std::vector<Wanted>& wanted) {
  GrowingTree& tree = trees_[number];
  const auto open = tree.state.grower.open_leaves();
  std::erase_if(tree.children, [&](const auto& item) {
    return item.first != tree.waiting && std::ranges::find(open, item.first) == open.end();
  });
  const std::size_t half = (tree.state.grower.splits_left() + 1) / 2;
  const std::size_t n = std::min(half, open.size());
  for (const std::size_t leaf : open.last(n)) {
    if (tree.children.size() >= most_) break;
    if (tree.children.contains(leaf)) continue;
    const auto outlook = tree.state.grower.outlook(leaf);
    if (!outlook.is_worth_counting) continue;
    split(leaf, outlook.split, tree);
    wanted.push_back({.tree = number, .leaf = leaf, .side = outlook.counts_left ? 0U : 1U});
  }
}

// -------------------------------------------------------------------------------------- counting

template <class Job>
std::span<const std::uint32_t> LockStep<Job>::rows_of(const Wanted& wanted) const {
  const GrowingTree& tree = trees_[wanted.tree];
  return tree.state.rows.in_node(tree.children.at(wanted.leaf).left + wanted.side);
}

template <class Job>
typename LockStep<Job>::Histogram& LockStep<Job>::counted(const Wanted& wanted) {
  auto& histogram = trees_[wanted.tree].children.at(wanted.leaf).counted[wanted.side];
  histogram = measure_.make_histogram(binned_->layout.total_bins);
  return histogram;
}

template <class Job>
void LockStep<Job>::count(std::span<const Job> jobs, std::span<const Wanted> wanted) {
  Histogram sums = measure_.make_histogram(binned_->layout.total_bins * wanted.size());
  count_here(jobs, wanted, sums);
  if (is_scattered_) {
    sum_own(wanted, sums);
  } else {
    sum_all(wanted, sums);
  }
  count_sizes(jobs, wanted);
}

template <class Job>
void LockStep<Job>::sum_all(std::span<const Wanted> wanted, Histogram& sums) {
  const std::span<Number> numbers = measure_.numbers(sums);
  ranks_->sum(numbers);
  const std::size_t size = numbers.size() / wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::ranges::copy(numbers.subspan(i * size, size),
                      measure_.numbers(counted(wanted[i])).begin());
  }
}

/// What is summed for a rank lies together: its columns of all that is wanted.
template <class Job>
void LockStep<Job>::sum_own(std::span<const Wanted> wanted, Histogram& sums) {
  const std::span<Number> numbers = measure_.numbers(sums);
  const std::size_t of_histogram = numbers.size() / wanted.size();
  const std::size_t of_bin = of_histogram / binned_->layout.total_bins;
  std::vector<Number> packed;
  packed.reserve(numbers.size());
  std::vector<std::size_t> ends;
  std::size_t first_bin = 0;
  for (const std::size_t end : bin_end_) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto some =
          numbers.subspan(i * of_histogram + first_bin * of_bin, (end - first_bin) * of_bin);
      packed.insert(packed.end(), some.begin(), some.end());
    }
    ends.push_back(packed.size());
    first_bin = end;
  }
  ranks_->scatter(std::span(packed), ends);
  const std::size_t rank = ranks_->rank();
  const std::size_t first = rank == 0 ? 0 : bin_end_[rank - 1];
  const std::size_t n = (bin_end_[rank] - first) * of_bin;
  std::span<const Number> own = std::span(packed).subspan(ends[rank] - n * wanted.size());
  for (const Wanted& of : wanted) {
    std::ranges::copy(own.first(n), measure_.numbers(counted(of)).begin() +
                                        static_cast<std::ptrdiff_t>(first * of_bin));
    own = own.subspan(n);
  }
}

/// Several threads share the columns of a child where there are few children.
template <class Job>
void LockStep<Job>::count_here(std::span<const Job> jobs, std::span<const Wanted> wanted,
                               Histogram& sums) {
  const std::size_t size = sums.size() / wanted.size();
  const std::size_t n_blocks = threads_.blocks.size();
  const auto n_threads = static_cast<std::size_t>(n_threads_);
  const std::size_t n_ranges = std::min(n_blocks, (n_threads + wanted.size() - 1) / wanted.size());
  parallel_for(wanted.size() * n_ranges, n_threads_, [&](std::size_t task, std::size_t slot) {
    const std::size_t i = task / n_ranges;
    const std::size_t first = task % n_ranges * n_blocks / n_ranges;
    const std::size_t last = (task % n_ranges + 1) * n_blocks / n_ranges;
    count_node(jobs[wanted[i].tree],
               NodeToCount<Bins>{.rows = rows_of(wanted[i]),
                                 .histogram = Bins(sums).subspan(i * size, size),
                                 .is_taken_out = false},
               std::span(threads_.blocks).subspan(first, last - first), row_sums_[slot],
               [](const Block&) {});
  });
}

template <class Job>
void LockStep<Job>::count_sizes(std::span<const Job> jobs, std::span<const Wanted> wanted) {
  if (!trees_.front().state.grower.needs_residual_size()) return;
  std::vector<std::int64_t> sums;
  std::vector<Size> sizes;
  for (const Wanted& of : wanted) {
    sizes.push_back(
        jobs[of.tree].residual_size(rows_of({.tree = of.tree, .leaf = of.leaf, .side = 0})));
    write_size(sizes.back(), sums);
  }
  ranks_->sum(sums);
  Numbers from = sums.begin();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    read_size(from, sizes[i]);
    Children& children = trees_[wanted[i].tree].children.at(wanted[i].leaf);
    children.left_size = sizes[i];
    children.has_size = true;
  }
}

template class LockStep<TreeJob<2>>;
template class LockStep<TreeJob<3>>;
template class LockStep<SharedJob>;

}  // namespace abcgbm
