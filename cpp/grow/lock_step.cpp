#include "grow/lock_step.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "grow/multi_output_growth.hpp"
#include "grow/schedule.hpp"
#include "grow/split_messages.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 28;  // of the histograms of all trees
constexpr std::size_t kMaxBytesPerTree = std::size_t{1} << 24;
constexpr std::size_t kMinBytesPerTree = std::size_t{1} << 22;

}  // namespace

std::size_t max_in_lock_step(std::size_t histogram_bytes, std::size_t n_trees) {
  const std::size_t bytes = std::clamp(kBytes / n_trees, kMinBytesPerTree, kMaxBytesPerTree);
  return std::max(kMinHistograms, bytes / histogram_bytes);
}

template <class Job>
LockStep<Job>::LockStep(const Traits& traits, const Binned& binned,
                        const Communicator& communicator, TreesTogether together,
                        const Storage& storage)
    : traits_(traits),
      binned_(&binned),
      communicator_(&communicator),
      threads_(std::move(together.threads)),
      n_threads_(together.n_threads),
      row_sums_(static_cast<std::size_t>(together.n_threads)) {
  const std::size_t bytes = traits.histogram_bytes(binned.layout.total_bins);
  max_histograms_ = max_in_lock_step(bytes, together.n);
  is_scattered_ =
      communicator.n_ranks() > 1 && together.n * bytes >= communicator.min_scatter_bytes();
  own_ = is_scattered_ ? assign_columns(binned.layout, communicator, bin_end_) : threads_.blocks;
  trees_.reserve(together.n);
  for (std::size_t i = 0; i < together.n; ++i) {
    trees_.push_back(
        {.state = TreeState<Job>(traits, binned, max_histograms_, threads_.n, storage)});
  }
}

template <class Job>
void LockStep<Job>::grow(std::span<const Job> jobs) {
  start(jobs);
  std::vector<std::vector<Request>> of_tree(jobs.size());
  for (;;) {
    for_trees(jobs.size(), [&](std::size_t i) { advance(jobs[i], trees_[i]); });
    if (exchange_splits(jobs.size())) continue;
    for_trees(jobs.size(), [&](std::size_t i) { of_tree[i] = request_children(i); });
    std::vector<Request> requests;
    for (const auto& some : of_tree) requests.insert(requests.end(), some.begin(), some.end());
    if (requests.empty()) break;
    build_requested(jobs, requests);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<RowSets::Range> in_order;
    for (const std::size_t set : trees_[i].row_set_of_node) {
      in_order.push_back(trees_[i].state.rows.nodes[set]);
    }
    trees_[i].state.rows.nodes = std::move(in_order);
  }
}

/// Runs trees in parallel or, for a single one, leaves all threads to it.
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
    reset_tree(jobs[i], tree.state);
    tree.row_set_of_node = {0};
    tree.children.clear();
    tree.children.emplace(kRoot, Children{});  // which the first `advance` reads
    tree.split_leaf = kRoot;
    tree.is_grown = false;
    if constexpr (Job::kKnowsRoot) {
      Histogram& histogram = tree.children.at(kRoot).histograms[0];
      histogram = traits_.make_histogram(binned_->layout.total_bins);
      for (const Block& block : threads_.blocks) jobs[i].fill_root(block, histogram);
    }
  });
  set_root_abs_residuals(jobs);
}

template <class Job>
void LockStep<Job>::set_root_abs_residuals(std::span<const Job> jobs) {
  if (!trees_.front().state.grower.needs_abs_residuals()) return;
  std::vector<std::int64_t> sums;
  std::vector<AbsResiduals> abs_residuals;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    abs_residuals.push_back(jobs[i].abs_residuals(trees_[i].state.rows.in_node(0)));
    write_abs_residuals(abs_residuals.back(), sums);
  }
  communicator_->allreduce_sum(sums);
  Numbers from = sums.begin();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    read_abs_residuals(from, abs_residuals[i]);
    trees_[i].state.grower.set_abs_residuals(0, abs_residuals[i]);
  }
}

