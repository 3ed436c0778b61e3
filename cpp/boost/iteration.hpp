// One boosting iteration: grow the trees, choose the base class, update the scores.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "base/base_class.hpp"
#include "boost/line_search.hpp"
#include "data/binned.hpp"
#include "grow/iteration_context.hpp"
#include "grow/multi_output_growth.hpp"
#include "grow/params.hpp"
#include "grow/rank_driver.hpp"
#include "grow/tree_driver.hpp"
#include "loss/scores.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

struct IterationResult {
  std::vector<Tree> trees;
  BaseClass base;
  std::vector<double> candidate_losses;  // of the plan's bases, if there are several
  StepScale step_scale;
  int n_classes = 0;
  bool changed = false;  // some tree has a split, and some leaf value is not 0
};

using AnyTreeDriver =
    std::variant<TreeDriver<2>, TreeDriver<3>, RankDriver<2>, RankDriver<3>, MultiOutputDriver>;

/// The state of training: table, labels, scores, and buffers for reuse. For one thread at a time;
/// unusable after an iteration that threw.
class Trainer {
 public:
  /// Starts from raw scores [n_classes][n_rows]; all arrays of this size are in their storage.
  Trainer(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
          LargeVector<double> raw, const TrainParams& params, int n_threads);
  Trainer(const Trainer&) = delete;  // holds buffers as large as the table
  Trainer& operator=(const Trainer&) = delete;

  /// Grows all trees from the same residuals, and updates the scores. The line search makes sure
  /// that the loss does not rise.
  IterationResult train_iteration(const IterationPlan& plan);

  const Labels& labels() const { return *labels_; }
  const Scores& scores() const { return scores_; }
  bool is_multi_output() const { return params_.multi_output; }

 private:
  std::shared_ptr<const Binned> binned_;
  std::shared_ptr<const Labels> labels_;
  TrainParams params_;
  int n_threads_;
  Scores scores_;
  IterationWeights all_rows_;  // without subsampling
  AnyTreeDriver driver_;
};

}  // namespace abcgbm
