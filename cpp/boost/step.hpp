// One boosting step: all trees of the step, the choice of the base class, the move of the scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "boost/guard.hpp"
#include "boost/roots.hpp"
#include "data/binned.hpp"
#include "loss/scores.hpp"
#include "tree/grower.hpp"
#include "tree/histogram.hpp"
#include "tree/partition.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// What a step grows: a tree for each of `classes` but the base class. Several bases are
/// candidates: the one with the smallest loss after its step is taken. Without base derivatives the
/// residual of class k is r_k - p_k even where a base class takes the trees' values with a minus
/// sign (the paper's "Mb").
struct StepPlan {
  std::vector<int> classes;
  std::vector<int> bases;  // {-1}: no base class
  bool base_derivatives = false;
  double leaf_scale = 1.0;
  std::uint64_t step = 0;  // its number; part of the key of random draws
};

struct StepResult {
  std::vector<Tree> trees;
  int base = -1;
  std::vector<double> candidate_losses;  // of the plan's bases, if there were several
  Shortening shortening;
  bool changed = false;  // some tree has a split and some leaf moves the scores
};

/// A row weighs 1 (MART) or its hessian (robust LogitBoost) in the split gain.
enum class SplitWeight { one, hessian };

struct TrainParams {
  GrowParams grow;
  SplitWeight split_weight = SplitWeight::one;
  double learning_rate = 0.1;
  double l2_regularization = 0.0;
  double min_hessian_leaf = 0.0;
  double categorical_smoothing = 0.0;  // weight, see SplitRules
  double subsample = 1.0;              // share of the rows that a step's trees are grown on
  std::uint64_t seed = 0;
};

/// The state of a training: the table, its labels, the scores, and buffers used again at each step.
/// For one thread at a time; of no use after a step that threw.
class Trainer {
 public:
  /// Starts from the raw scores [n_classes][n_rows].
  Trainer(std::shared_ptr<const Binned> binned, Labels labels, std::vector<double> raw,
          const TrainParams& params, int n_threads);
  Trainer(const Trainer&) = delete;  // holds buffers as large as the table
  Trainer& operator=(const Trainer&) = delete;

  /// Grows the trees, all from the same residuals, and moves the scores; the guard sees to it that
  /// the loss does not rise.
  StepResult step(const StepPlan& plan);

  const Labels& labels() const { return labels_; }
  const Scores& scores() const { return scores_; }

 private:
  /// What one thread needs to grow a tree.
  template <int W>
  struct Workspace {
    static constexpr std::size_t kSums = W;
    Workspace(const Binned& binned, std::size_t most_histograms, int n_threads)
        : grower(binned, most_histograms, static_cast<std::size_t>(n_threads)),
          some_sums(static_cast<std::size_t>(n_threads)) {}
    Grower<W> grower;
    RowSets rows;
    std::vector<std::vector<Sums<W>>> some_sums;  // of the rows that a thread is counting
  };
  template <int W>
  using Workspaces = std::vector<std::unique_ptr<Workspace<W>>>;

  void draw_rows();
  Proposal choose(const StepPlan& plan, std::vector<double>& losses);
  std::span<const int> next_candidates(const StepPlan& plan, std::size_t first) const;
  std::vector<Proposal> propose(const StepPlan& plan, std::span<const int> bases);
  std::span<std::uint16_t> nodes_of(std::size_t job);
  std::vector<Tree> grow(std::span<const TreeJob> jobs, double leaf_scale);
  void set_threads_per_tree(std::size_t n_trees);
  template <class Each>
  void for_each_tree(std::span<const TreeJob> batch, const Each& each);
  template <int W>
  Tree grow_tree(const TreeJob& job, std::size_t in_batch, Workspace<W>& workspace);
  std::uint64_t key_of(const TreeJob& job) const;
  template <int W>
  void gather(const TreeJob& job, std::span<const std::uint32_t> rows,
              std::vector<Sums<W>>& out) const;
  template <int W>
  Sums<W> root_sums(const TreeJob& job, std::size_t in_batch) const;
  template <int W>
  Sums<W> root_bin(const TreeJob& job, std::size_t in_batch, std::size_t bin) const;
  template <int W>
  void fill_root(const TreeJob& job, std::size_t in_batch, const Block& block,
                 std::span<Sums<W>> histogram) const;
  using BlockCounter = std::function<void(std::span<const Block>, std::size_t)>;
  template <int W>
  void count_nodes(Workspace<W>& workspace, const BlockCounter& count);
  template <int W>
  void count_rows(const TreeJob& job, Workspace<W>& workspace, std::span<const Block> blocks,
                  std::size_t slot) const;
  template <int W>
  void set_leaves(Tree& tree, const TreeJob& job, double leaf_scale, const Workspace<W>& workspace,
                  std::span<std::uint16_t> node_of_row) const;
  std::vector<std::int64_t> hessian_sums(const TreeJob& job, std::size_t n_nodes,
                                         std::span<const std::uint16_t> node_of_row) const;
  double leaf_value(std::int64_t residual, std::int64_t hessian_sum, double leaf_scale) const;
  SplitRules rules() const;
  double hessian_units(double amount) const;
  double l2() const;

  std::shared_ptr<const Binned> binned_;
  Labels labels_;
  TrainParams params_;
  int n_threads_;
  std::size_t threads_per_tree_ = 0;
  std::vector<Block> blocks_;  // for so many threads
  Scores scores_;
  Roots roots_;
  std::variant<Workspaces<2>, Workspaces<3>> workspaces_;
  std::vector<std::int64_t> drawn_weight_;  // of each row in the trees: 0 if it was not drawn
  RowWeights weight_;                       // of each row in the trees
  std::optional<std::uint64_t> drawn_for_;  // the step whose rows they are
  std::uint64_t step_ = 0;                  // the number of the step being made
  std::vector<std::uint16_t> node_of_row_;  // [n_jobs][n_rows]
  std::vector<double> work_;                // of the last tree of each class
};

}  // namespace abcgbm