// ------------------------------------------------------------------------------------- splitting

template <class Job>
void LockStep<Job>::advance(const Job& job, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  while (!tree.is_grown) {
    if (tree.split_leaf != kNone) {
      if (!knows_children(tree)) return;
      take_children(job, tree);
      if (tree.split_leaf != kNone) return;  // waits for the splits of other ranks
    }
    const auto leaf = grower.split_next();
    tree.is_grown = !leaf.has_value();
    if (!leaf) break;
    const auto known = tree.children.find(*leaf);
    const std::size_t left = known != tree.children.end()
                                 ? known->second.left
                                 : split(*leaf, grower.nodes()[*leaf], tree).left;
    tree.row_set_of_node.push_back(left);
    tree.row_set_of_node.push_back(left + 1);
    tree.split_leaf = *leaf;
  }
}

template <class Job>
typename LockStep<Job>::Children& LockStep<Job>::split(std::size_t leaf, const TreeNode& how,
                                                       GrowingTree& tree) {
  RowSets& rows = tree.state.rows;
  Children& children = tree.children[leaf];
  children.left = rows.nodes.size();
  split_rows(rows, tree.row_set_of_node[leaf], *binned_, how);
  return children;
}

template <class Job>
std::size_t LockStep<Job>::side_of(const GrowingTree& tree, std::size_t node) {
  return tree.split_leaf == kRoot ? 0 : (node + 1) % 2;  // left children have odd numbers
}

template <class Job>
bool LockStep<Job>::knows_children(const GrowingTree& tree) const {
  const auto& grower = tree.state.grower;
  const Children& children = tree.children.at(tree.split_leaf);
  if (grower.to_build().empty()) return true;
  if (tree.split_leaf != kRoot && grower.needs_abs_residuals() && !children.has_abs_residuals)
    return false;
  return std::ranges::all_of(grower.to_build(), [&](std::size_t node) {
    return !children.histograms[side_of(tree, node)].empty();
  });
}

template <class Job>
void LockStep<Job>::take_abs_residuals(const Children& children, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  if (tree.split_leaf == kRoot || !grower.needs_abs_residuals()) return;
  const auto left = static_cast<std::size_t>(grower.nodes()[tree.split_leaf].left);
  grower.set_abs_residuals(left, children.left_abs_residuals);
  grower.set_abs_residuals(
      left + 1, difference(grower.abs_residuals(tree.split_leaf), children.left_abs_residuals));
}

/// Searches splits in this rank's columns, once the histograms of the split leaf's children
/// are known.
template <class Job>
void LockStep<Job>::take_children(const Job& job, GrowingTree& tree) {
  auto& grower = tree.state.grower;
  Children& children = tree.children.at(tree.split_leaf);
  if (!grower.to_build().empty()) {
    take_abs_residuals(children, tree);
    parallel_for(threads_.n, static_cast<int>(threads_.n), [&](std::size_t i, std::size_t slot) {
      const std::size_t last = (i + 1) * own_.size() / threads_.n;
      for (std::size_t b = i * own_.size() / threads_.n; b < last; ++b) {
        check_interrupt();
        for (const std::size_t node : grower.to_build()) {
          const std::size_t target = grower.histogram_target(node);
          Histogram& built = children.histograms[side_of(tree, node)];
          if (grower.is_subtracted(node)) {
            traits_.subtract(own_[b], grower.histogram(target), built);
          } else {
            traits_.copy(own_[b], built, grower.histogram(target));
          }
          job.finish(own_[b], grower.sums(target), grower.histogram(target));
        }
        grower.search_block(own_[b], slot);
      }
    });
    tree.found = grower.best_splits();
    if (is_scattered_) return;
  }
  set_splits(std::exchange(tree.found, {}), tree);
}

template <class Job>
void LockStep<Job>::set_splits(std::vector<Split> splits, GrowingTree& tree) {
  tree.state.grower.set_splits(std::move(splits));
  tree.children.erase(tree.split_leaf);
  tree.split_leaf = kNone;
}

