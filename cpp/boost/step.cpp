#include "boost/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/draw.hpp"
#include "base/parallel.hpp"
#include "boost/schedule.hpp"
#include "boost/search.hpp"
#include "loss/hessians.hpp"

namespace abcgbm {
namespace {

constexpr double kLargestLeaf = 50.0;  // bound of a leaf value before the learning rate
constexpr std::size_t kSearchBytes = std::size_t{1} << 29;  // for the trees of some candidates
constexpr std::size_t kBlock = 512;
constexpr std::size_t kWorkPerThread = 1 << 15;  // additions that a thread is called for
constexpr std::size_t kAhead = 16;               // rows of a small node are scattered in memory
constexpr std::size_t kRowsTogether = 8192;      // sums of so many rows stay in L2

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes, [](const TreeNode& node) { return node.value != 0.0; });
  });
}

/// The first of the smallest losses; losses that differ by rounding alone are equal.
std::size_t first_smallest(const std::vector<double>& losses) {
  const double bound = *std::ranges::min_element(losses) * (1.0 + 1e-12);
  const auto first = std::ranges::find_if(losses, [&](double loss) { return loss <= bound; });
  return static_cast<std::size_t>(first - losses.begin());
}

/// tree(b, k) = -tree(k, b), exactly: residuals change sign, hessians stay.
Tree mirrored(Tree tree) {
  std::swap(tree.tree_class, tree.base);
  for (TreeNode& node : tree.nodes) node.value = -node.value;
  return tree;
}

template <int W>
void negate(std::span<Sums<W>> all) {
  for (Sums<W>& sums : all) {
    for (std::int64_t& sum : sums) sum = -sum;
  }
}

template <class Item>
void clear(const Block& block, std::span<Item> histogram) {
  std::ranges::fill(histogram.subspan(block.first_bin, block.last_bin - block.first_bin), Item{});
}

}  // namespace

