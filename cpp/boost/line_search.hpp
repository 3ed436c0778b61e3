// The guard: a step that would raise the loss is replaced by a better one in its direction (Alg.
// 1's line search, by powers of two).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "loss/scores.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

/// How a step was shortened. Not at all, as long as the loss falls: then a step is Alg. 3's.
struct StepScale {
  int step_halvings =
      0;  // all values times 2^-step; negative where the base's part alone was too long
  int base_halvings = 0;  // the base class moves by 2^-base of them

  bool operator==(const StepScale&) const = default;
};

/// The trees of a step before they move the scores, and the node of every row in each: or one
/// shared tree, and the leaf of every row.
struct Proposal {
  std::vector<Tree> trees;
  std::vector<std::span<const std::uint16_t>> node_of_row;
};

/// What a proposal's trees move when shortened so, by tree and node: their class, and the base
/// class; a shared tree's by class and leaf. Values are rounded such that all are multiples of
/// 2^-32.
struct Values {
  std::vector<std::vector<double>> tree_class;
  std::vector<std::vector<double>> base;
};
Values values_of(const std::vector<Tree>& trees, StepScale by);

/// The loss after a step that is shortened so.
using LossAt = std::function<double(StepScale)>;

struct LineSearchResult {
  StepScale by;
  double loss = 0.0;
};

/// Whether the loss falls when the base class's part, halved n times before, is halved once more;
/// none if that is only to be known from the losses.
using FallsIfHalvedAgain = std::function<std::optional<bool>(int)>;

/// Whether the part of the base class, which several trees move, is shortened as long as the loss
/// falls: in no case, where the full step would raise the loss, or at every step.
enum class ScaleBase { never, if_loss_rises, always };
ScaleBase when_to_scale_base(const Proposal& proposal, bool base_line_search);

/// The step to take in a direction, after which the loss is not larger than before.
LineSearchResult line_search(const LossAt& loss_at, const FallsIfHalvedAgain& falls_if_halved_again,
                             double loss_before, ScaleBase when);

/// Whether any tree has a split.
bool has_split(const Proposal& proposal);

bool is_multi_output(const Proposal& proposal);

/// Moves the scores by the trees such that the loss, with rows weighed as the trees have seen them,
/// does not rise; and gives the trees the values that were used.
StepScale apply_with_line_search(Scores& scores, const Labels& labels, RowWeights weight,
                                 Proposal& proposal, bool base_line_search, int n_threads);

}  // namespace abcgbm
