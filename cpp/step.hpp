// One boosting step: all trees of the step, then the move of the scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "binned.hpp"
#include "grower.hpp"
#include "guard.hpp"
#include "histogram.hpp"
#include "partition.hpp"
#include "scores.hpp"
#include "tree.hpp"

namespace abcgbm {

/// Which trees a step grows. Without base derivatives the residual of class k is r_k - p_k even
/// where a base class takes the trees' values with a minus sign (the paper's "Mb").
struct StepPlan {
  std::vector<int> classes;
  int base = -1;
  bool base_derivatives = false;
  double leaf_scale = 1.0;
};

struct StepResult {
  std::vector<Tree> trees;
  Shortening shortening;
  bool changed = false;  // some tree has a split and some leaf moves the scores
};

/// The state of a training: the table, its labels, the scores, and buffers used again at each step.
class Trainer {
 public:
  Trainer(std::shared_ptr<const Binned> binned, Labels labels, GrowParams params, int n_threads);
  Trainer(const Trainer&) = delete;  // holds buffers as large as the table
  Trainer& operator=(const Trainer&) = delete;

  /// Grows one tree for each class of the plan, all from the same residuals, and moves the scores;
  /// a step that would raise the loss is halved until it does not.
  StepResult step(const StepPlan& plan);

  const Labels& labels() const { return labels_; }
  const Scores& scores() const { return scores_; }

 private:
  /// What one thread needs to grow a tree.
  struct Workspace {
    explicit Workspace(const Binned& binned) : grower(binned) {}
    Grower<2> grower;
    RowSets rows;
    std::vector<Sums<2>> row_sums;
  };

  void grow_batch(const StepPlan& plan, std::size_t first, std::size_t last,
                  std::vector<Tree>& trees);
  Tree grow_tree(const StepPlan& plan, std::size_t position, std::size_t in_batch,
                 Workspace& workspace);
  Sums<2> fill_root(const StepPlan& plan, int k, std::size_t in_batch, Workspace& workspace);
  void set_leaves(const StepPlan& plan, Tree& tree, const Workspace& workspace,
                  std::span<std::uint16_t> node_of_row);

  std::shared_ptr<const Binned> binned_;
  Labels labels_;
  GrowParams params_;
  int n_threads_;
  Scores scores_;
  std::vector<std::int64_t> root_weights_;
  RootHistograms roots_;
  RootHistograms base_root_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<std::uint16_t> node_of_row_;  // [n_trees][n_rows]
};

}  // namespace abcgbm