Trainer::Trainer(std::shared_ptr<const Binned> binned, Labels labels, std::vector<double> raw,
                 const TrainParams& params, int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      params_(params),
      n_threads_(n_threads),
      scores_(make_scores(labels_, std::move(raw), n_threads)),
      roots_(*binned_, labels_, params.split_weight == SplitWeight::hessian),
      weight_(labels_.weights()),
      work_(static_cast<std::size_t>(labels_.n_classes), 0.0) {
  roots_.set_weights(weight_, n_threads);
  if (params.split_weight == SplitWeight::hessian) workspaces_ = Workspaces<3>();
  std::visit(
      [&](auto& workspaces) {
        using Item = typename std::decay_t<decltype(workspaces)>::value_type::element_type;
        const std::size_t bytes = binned_->total_bins * Item::kSums * sizeof(std::int64_t);
        const std::size_t most = most_histograms(bytes, std::min(n_threads, labels_.n_classes));
        for (int i = 0; i < n_threads; ++i) {  // the first may grow a tree with all threads
          workspaces.push_back(std::make_unique<Item>(*binned_, most, i == 0 ? n_threads : 1));
        }
      },
      workspaces_);
}

StepResult Trainer::step(const StepPlan& plan) {
  StepResult result;
  step_ = plan.step;
  if (params_.subsample < 1.0) draw_rows();
  Proposal proposal = choose(plan, result.candidate_losses);
  result.base = proposal.trees.front().base;
  if (has_split(proposal)) {
    result.shortening = move_with_guard(scores_, labels_, weight_, proposal, n_threads_);
    result.changed = moves_anything(proposal.trees);
  }
  result.trees = std::move(proposal.trees);
  return result;
}

/// Rows that are not drawn weigh nothing in the step's trees, but are moved by them.
void Trainer::draw_rows() {
  if (drawn_for_ == step_) return;
  drawn_for_ = step_;
  const RowWeights weight = labels_.weights();
  drawn_weight_.resize(labels_.n_rows());
  for (std::size_t i = 0; i < drawn_weight_.size(); ++i) {
    const bool is_drawn = to_unit(draw(params_.seed, Draw::rows, step_, i)) < params_.subsample;
    drawn_weight_[i] = is_drawn ? weight[i] : 0;
  }
  weight_ = RowWeights(drawn_weight_);
  roots_.set_weights(weight_, n_threads_);
}

/// The proposal of the best candidate; the losses of all, if there are several.
Proposal Trainer::choose(const StepPlan& plan, std::vector<double>& losses) {
  const std::span<const int> bases(plan.bases);
  if (bases.size() == 1) return std::move(propose(plan, bases).front());
  std::vector<Proposal> proposals;
  std::size_t first = 0;  // candidate of proposals[0]
  while (first + proposals.size() < bases.size()) {
    first += proposals.size();
    proposals = propose(plan, next_candidates(plan, first));
    const auto of_these = losses_after(scores_, labels_, weight_, proposals, n_threads_);
    losses.insert(losses.end(), of_these.begin(), of_these.end());
  }
  const std::size_t best = first_smallest(losses);
  if (best >= first) return std::move(proposals[best - first]);
  // Its trees were given up for those of later candidates.
  return std::move(propose(plan, bases.subspan(best, 1)).front());
}

/// As many of the next candidates as can be tried together within some memory, at least one.
std::span<const int> Trainer::next_candidates(const StepPlan& plan, std::size_t first) const {
  const std::size_t bytes = plan.classes.size() * labels_.n_rows() * sizeof(std::uint16_t);
  const std::size_t n = std::max<std::size_t>(1, kSearchBytes / bytes);
  return std::span(plan.bases).subspan(first, std::min(n, plan.bases.size() - first));
}

/// Grows the trees of some candidates. Two candidates share the tree between them: it is grown for
/// the earlier one, and mirrored for the other.
std::vector<Proposal> Trainer::propose(const StepPlan& plan, std::span<const int> bases) {
  const auto n_classes = static_cast<std::size_t>(labels_.n_classes);
  std::vector<TreeJob> jobs;
  std::vector<std::size_t> job_of(bases.size() * n_classes);       // [candidate][class]
  std::vector<std::size_t> candidate_of(n_classes, bases.size());  // by class, so far
  const auto job_for = [&](std::size_t candidate, int k) -> std::size_t& {
    return job_of[candidate * n_classes + static_cast<std::size_t>(k)];
  };
  for (std::size_t i = 0; i < bases.size(); ++i) {
    for (const int k : plan.classes) {
      if (k == bases[i]) continue;
      const std::size_t earlier = candidate_of[static_cast<std::size_t>(k)];
      if (earlier < bases.size()) {
        job_for(i, k) = job_for(earlier, bases[i]);
      } else {
        job_for(i, k) = jobs.size();
        jobs.push_back({k, plan.base_derivatives ? bases[i] : -1});
      }
    }
    if (bases[i] >= 0) candidate_of[static_cast<std::size_t>(bases[i])] = i;
  }
  const std::vector<Tree> trees = grow(jobs, plan.leaf_scale);
  std::vector<Proposal> proposals(bases.size());
  for (std::size_t i = 0; i < bases.size(); ++i) {
    for (const int k : plan.classes) {
      if (k == bases[i]) continue;
      const std::size_t job = job_for(i, k);
      Tree tree = jobs[job].tree_class == k ? trees[job] : mirrored(trees[job]);
      tree.base = bases[i];
      proposals[i].trees.push_back(std::move(tree));
      proposals[i].node_of_row.push_back(nodes_of(job));
    }
  }
  return proposals;
}

std::span<std::uint16_t> Trainer::nodes_of(std::size_t job) {
  return std::span(node_of_row_).subspan(job * labels_.n_rows(), labels_.n_rows());
}

std::vector<Tree> Trainer::grow(std::span<const TreeJob> jobs, double leaf_scale) {
  std::vector<Tree> trees(jobs.size());
  node_of_row_.resize(jobs.size() * labels_.n_rows());
  params_.grow.rules = rules();
  set_threads_per_tree(jobs.size());
  for (std::size_t first = 0; first < jobs.size();) {
    const std::size_t last = roots_.end_of_batch(jobs, first);
    const auto batch = jobs.subspan(first, last - first);
    roots_.fill(scores_, batch, n_threads_);
    for_each_tree(batch, [&](std::size_t i, auto& workspace) {
      Tree tree = grow_tree(batch[i], i, workspace);
      set_leaves(tree, batch[i], leaf_scale, workspace, nodes_of(first + i));
      trees[first + i] = std::move(tree);
    });
    first = last;
  }
  for (const Tree& tree : trees) work_[static_cast<std::size_t>(tree.tree_class)] = work_of(tree);
  return trees;
}

void Trainer::set_threads_per_tree(std::size_t n_trees) {
  const std::size_t before = std::exchange(threads_per_tree_, threads_for(n_trees, n_threads_));
  if (threads_per_tree_ != before) blocks_ = blocks_of(*binned_, threads_per_tree_);
}

/// Calls each(i, workspace) for the trees of a batch, in parallel or one after the other.
template <class Each>
void Trainer::for_each_tree(std::span<const TreeJob> batch, const Each& each) {
  std::visit(
      [&](auto& workspaces) {
        if (threads_per_tree_ > 1) {
          for (std::size_t i = 0; i < batch.size(); ++i) each(i, *workspaces.front());
          return;
        }
        std::vector<double> work;
        for (const TreeJob& job : batch) {
          work.push_back(work_[static_cast<std::size_t>(job.tree_class)]);
        }
        const std::vector<std::size_t> order = largest_first(work);
        parallel_for(batch.size(), n_threads_,
                     [&](std::size_t i, std::size_t slot) { each(order[i], *workspaces[slot]); });
      },
      workspaces_);
}

template <int W>
Tree Trainer::grow_tree(const TreeJob& job, std::size_t in_batch, Workspace<W>& workspace) {
  auto& grower = workspace.grower;
  reset(workspace.rows, labels_.n_rows());
  const Sums<W> root = root_sums<W>(job, in_batch);
  const int gain_exponent = (W == 3 ? -1 : -2) * scores_.exponent;
  grower.start(
      params_.grow,
      {.sums = root, .gain_unit = std::ldexp(labels_.unit, gain_exponent), .key = key_of(job)});
  if (!grower.to_count().empty()) {
    count_nodes<W>(workspace, [&](std::span<const Block> blocks, std::size_t slot) {
      for (const Block& block : blocks) {
        fill_root<W>(job, in_batch, block, grower.histogram(0));
        grower.counted(block, slot);
      }
    });
  }
  while (const auto node = grower.split_next()) {
    split_rows(workspace.rows, *node, *binned_, grower.nodes()[*node]);
    if (grower.to_count().empty()) continue;
    count_nodes<W>(workspace, [&](std::span<const Block> blocks, std::size_t slot) {
      count_rows(job, workspace, blocks, slot);
    });
  }
  return {.tree_class = job.tree_class, .base = job.base, .nodes = grower.nodes()};
}

/// Counts the nodes that the grower asks for; where threads have no tree of their own, each takes
/// some of the columns.
template <int W>
void Trainer::count_nodes(Workspace<W>& workspace, const BlockCounter& count) {
  std::size_t work = binned_->total_bins;
  for (const std::size_t node : workspace.grower.to_count()) {
    work += workspace.rows.of(node).size() * binned_->n_columns();
  }
  const std::size_t n_useful = work / kWorkPerThread + 1;
  const std::size_t n_ranges = std::min({threads_per_tree_, blocks_.size(), n_useful});
  parallel_for(n_ranges, static_cast<int>(n_ranges), [&](std::size_t i, std::size_t slot) {
    const std::size_t first = i * blocks_.size() / n_ranges;
    const std::size_t last = (i + 1) * blocks_.size() / n_ranges;
    count(std::span(blocks_).subspan(first, last - first), slot);
  });
  workspace.grower.all_counted();
}

/// Counts the rows of the nodes in some blocks of columns. A block is counted, subtracted and
/// searched for cuts while it is in the cache; of a large node some rows at a time, so that these
/// are, too.
template <int W>
void Trainer::count_rows(const TreeJob& job, Workspace<W>& workspace, std::span<const Block> blocks,
                         std::size_t slot) const {
  auto& grower = workspace.grower;
  std::vector<Sums<W>>& sums = workspace.some_sums[slot];
  for (const std::size_t node : grower.to_count()) {
    const bool is_taken_out = grower.is_taken_out(node);
    const std::size_t made = grower.made_by(node);
    const std::span<Sums<W>> histogram = grower.histogram(made);
    const auto rows = workspace.rows.of(node);
    for (std::size_t first = 0; first < rows.size(); first += kRowsTogether) {
      const auto some = rows.subspan(first, std::min(kRowsTogether, rows.size() - first));
      const bool is_last = first + some.size() == rows.size();
      check_interrupt();
      gather<W>(job, some, sums);
      if (is_taken_out) negate<W>(sums);
      for (const Block& block : blocks) {
        if (first == 0 && !is_taken_out) clear(block, histogram);
        count_block<W>(*binned_, block, {.rows = some, .sums = sums}, histogram);
        if (is_last) finish_block<W>(*binned_, block, grower.sums(made), histogram);
        if (is_last && node == grower.to_count().back()) grower.counted(block, slot);
      }
    }
  }
}

/// The same for both trees of a pair of classes, which mirror each other.
std::uint64_t Trainer::key_of(const TreeJob& job) const {
  const auto [low, high] = std::minmax(job.tree_class, job.base < 0 ? job.tree_class : job.base);
  const auto pair = static_cast<std::uint64_t>(low) * static_cast<std::uint64_t>(labels_.n_classes);
  return draw(params_.seed, Draw::features, step_, pair + static_cast<std::uint64_t>(high));
}

/// The sums of some rows, in their order.
template <int W>
void Trainer::gather(const TreeJob& job, std::span<const std::uint32_t> rows,
                     std::vector<Sums<W>>& out) const {
  const std::int64_t* of_class =
      scores_.residual.data() + static_cast<std::size_t>(job.tree_class) * labels_.n_rows();
  const std::int64_t* of_base =
      scores_.residual.data() + static_cast<std::size_t>(std::max(job.base, 0)) * labels_.n_rows();
  out.resize(rows.size());
  for (std::size_t first = 0; first < rows.size(); first += kBlock) {
    const auto some = rows.subspan(first, std::min(kBlock, rows.size() - first));
    std::array<std::int64_t, kBlock> residual;
    std::array<std::int64_t, kBlock> base_residual;
    for (std::size_t j = 0; j < some.size(); ++j) {
      const std::uint32_t ahead = rows[std::min(first + j + kAhead, rows.size() - 1)];
      __builtin_prefetch(of_class + ahead);
      __builtin_prefetch(of_base + ahead);
      weight_.prefetch(ahead);
      residual[j] = of_class[some[j]];
      base_residual[j] = job.base < 0 ? 0 : of_base[some[j]];
    }
    std::array<std::int64_t, kBlock> hessians;
    if constexpr (W == 3) {
      std::array<std::int32_t, kBlock> y;
      for (std::size_t j = 0; j < some.size(); ++j) y[j] = labels_.y[some[j]];
      hessian(scores_, {.of_class = residual, .of_base = base_residual, .y = y}, job.tree_class,
              job.base, std::span(hessians).first(some.size()));
    }
    for (std::size_t j = 0; j < some.size(); ++j) {
      const std::int64_t weight = weight_[some[j]];
      Sums<W>& sums = out[first + j];
      sums[0] = (residual[j] - base_residual[j]) * weight;
      sums[1] = weight;
      if constexpr (W == 3) sums[2] = hessians[j] * weight;
    }
  }
}

/// The sums of the root: those of the bins of any feature.
template <int W>
Sums<W> Trainer::root_sums(const TreeJob& job, std::size_t in_batch) const {
  Sums<W> sums{};
  const Feature& feature = binned_->features[binned_->by_bin.front()];
  for (std::size_t bin = feature.offset; bin < feature.offset + feature.n_bins; ++bin) {
    const Sums<W> more = root_bin<W>(job, in_batch, bin);
    for (std::size_t w = 0; w < W; ++w) sums[w] += more[w];
  }
  return sums;
}

template <int W>
Sums<W> Trainer::root_bin(const TreeJob& job, std::size_t in_batch, std::size_t bin) const {
  Sums<W> sums;
  sums[0] = roots_.residual(job, bin);
  sums[1] = roots_.weight(bin);
  if constexpr (W == 3) sums[2] = roots_.hessian(in_batch, bin);
  return sums;
}

template <int W>
void Trainer::fill_root(const TreeJob& job, std::size_t in_batch, const Block& block,
                        std::span<Sums<W>> histogram) const {
  for (std::size_t bin = block.first_bin; bin < block.last_bin; ++bin) {
    histogram[bin] = root_bin<W>(job, in_batch, bin);
  }
}

template <int W>
void Trainer::set_leaves(Tree& tree, const TreeJob& job, double leaf_scale,
                         const Workspace<W>& workspace,
                         std::span<std::uint16_t> node_of_row) const {
  write_leaves(workspace.rows, tree.nodes, node_of_row);
  std::vector<std::int64_t> hessians;
  if (W == 2) hessians = hessian_sums(job, tree.nodes.size(), node_of_row);
  for (std::size_t node = 0; node < tree.nodes.size(); ++node) {
    const Sums<W>& sums = workspace.grower.sums(node);
    tree.nodes[node].weight = static_cast<double>(sums[1]) * labels_.unit;
    if (!tree.nodes[node].is_leaf()) continue;
    tree.nodes[node].gain = 0.0;  // of a split that was not made
    tree.nodes[node].value = leaf_value(sums[0], W == 2 ? hessians[node] : sums[W - 1], leaf_scale);
  }
}

std::vector<std::int64_t> Trainer::hessian_sums(const TreeJob& job, std::size_t n_nodes,
                                                std::span<const std::uint16_t> node_of_row) const {
  std::vector<std::int64_t> sums(n_nodes, 0);
  std::array<std::int64_t, kBlock> block;
  for (std::size_t first = 0; first < node_of_row.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, node_of_row.size() - first);
    hessian(scores_, labels_, job.tree_class, job.base, first, std::span(block).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      sums[node_of_row[first + i]] += block[i] * weight_[first + i];
    }
  }
  return sums;
}