/// Exchanges the splits of all trees that wait for them at once; false if none does.
template <class Job>
bool LockStep<Job>::exchange_splits(std::size_t n_trees) {
  Communicator::Values found;
  for (std::size_t i = 0; i < n_trees; ++i) {
    for (const Split& split : trees_[i].found) write_split(split, found);
  }
  if (found.empty()) return false;
  const std::vector<Communicator::Values> of_ranks = communicator_->allgather(found);
  std::vector<Numbers> from;
  from.reserve(of_ranks.size());
  for (const Communicator::Values& of_rank : of_ranks) from.push_back(of_rank.begin());
  for (std::size_t i = 0; i < n_trees; ++i) {
    std::vector<Split> best(trees_[i].found.size());
    if (best.empty()) continue;
    for (Numbers& of_rank : from) {
      for (Split& split : best) {
        Split other = read_split<Split>(of_rank);
        if (split.is_beaten_by(other.score, other.feature, other.missing_left)) {
          split = std::move(other);
        }
      }
    }
    trees_[i].found.clear();
    set_splits(std::move(best), trees_[i]);
  }
  return true;
}

// -------------------------------------------------------------------------------------- requests

template <class Job>
std::vector<typename LockStep<Job>::Request> LockStep<Job>::request_children(std::size_t number) {
  std::vector<Request> requests;
  GrowingTree& tree = trees_[number];
  if (tree.is_grown) return requests;
  const Children& children = tree.children.at(tree.split_leaf);
  for (const std::size_t node : tree.state.grower.to_build()) {
    const std::size_t side = side_of(tree, node);
    if (children.histograms[side].empty()) {
      requests.push_back({.tree = number, .leaf = tree.split_leaf, .side = side});
    }
  }
  request_ahead(number, requests);
  return requests;
}

/// Of the open leaves, the better half of those that can still be split will most likely be split.
template <class Job>
void LockStep<Job>::request_ahead(std::size_t number, std::vector<Request>& requests) {
  GrowingTree& tree = trees_[number];
  const auto open = tree.state.grower.open_leaves();
  std::erase_if(tree.children, [&](const auto& item) {
    return item.first != tree.split_leaf && std::ranges::find(open, item.first) == open.end();
  });
  const std::size_t half = (tree.state.grower.splits_left() + 1) / 2;
  const std::size_t n = std::min(half, open.size());
  for (const std::size_t leaf : open.last(n)) {
    if (tree.children.size() >= max_histograms_) break;
    if (tree.children.contains(leaf)) continue;
    const auto preview = tree.state.grower.preview(leaf);
    if (!preview.is_worth_building) continue;
    split(leaf, preview.split, tree);
    requests.push_back({.tree = number, .leaf = leaf, .side = preview.builds_left ? 0U : 1U});
  }
}

// -------------------------------------------------------------------------------------- building

template <class Job>
std::span<const std::uint32_t> LockStep<Job>::rows_of(const Request& request) const {
  const GrowingTree& tree = trees_[request.tree];
  return tree.state.rows.in_node(tree.children.at(request.leaf).left + request.side);
}

template <class Job>
typename LockStep<Job>::Histogram& LockStep<Job>::new_histogram(const Request& request) {
  auto& histogram = trees_[request.tree].children.at(request.leaf).histograms[request.side];
  histogram = traits_.make_histogram(binned_->layout.total_bins);
  return histogram;
}

template <class Job>
void LockStep<Job>::build_requested(std::span<const Job> jobs, std::span<const Request> requests) {
  Histogram sums = traits_.make_histogram(binned_->layout.total_bins * requests.size());
  build_locally(jobs, requests, sums);
  if (is_scattered_) {
    reduce_scatter_histograms(requests, sums);
  } else {
    allreduce_histograms(requests, sums);
  }
  sum_abs_residuals(jobs, requests);
}

