#include "boost/base_candidates.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "boost/base_search.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kSearchBytes = std::size_t{1}
                                     << 29;  // for the leaf of every row in all trees

/// The first of the smallest losses; losses that differ by rounding only count as equal.
std::size_t first_smallest(const std::vector<double>& losses) {
  const double bound = *std::ranges::min_element(losses) * (1.0 + 1e-12);
  const auto first = std::ranges::find_if(losses, [&](double loss) { return loss <= bound; });
  return static_cast<std::size_t>(first - losses.begin());
}

/// tree(b, k) = -tree(k, b), exactly: residuals change sign, hessians do not.
Tree mirrored(Tree tree, int tree_class) {
  tree.tree_class = tree_class;
  for (TreeNode& node : tree.nodes) node.value = -node.value;
  return tree;
}

/// The trees that the candidates need. The tree of a pair of candidates is grown for the earlier
/// one and mirrored for the other.
struct Jobs {
  std::vector<ClassPair> pairs;
  std::vector<std::vector<std::size_t>> number;  // index of the tree for a candidate and a class
};

Jobs list_jobs(const IterationPlan& plan, std::span<const BaseClass> bases, std::size_t n_classes) {
  Jobs jobs;
  std::map<int, std::size_t> earlier;  // candidates by class
  for (const BaseClass base : bases) {
    auto& number = jobs.number.emplace_back(n_classes);
    for (const int k : plan.classes) {
      if (base.is(k)) continue;
      const auto other = earlier.find(k);
      if (other != earlier.end()) {
        number[static_cast<std::size_t>(k)] =
            jobs.number[other->second][static_cast<std::size_t>(base.number())];
        continue;
      }
      number[static_cast<std::size_t>(k)] = jobs.pairs.size();
      jobs.pairs.push_back({.tree_class = k, .base = plan.base_derivatives ? base : BaseClass()});
    }
    if (base.exists()) earlier.emplace(base.number(), jobs.number.size() - 1);
  }
  return jobs;
}

/// The steps of some candidates, and their trees.
struct Candidates {
  std::vector<GrownTree> grown;
  std::vector<Proposal> proposals;  // refer to the rows' leaves in `grown`
};

Candidates propose(const IterationPlan& plan, std::span<const BaseClass> bases,
                   std::size_t n_classes, const GrowTrees& grow) {
  const Jobs jobs = list_jobs(plan, bases, n_classes);
  Candidates candidates{.grown = grow(jobs.pairs),
                        .proposals = std::vector<Proposal>(bases.size())};
  for (std::size_t i = 0; i < bases.size(); ++i) {
    for (const int k : plan.classes) {
      if (bases[i].is(k)) continue;
      const GrownTree& grown = candidates.grown[jobs.number[i][static_cast<std::size_t>(k)]];
      Tree tree = grown.tree.tree_class == k ? grown.tree : mirrored(grown.tree, k);
      tree.base = bases[i];
      candidates.proposals[i].trees.push_back(std::move(tree));
      candidates.proposals[i].node_of_row.push_back(grown.node_of_row);
    }
  }
  return candidates;
}

Choice take(Candidates candidates, std::size_t i, std::vector<double> losses) {
  return {.grown = std::move(candidates.grown),
          .proposal = std::move(candidates.proposals[i]),
          .losses = std::move(losses)};
}

}  // namespace

std::size_t n_candidates_at_a_time(std::size_t n_candidates, std::size_t n_rows,
                                   std::size_t n_classes) {
  const std::size_t bytes = std::max<std::size_t>(1, n_classes * n_rows * sizeof(std::uint16_t));
  return std::min(std::max<std::size_t>(1, kSearchBytes / bytes), n_candidates);
}

Choice choose(const IterationPlan& plan, const IterationContext& context, const GrowTrees& grow,
              int n_threads) {
  const TreeRows& rows = context.rows;
  const std::span<const BaseClass> bases(plan.bases);
  const auto n_classes = static_cast<std::size_t>(rows.labels.n_classes);
  if (bases.size() == 1) return take(propose(plan, bases, n_classes, grow), 0, {});
  const std::size_t n_together =
      n_candidates_at_a_time(bases.size(), rows.labels.shard.max_rows, plan.classes.size());
  std::vector<double> losses;
  Candidates last;
  std::size_t first = 0;  // candidate of last.proposals[0]
  while (losses.size() < bases.size()) {
    first = losses.size();
    last = {};  // free the memory before the next trees grow
    const auto some = bases.subspan(first, std::min(n_together, bases.size() - first));
    last = propose(plan, some, n_classes, grow);
    const auto after =
        losses_after(rows, last.proposals, context.params.base_line_search, n_threads);
    losses.insert(losses.end(), after.begin(), after.end());
  }
  const std::size_t best = first_smallest(losses);
  if (best >= first) return take(std::move(last), best - first, std::move(losses));
  last = {};  // the best candidate's trees were dropped: grow them again
  return take(propose(plan, bases.subspan(best, 1), n_classes, grow), 0, std::move(losses));
}

}  // namespace abcgbm