/// Newton step of a leaf, bounded, so that a tiny hessian gives neither infinity nor NaN.
double Trainer::leaf_value(std::int64_t residual, std::int64_t hessian_sum,
                           double leaf_scale) const {
  if (residual == 0) return 0.0;
  const double h = static_cast<double>(hessian_sum) + l2();
  const double newton = leaf_scale * (static_cast<double>(residual) / h);
  return on_leaf_grid(params_.learning_rate * std::clamp(newton, -kLargestLeaf, kLargestLeaf));
}

/// An amount of hessian in units of this step's integer sums.
double Trainer::hessian_units(double amount) const {
  return std::ldexp(amount, scores_.exponent) / labels_.unit;
}

/// Bounded, so that scores of cuts can be multiplied with each other; leaves are 0 long before.
double Trainer::l2() const { return std::min(hessian_units(params_.l2_regularization), 0x1p200); }

SplitRules Trainer::rules() const {
  SplitRules rules = params_.grow.rules;
  rules.smoothing = params_.categorical_smoothing / labels_.unit;
  rules.l2 = l2();
  const double least = std::min(std::ceil(hessian_units(params_.min_hessian_leaf)), 0x1p62);
  rules.min_hessian = std::max<std::int64_t>(1, static_cast<std::int64_t>(least));
  return rules;
}

}  // namespace abcgbm
