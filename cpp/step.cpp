#include "step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "parallel.hpp"
#include "search.hpp"

namespace abcgbm {
namespace {

constexpr double kLargestLeaf = 50.0;  // bound of a leaf value before the learning rate
constexpr std::size_t kRootBytes = std::size_t{1} << 26;    // for root histograms
constexpr std::size_t kSearchBytes = std::size_t{1} << 29;  // for the trees of some candidates
constexpr std::size_t kBlock = 512;
constexpr std::size_t kNoLane = static_cast<std::size_t>(-1);

bool moves_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.nodes, [](const TreeNode& node) { return node.value != 0.0; });
  });
}

bool splits_anything(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) { return tree.nodes.size() > 1; });
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

}  // namespace

Trainer::Trainer(std::shared_ptr<const Binned> binned, Labels labels, const TrainParams& params,
                 int n_threads)
    : binned_(std::move(binned)),
      labels_(std::move(labels)),
      params_(params),
      n_threads_(n_threads),
      scores_(make_scores(labels_, n_threads)),
      root_weights_(root_weights(*binned_, labels_, n_threads)) {
  if (params.split_weight == SplitWeight::hessian) workspaces_ = Workspaces<3>();
  std::visit(
      [&](auto& workspaces) {
        using Item = typename std::decay_t<decltype(workspaces)>::value_type::element_type;
        for (int i = 0; i < n_threads; ++i) workspaces.push_back(std::make_unique<Item>(*binned_));
      },
      workspaces_);
}

StepResult Trainer::step(const StepPlan& plan) {
  StepResult result;
  std::vector<Proposal> proposals;
  std::size_t first = 0;  // candidate of proposals[0]
  std::size_t best = 0;
  if (plan.bases.size() == 1) {
    proposals = propose(plan, plan.bases);
  } else {
    while (first + proposals.size() < plan.bases.size()) {
      first += proposals.size();
      proposals = propose(plan, next_candidates(plan, first));
      const auto losses = losses_after(scores_, labels_, proposals, n_threads_);
      result.candidate_losses.insert(result.candidate_losses.end(), losses.begin(), losses.end());
    }
    best = first_smallest(result.candidate_losses);
  }
  if (best < first) {  // its trees were given up for those of later candidates
    proposals = propose(plan, std::span(plan.bases).subspan(best, 1));
    first = best;
  }
  Proposal& chosen = proposals[best - first];
  result.base = plan.bases[best];
  if (splits_anything(chosen.trees)) {
    result.shortening = move_with_guard(scores_, labels_, chosen, n_threads_);
    result.changed = moves_anything(chosen.trees);
  }
  result.trees = std::move(chosen.trees);
  return result;
}

/// As many of the next candidates as can be tried together within some memory, at least one.
std::span<const int> Trainer::next_candidates(const StepPlan& plan, std::size_t first) const {
  const std::size_t bytes = plan.classes.size() * labels_.n_rows() * sizeof(std::uint16_t);
  const std::size_t n = std::max<std::size_t>(1, kSearchBytes / bytes);
  return std::span(plan.bases).subspan(first, std::min(n, plan.bases.size() - first));
}

/// Grows the trees of some candidates. Two candidates share the tree between them.
std::vector<Proposal> Trainer::propose(const StepPlan& plan, std::span<const int> bases) {
  const auto n_classes = static_cast<std::size_t>(labels_.n_classes);
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of(bases.size() * n_classes);  // [base][class]
  for (std::size_t i = 0; i < bases.size(); ++i) {
    for (const int k : plan.classes) {
      if (k == bases[i]) continue;
      const auto earlier =
          static_cast<std::size_t>(std::ranges::find(bases.first(i), k) - bases.begin());
      std::size_t& job = job_of[i * n_classes + static_cast<std::size_t>(k)];
      job = earlier < i ? job_of[earlier * n_classes + static_cast<std::size_t>(bases[i])]
                        : jobs.size();
      if (job == jobs.size()) jobs.push_back({k, plan.base_derivatives ? bases[i] : -1});
    }
  }
  const std::vector<Tree> trees = grow(jobs, plan.leaf_scale);
  std::vector<Proposal> proposals(bases.size());
  const std::size_t n_rows = labels_.n_rows();
  for (std::size_t i = 0; i < bases.size(); ++i) {
    for (const int k : plan.classes) {
      if (k == bases[i]) continue;
      const std::size_t job = job_of[i * n_classes + static_cast<std::size_t>(k)];
      proposals[i].trees.push_back(trees[job].tree_class == k ? trees[job] : mirrored(trees[job]));
      proposals[i].trees.back().base = bases[i];
      proposals[i].node_of_row.push_back(std::span(node_of_row_).subspan(job * n_rows, n_rows));
    }
  }
  return proposals;
}

