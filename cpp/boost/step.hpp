// One boosting step: all trees of the step, the choice of the base class, the move of the scores.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "base/base_class.hpp"
#include "boost/guard.hpp"
#include "boost/params.hpp"
#include "boost/rank_driver.hpp"
#include "boost/shared_growth.hpp"
#include "boost/step_context.hpp"
#include "boost/tree_driver.hpp"
#include "data/binned.hpp"
#include "loss/scores.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

struct StepResult {
  std::vector<Tree> trees;
  BaseClass base;
  std::vector<double> candidate_losses;  // of the plan's bases, if there were several
  Shortening shortening;
  int n_classes = 0;
  bool changed = false;  // some tree has a split and some leaf moves the scores
};

using AnyTreeDriver =
    std::variant<TreeDriver<2>, TreeDriver<3>, RankDriver<2>, RankDriver<3>, SharedDriver>;

/// The state of a training: the table, its labels, the scores, and buffers used again at each step.
/// For one thread at a time; of no use after a step that threw.
class Trainer {
 public:
  /// Starts from the raw scores [n_classes][n_rows], and keeps all that is as large where these
  /// lie.
  Trainer(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
          LargeVector<double> raw, const TrainParams& params, int n_threads);
  Trainer(const Trainer&) = delete;  // holds buffers as large as the table
  Trainer& operator=(const Trainer&) = delete;

  /// Grows the trees, all from the same residuals, and moves the scores; the guard sees to it that
  /// the loss does not rise.
  StepResult step(const StepPlan& plan);

  const Labels& labels() const { return *labels_; }
  const Scores& scores() const { return scores_; }
  bool is_shared() const { return params_.shared; }

 private:
  std::shared_ptr<const Binned> binned_;
  std::shared_ptr<const Labels> labels_;
  TrainParams params_;
  int n_threads_;
  Scores scores_;
  StepWeights all_rows_;  // where none are drawn
  AnyTreeDriver driver_;
};

}  // namespace abcgbm
