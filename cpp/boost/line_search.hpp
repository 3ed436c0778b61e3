// Backtracking line search on the step of an iteration, by powers of two: Algorithm 1's line
// search. A step that raises the loss is scaled back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "loss/scores.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// The scale of a step. If the full step does not raise the loss, it is Algorithm 3's to the bit.
struct StepScale {
  int step_halvings = 0;  // all values times 2^-step_halvings; negative: lengthened
  int base_halvings = 0;  // the base class moves by 2^-base_halvings of them

  bool operator==(const StepScale&) const = default;
};

/// The step of an iteration before it is applied: its trees, and the leaf of every row in each.
struct Proposal {
  std::vector<Tree> trees;
  std::vector<std::span<const std::uint16_t>> node_of_row;
};

/// The values of a scaled step: by tree and node for the trees' classes and for the base class; or
/// by class and leaf of a multi-output tree. All are rounded to multiples of 2^-32.
struct Values {
  std::vector<std::vector<double>> tree_class;
  std::vector<std::vector<double>> base;
};
Values values_of(const std::vector<Tree>& trees, StepScale scale);

/// The loss after the step at this scale.
using LossAt = std::function<double(StepScale)>;

struct LineSearchResult {
  StepScale scale;
  double loss = 0.0;
};

/// Whether the loss falls when the base class's part, after n halvings, is halved again; no value
/// if only the exact losses can decide.
using FallsIfHalvedAgain = std::function<std::optional<bool>(int)>;

/// When to scale the base class's part as long as the loss falls: never, only if the full step
/// raises the loss, or always. `always` exists because that part overshoots long before the
/// loss rises. In cross-validation on Letter, Pendigits, Optdigits and generated data with 60 to
/// 300 classes halvings were as good as multiples of 1/64, and lengthening the step afterwards
/// raised the held-out loss from the first iteration on (100 classes: from 4.61 to 4.68 instead of
/// to 4.47).
enum class ScaleBase { never, if_loss_rises, always };
ScaleBase when_to_scale_base(const Proposal& proposal, bool base_line_search);

/// The scale after which the loss is not larger than before.
LineSearchResult line_search(const LossAt& loss_at, const FallsIfHalvedAgain& falls_if_halved_again,
                             double loss_before, ScaleBase base_scaling);

/// Whether any tree has a split.
bool has_split(const Proposal& proposal);

bool is_multi_output(const Proposal& proposal);

/// Updates the scores by the trees such that the loss does not rise, and stores the values that
/// were applied in the trees. The loss counts rows by the weights that the trees were fitted with:
/// on all rows a step on a subsample may well raise it, and would be scaled back to nothing.
StepScale apply_with_line_search(Scores& scores, const Labels& labels, RowWeights weight,
                                 Proposal& proposal, bool base_line_search, int n_threads);

}  // namespace abcgbm