std::vector<Tree> Trainer::grow(const std::vector<Job>& jobs, double leaf_scale) {
  std::vector<Tree> trees(jobs.size());
  const std::size_t n_rows = labels_.n_rows();
  node_of_row_.resize(jobs.size() * n_rows);
  params_.grow.rules = rules();
  for (std::size_t first = 0; first < jobs.size();) {
    const std::size_t last = end_of_batch(jobs, first);
    fill_batch_roots(std::span(jobs).subspan(first, last - first));
    std::visit(
        [&](auto& workspaces) {
          parallel_for(last - first, n_threads_, [&](std::size_t i, std::size_t slot) {
            const Job& job = jobs[first + i];
            Tree tree = grow_tree(job, i, *workspaces[slot]);
            set_leaves(tree, job, leaf_scale, *workspaces[slot],
                       std::span(node_of_row_).subspan((first + i) * n_rows, n_rows));
            trees[first + i] = std::move(tree);
          });
        },
        workspaces_);
    first = last;
  }
  return trees;
}

/// Root histograms of many trees may not fit into memory: trees are grown in batches whose do.
std::size_t Trainer::end_of_batch(const std::vector<Job>& jobs, std::size_t first) const {
  const std::size_t group_bytes = binned_->total_bins() * sizeof(Line);
  const std::size_t most = std::max<std::size_t>(1, kRootBytes / group_bytes) * kLane;
  const bool has_hessian = params_.split_weight == SplitWeight::hessian;
  std::set<int> classes;
  std::size_t last = first;
  while (last < jobs.size() && (!has_hessian || last - first < most)) {
    classes.insert(jobs[last].tree_class);
    if (jobs[last].base >= 0) classes.insert(jobs[last].base);
    if (classes.size() > most && last > first) break;
    ++last;
  }
  return last;
}

/// Residual sums of a pair of classes are differences of K sums; hessian sums are a pair's own.
void Trainer::fill_batch_roots(std::span<const Job> batch) {
  std::vector<std::size_t> classes;
  lane_.assign(static_cast<std::size_t>(labels_.n_classes), kNoLane);
  const auto add_class = [&](int k) {
    auto& lane = lane_[static_cast<std::size_t>(k)];
    if (lane != kNoLane) return;
    lane = classes.size();
    classes.push_back(static_cast<std::size_t>(k));
  };
  for (const Job& job : batch) {
    add_class(job.tree_class);
    if (job.base >= 0) add_class(job.base);
  }
  const auto residual = [&](std::size_t i, std::size_t first, std::span<std::int64_t>) {
    return scores_.residual.data() + classes[i] * labels_.n_rows() + first;
  };
  fill_roots(*binned_, labels_, classes.size(), residual, n_threads_, class_roots_);
  if (params_.split_weight == SplitWeight::one) return;
  const auto hessians = [&](std::size_t i, std::size_t first, std::span<std::int64_t> out) {
    hessian(scores_, labels_, batch[i].tree_class, batch[i].base, first, out);
    return out.data();
  };
  fill_roots(*binned_, labels_, batch.size(), hessians, n_threads_, hessian_roots_);
}

template <int W>
Tree Trainer::grow_tree(const Job& job, std::size_t in_batch, Workspace<W>& workspace) {
  auto& grower = workspace.grower;
  reset(workspace.rows, labels_.n_rows());
  const Sums<W> root = fill_root(job, in_batch, workspace);
  const int gain_exponent = (W == 3 ? -1 : -2) * scores_.exponent;
  grower.start(params_.grow, root, std::ldexp(labels_.unit, gain_exponent));
  while (const auto split = grower.split_next()) {
    split_rows(workspace.rows, split->node, *binned_, split->feature, split->bin,
               split->missing_left);
    if (split->to_count) {
      add_rows<W>(*binned_, workspace.rows.of(*split->to_count), workspace.row_sums,
                  grower.count_here());
      grower.counted();
    }
  }
  return {.tree_class = job.tree_class, .base = job.base, .nodes = grower.nodes()};
}