template <class Job>
void LockStep<Job>::allreduce_histograms(std::span<const Request> requests, Histogram& sums) {
  const std::span<Number> numbers = traits_.numbers(sums);
  communicator_->allreduce_sum(numbers);
  const std::size_t size = numbers.size() / requests.size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::ranges::copy(numbers.subspan(i * size, size),
                      traits_.numbers(new_histogram(requests[i])).begin());
  }
}

/// The segment of a rank holds its columns of all requested histograms.
template <class Job>
void LockStep<Job>::reduce_scatter_histograms(std::span<const Request> requests, Histogram& sums) {
  const std::span<Number> numbers = traits_.numbers(sums);
  const std::size_t of_histogram = numbers.size() / requests.size();
  const std::size_t of_bin = of_histogram / binned_->layout.total_bins;
  std::vector<Number> packed;
  packed.reserve(numbers.size());
  std::vector<std::size_t> ends;
  std::size_t first_bin = 0;
  for (const std::size_t end : bin_end_) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto some =
          numbers.subspan(i * of_histogram + first_bin * of_bin, (end - first_bin) * of_bin);
      packed.insert(packed.end(), some.begin(), some.end());
    }
    ends.push_back(packed.size());
    first_bin = end;
  }
  communicator_->reduce_scatter_sum(std::span(packed), ends);
  const std::size_t rank = communicator_->rank();
  const std::size_t first = rank == 0 ? 0 : bin_end_[rank - 1];
  const std::size_t n = (bin_end_[rank] - first) * of_bin;
  std::span<const Number> own = std::span(packed).subspan(ends[rank] - n * requests.size());
  for (const Request& of : requests) {
    std::ranges::copy(own.first(n), traits_.numbers(new_histogram(of)).begin() +
                                        static_cast<std::ptrdiff_t>(first * of_bin));
    own = own.subspan(n);
  }
}

/// Several threads divide the columns of a child if there are few children.
template <class Job>
void LockStep<Job>::build_locally(std::span<const Job> jobs, std::span<const Request> requests,
                                  Histogram& sums) {
  const std::size_t size = sums.size() / requests.size();
  const std::size_t n_blocks = threads_.blocks.size();
  const auto n_threads = static_cast<std::size_t>(n_threads_);
  const std::size_t n_ranges =
      std::min(n_blocks, (n_threads + requests.size() - 1) / requests.size());
  parallel_for(requests.size() * n_ranges, n_threads_, [&](std::size_t task, std::size_t slot) {
    const std::size_t i = task / n_ranges;
    const std::size_t first = task % n_ranges * n_blocks / n_ranges;
    const std::size_t last = (task % n_ranges + 1) * n_blocks / n_ranges;
    build_histogram(jobs[requests[i].tree],
                    NodeToBuild<Bins>{.rows = rows_of(requests[i]),
                                      .histogram = Bins(sums).subspan(i * size, size),
                                      .is_subtracted = false},
                    std::span(threads_.blocks).subspan(first, last - first), row_sums_[slot],
                    [](const Block&) {});
  });
}

template <class Job>
void LockStep<Job>::sum_abs_residuals(std::span<const Job> jobs,
                                      std::span<const Request> requests) {
  if (!trees_.front().state.grower.needs_abs_residuals()) return;
  std::vector<std::int64_t> sums;
  std::vector<AbsResiduals> abs_residuals;
  for (const Request& of : requests) {
    abs_residuals.push_back(
        jobs[of.tree].abs_residuals(rows_of({.tree = of.tree, .leaf = of.leaf, .side = 0})));
    write_abs_residuals(abs_residuals.back(), sums);
  }
  communicator_->allreduce_sum(sums);
  Numbers from = sums.begin();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    read_abs_residuals(from, abs_residuals[i]);
    Children& children = trees_[requests[i].tree].children.at(requests[i].leaf);
    children.left_abs_residuals = abs_residuals[i];
    children.has_abs_residuals = true;
  }
}

template class LockStep<TreeJob<2>>;
template class LockStep<TreeJob<3>>;
template class LockStep<MultiOutputJob>;

}  // namespace abcgbm