/// The rows' sums, and the root's histogram from those of all trees of the batch.
template <int W>
Sums<W> Trainer::fill_root(const Job& job, std::size_t in_batch, Workspace<W>& workspace) {
  const std::size_t n_rows = labels_.n_rows();
  const auto k = static_cast<std::size_t>(job.tree_class);
  const auto base = static_cast<std::size_t>(std::max(job.base, 0));
  const std::int64_t has_base = job.base >= 0 ? 1 : 0;
  const std::int64_t* residual = scores_.residual.data();
  workspace.row_sums.resize(n_rows);
  Sums<W> root{};
  std::array<std::int64_t, kBlock> hessians;
  for (std::size_t first = 0; first < n_rows; first += kBlock) {
    const std::size_t n = std::min(kBlock, n_rows - first);
    if (W == 3)
      hessian(scores_, labels_, job.tree_class, job.base, first, std::span(hessians).first(n));
    for (std::size_t i = first; i < first + n; ++i) {
      const std::int64_t g = residual[k * n_rows + i] - has_base * residual[base * n_rows + i];
      Sums<W>& sums = workspace.row_sums[i];
      sums[0] = g * labels_.weight[i];
      sums[1] = labels_.weight[i];
      if constexpr (W == 3) sums[2] = hessians[i - first] * labels_.weight[i];
      for (std::size_t w = 0; w < W; ++w) root[w] += sums[w];
    }
  }
  const auto histogram = workspace.grower.root_histogram();
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
    histogram[bin][0] =
        class_roots_.at(lane_[k], bin) - (job.base >= 0 ? class_roots_.at(lane_[base], bin) : 0);
    histogram[bin][1] = root_weights_[bin];
    if constexpr (W == 3) histogram[bin][2] = hessian_roots_.at(in_batch, bin);
  }
  return root;
}

template <int W>
void Trainer::set_leaves(Tree& tree, const Job& job, double leaf_scale,
                         const Workspace<W>& workspace,
                         std::span<std::uint16_t> node_of_row) const {
  for (std::size_t node = 0; node < tree.nodes.size(); ++node) {
    if (!tree.nodes[node].is_leaf()) continue;
    for (const std::uint32_t row : workspace.rows.of(node)) {
      node_of_row[row] = static_cast<std::uint16_t>(node);
    }
  }
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

std::vector<std::int64_t> Trainer::hessian_sums(const Job& job, std::size_t n_nodes,
                                                std::span<const std::uint16_t> node_of_row) const {
  std::vector<std::int64_t> sums(n_nodes, 0);
  std::array<std::int64_t, kBlock> block;
  for (std::size_t first = 0; first < node_of_row.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, node_of_row.size() - first);
    hessian(scores_, labels_, job.tree_class, job.base, first, std::span(block).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      sums[node_of_row[first + i]] += block[i] * labels_.weight[first + i];
    }
  }
  return sums;
}

/// Newton step of a leaf, bounded, so that a tiny hessian gives neither infinity nor NaN.
double Trainer::leaf_value(std::int64_t residual, std::int64_t hessian_sum,
                           double leaf_scale) const {
  if (residual == 0) return 0.0;
  const double h = static_cast<double>(hessian_sum) + hessian_units(params_.l2_regularization);
  const double newton = leaf_scale * (static_cast<double>(residual) / h);
  return on_leaf_grid(params_.learning_rate * std::clamp(newton, -kLargestLeaf, kLargestLeaf));
}

/// An amount of hessian in units of this step's integer sums.
double Trainer::hessian_units(double amount) const {
  return std::ldexp(amount, scores_.exponent) / labels_.unit;
}

SplitRules Trainer::rules() const {
  SplitRules rules = params_.grow.rules;
  rules.l2 = hessian_units(params_.l2_regularization);
  const double least = std::min(std::ceil(hessian_units(params_.min_hessian_leaf)), 0x1p62);
  rules.min_hessian = std::max<std::int64_t>(1, static_cast<std::int64_t>(least));
  return rules;
}

}  // namespace abcgbm
