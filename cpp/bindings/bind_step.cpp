#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>

#include "base/fill.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "boost/step.hpp"
#include "boost/validation.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace abcgbm {
namespace {

/// Weights may have any stride: where all are 1, one is enough.
using Weights = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::device::cpu>;

constexpr std::size_t kManyScores = std::size_t{1} << 20;  // 16 MB with the residuals

/// What has been freed while the table was read, sorted and coded would stay with the process
/// beside the arrays of training: it is about as much as the codes.
void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void check_groups(const Binned& binned, const TrainParams& params) {
  for (const auto& group : params.grow.features.groups) {
    for (const std::uint32_t f : group) {
      require(f < binned.n_features(), "interaction_groups: 0 to n_features - 1");
    }
  }
}

void check_labels(const Binned& binned, const Labels& labels) {
  require(labels.y.size() == binned.n_rows, "y: one for each row of the table");
  require(binned.n_rows > 0 && binned.n_rows < (std::size_t{1} << 32),
          "a table for training has 1 to 2^32 - 1 rows");
  require(binned.n_features() > 0, "a table for training has at least one feature");
  require(labels.n_classes >= 2, "n_classes: at least 2");
  require(labels.unit > 0.0 && std::isfinite(labels.unit), "unit: a number above 0");
  for (const std::int32_t k : labels.y) {
    require(k >= 0 && k < labels.n_classes, "y: 0 to n_classes - 1");
  }
}

/// Weights of 1 need no array.
void set_weights(Labels& labels, const Weights& weight) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  require(weight.size() == labels.n_rows(), "weight: one for each row of the table");
  const auto of = weight.view();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < labels.n_rows(); ++i) {
    require(of(i) >= 1, "weight: at least 1");
    total += static_cast<std::uint64_t>(of(i));
    require(total <= kMost, "weight: the sum is at most 2^40");
  }
  labels.total_bits = static_cast<int>(std::bit_width(total));
  if (total == labels.n_rows()) return;
  labels.weight.resize(labels.n_rows());
  for (std::size_t i = 0; i < labels.n_rows(); ++i) labels.weight[i] = of(i);
}

Labels make_labels(const Binned* binned, const Vector<std::int32_t>& y, const Weights& weight,
                   double unit, int n_classes) {
  Labels labels{
      .y = copy_of(y), .weight = {}, .unit = unit, .n_classes = n_classes, .total_bits = 0};
  require(binned != nullptr, "binned: a Binned");
  check_labels(*binned, labels);
  set_weights(labels, weight);
  return labels;
}

using RawScores = std::optional<Matrix<double>>;

/// The scores to start from: multiples of 2^-32, so that sums are exact; zeros if none are given.
std::vector<double> start_scores(const Labels& labels, const RawScores& raw) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  if (!raw) return filled(n_classes * labels.n_rows(), 0.0);
  require(raw->shape(0) == n_classes && (raw->shape(1) == labels.n_rows() || raw->shape(1) == 1),
          "raw: of shape (n_classes, n_rows), or (n_classes, 1)");
  for (std::size_t i = 0; i < raw->size(); ++i) {
    if (i % kFilledAtOnce == 0) check_interrupt();
    require(std::abs(raw->data()[i]) < 0x1p20 && raw->data()[i] == on_leaf_grid(raw->data()[i]),
            "raw: multiples of 2^-32, of size below 2^20");
  }
  if (raw->shape(1) == labels.n_rows()) return copied(std::span(raw->data(), raw->size()));
  std::vector<double> scores;
  scores.reserve(n_classes * labels.n_rows());
  for (std::size_t k = 0; k < n_classes; ++k) append(scores, labels.n_rows(), raw->data()[k]);
  return scores;
}

std::unique_ptr<Trainer> make_trainer(std::shared_ptr<Binned> binned, const Vector<std::int32_t>& y,
                                      const Weights& weight, double unit, int n_classes,
                                      const TrainParams& params, int n_threads,
                                      const RawScores& raw) {
  const Unlocked unlocked(kTraining);
  Labels labels = make_labels(binned.get(), y, weight, unit, n_classes);
  check_groups(*binned, params);
  require(n_threads >= 1, "n_threads: at least 1");
  if (labels.n_rows() * static_cast<std::size_t>(n_classes) >= kManyScores) give_back_memory();
  std::vector<double> start = start_scores(labels, raw);
  return std::make_unique<Trainer>(std::move(binned), std::move(labels), std::move(start), params,
                                   n_threads);
}

std::unique_ptr<Validation> make_validation(std::shared_ptr<Binned> binned,
                                            const Vector<std::int32_t>& y, const Weights& weight,
                                            double unit, int n_classes, int n_threads,
                                            const RawScores& raw) {
  const Unlocked unlocked(kTraining);
  Labels labels = make_labels(binned.get(), y, weight, unit, n_classes);
  std::vector<double> start = start_scores(labels, raw);
  require(n_threads >= 1, "n_threads: at least 1");
  return std::make_unique<Validation>(std::move(binned), std::move(labels), std::move(start),
                                      n_threads);
}

bool fits(const TreeNode& node, const Binned& binned) {
  const auto f = static_cast<std::size_t>(node.feature);
  if (f >= binned.n_features()) return false;
  const Feature& feature = binned.features[f];
  if (!feature.is_categorical) return node.bin < feature.missing_code() && node.left_set.empty();
  return node.left_set.size() == empty_set(feature.missing_code()).size();
}

/// A step of another training could have other bins and classes.
void add_step_py(Validation& validation, const StepResult& step) {
  const Binned& binned = validation.binned();
  for (const Tree& tree : step.trees) {
    require(std::max(tree.tree_class, tree.base) < validation.labels().n_classes,
            "step: of a training with other classes");
    for (const TreeNode& node : tree.nodes) {
      require(node.is_leaf() || fits(node, binned), "step: of a training with other bins");
    }
  }
  if (!step.changed) return;
  const Unlocked unlocked(kTraining);
  validation.add(step.trees);
}

/// A copy of scores or residuals, of shape (n_classes, n_rows).
template <class T>
nb::ndarray<nb::numpy, T> copy_by_class(const std::vector<T>& values, const Labels& labels) {
  std::vector<T> copy;
  {
    const Unlocked unlocked(kTraining);
    copy = copied(std::span(values));
  }
  return to_numpy(std::move(copy), {static_cast<std::size_t>(labels.n_classes), labels.n_rows()});
}

constexpr const char* kRawDoc = "A copy of the scores, of shape (n_classes, n_rows).";
constexpr const char* kLossDoc = "The loss of all rows.";

/// Everything Python may pass; checked by make_params.
struct ParamArguments {
  int max_leaf_nodes;
  int max_depth;
  std::int64_t min_weight;
  double min_gain;
  double learning_rate;
  bool hessian_split;
  double l2_regularization;
  double min_hessian_leaf;
  double categorical_smoothing;
  double subsample;
  std::size_t max_features;
  std::size_t max_path_features;
  const std::vector<std::vector<std::uint32_t>>& interaction_groups;
  std::uint64_t seed;
};

bool is_amount(double x) { return std::isfinite(x) && x >= 0.0; }

TrainParams make_params(const ParamArguments& given) {
  // Node numbers of a tree are kept in 16 bits.
  require(given.max_leaf_nodes >= 2 && given.max_leaf_nodes <= 32768, "max_leaf_nodes: 2 to 32768");
  require(given.max_depth >= 0, "max_depth: 0 (no bound) or more");
  require(given.min_weight >= 1, "min_weight: at least 1");
  require(is_amount(given.min_gain), "min_gain: at least 0");
  require(given.learning_rate > 0.0 && given.learning_rate <= 1.0, "learning_rate: above 0, to 1");
  require(is_amount(given.l2_regularization), "l2_regularization: at least 0");
  require(is_amount(given.min_hessian_leaf), "min_hessian_leaf: at least 0");
  require(is_amount(given.categorical_smoothing), "categorical_smoothing: at least 0");
  require(given.subsample > 0.0 && given.subsample <= 1.0, "subsample: above 0, to 1");
  return {.grow = {.max_leaf_nodes = given.max_leaf_nodes,
                   .max_depth = given.max_depth,
                   .min_gain = given.min_gain,
                   .rules = {.min_weight = given.min_weight},
                   .features = {.max_features = given.max_features,
                                .max_path_features = given.max_path_features,
                                .groups = given.interaction_groups}},
          .split_weight = given.hessian_split ? SplitWeight::hessian : SplitWeight::one,
          .learning_rate = given.learning_rate,
          .l2_regularization = given.l2_regularization,
          .min_hessian_leaf = given.min_hessian_leaf,
          .categorical_smoothing = given.categorical_smoothing,
          .subsample = given.subsample,
          .seed = given.seed};
}

bool all_differ(std::vector<int> values) {
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) == values.end();
}

void check_plan(const StepPlan& plan, int n_classes) {
  const auto is_class = [&](int k) { return k >= 0 && k < n_classes; };
  require(std::ranges::all_of(plan.classes, is_class) && all_differ(plan.classes),
          "classes: different ones, 0 to n_classes - 1");
  const bool has_none = plan.bases == std::vector<int>{-1};
  require(has_none || (!plan.bases.empty() && std::ranges::all_of(plan.bases, is_class) &&
                       all_differ(plan.bases)),
          "bases: different classes, or [-1] for none");
  require(!(has_none && plan.base_derivatives), "base derivatives need a base class");
  require(plan.bases.size() == 1 || plan.base_derivatives, "a search needs base derivatives");
  require(plan.bases.size() == 1 || plan.classes.size() == static_cast<std::size_t>(n_classes),
          "a search grows trees for all classes");
  require(!plan.classes.empty() && !(plan.bases.size() == 1 && plan.classes == plan.bases),
          "classes: at least one that is not the base");
  require(plan.leaf_scale > 0.0 && plan.leaf_scale <= 1.0, "leaf_scale: above 0, to 1");
}

StepResult step_py(Trainer& trainer, const std::vector<int>& classes, const std::vector<int>& bases,
                   bool base_derivatives, double leaf_scale, std::uint64_t step) {
  const StepPlan plan{.classes = classes,
                      .bases = bases,
                      .base_derivatives = base_derivatives,
                      .leaf_scale = leaf_scale,
                      .step = step};
  check_plan(plan, trainer.labels().n_classes);
  const Unlocked unlocked(kTraining);
  return trainer.step(plan);
}

/// One field of all nodes of all trees, end to end.
template <class T, class Field>
nb::ndarray<nb::numpy, T> gather(const StepResult& step, const Field& field) {
  std::vector<T> out;
  for (const Tree& tree : step.trees) {
    for (const TreeNode& node : tree.nodes) out.push_back(static_cast<T>(field(node)));
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::uint64_t> left_sets(const StepResult& step) {
  std::vector<std::uint64_t> out;
  for (const Tree& tree : step.trees) {
    for (const TreeNode& node : tree.nodes) {
      out.insert(out.end(), node.left_set.begin(), node.left_set.end());
    }
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::int64_t> tree_starts(const StepResult& step) {
  std::vector<std::int64_t> out{0};
  for (const Tree& tree : step.trees) {
    out.push_back(out.back() + static_cast<std::int64_t>(tree.nodes.size()));
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::int32_t> tree_classes(const StepResult& step) {
  std::vector<std::int32_t> out;
  for (const Tree& tree : step.trees) out.push_back(tree.tree_class);
  return to_numpy(std::move(out));
}

/// An array that owns its memory: no reference to the step is kept.
constexpr auto kOwned = nb::rv_policy::automatic;

template <class T, class Field>
void node_property(nb::class_<StepResult>& step_class, const char* name, const Field& field) {
  step_class.def_prop_ro(
      name, [field](const StepResult& step) { return gather<T>(step, field); }, kOwned);
}

void bind_step_result(nb::module_& m) {
  nb::class_<StepResult> step_class(m, "Step", "The trees of one step as flat arrays.");
  node_property<std::int32_t>(step_class, "feature", [](const TreeNode& n) { return n.feature; });
  node_property<std::int32_t>(step_class, "bin", [](const TreeNode& n) { return n.bin; });
  node_property<std::int32_t>(step_class, "left", [](const TreeNode& n) { return n.left; });
  node_property<std::uint8_t>(step_class, "missing_left",
                              [](const TreeNode& n) { return n.missing_left; });
  node_property<double>(step_class, "value", [](const TreeNode& n) { return n.value; });
  node_property<double>(step_class, "gain", [](const TreeNode& n) { return n.gain; });
  node_property<double>(step_class, "weight", [](const TreeNode& n) { return n.weight; });
  node_property<std::int32_t>(step_class, "left_set_size",
                              [](const TreeNode& n) { return n.left_set.size(); });
  step_class
      .def_prop_ro("left_set", &left_sets, kOwned,
                   "The sets of codes that go left in categorical splits, 64 codes to a word.")
      .def_prop_ro("tree_start", &tree_starts, kOwned)
      .def_prop_ro("tree_class", &tree_classes, kOwned)
      .def_ro("base", &StepResult::base, "The base class; -1 without one.")
      .def_ro("candidate_losses", &StepResult::candidate_losses,
              "The loss after the step of each base class tried, if there were several.")
      .def_prop_ro(
          "base_scale",
          [](const StepResult& s) { return s.trees.empty() ? 1.0 : s.trees.front().base_scale; },
          "The base class moves by this part of the trees' values.")
      .def_prop_ro(
          "n_halvings", [](const StepResult& s) { return s.shortening.step; },
          "How often the guard halved the step.")
      .def_ro("changed", &StepResult::changed, "Whether the step moved any score.");
}

}  // namespace

void bind_step(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<TrainParams>(m, "TrainParams", "How trees are grown.")
      .def(
          "__init__",
          [](TrainParams* self, int max_leaf_nodes, int max_depth, std::int64_t min_weight,
             double min_gain, double learning_rate, bool hessian_split, double l2_regularization,
             double min_hessian_leaf, double categorical_smoothing, double subsample,
             std::size_t max_features, std::size_t max_path_features,
             const std::vector<std::vector<std::uint32_t>>& interaction_groups,
             std::uint64_t seed) {
            new (self) TrainParams(make_params(
                {max_leaf_nodes, max_depth, min_weight, min_gain, learning_rate, hessian_split,
                 l2_regularization, min_hessian_leaf, categorical_smoothing, subsample,
                 max_features, max_path_features, interaction_groups, seed}));
          },
          nb::kw_only(), "max_leaf_nodes"_a = 20, "max_depth"_a = 0, "min_weight"_a = 10,
          "min_gain"_a = 0.0, "learning_rate"_a = 0.1, "hessian_split"_a = false,
          "l2_regularization"_a = 0.0, "min_hessian_leaf"_a = 0.0, "categorical_smoothing"_a = 10.0,
          "subsample"_a = 1.0, "max_features"_a = 0, "max_path_features"_a = 0,
          "interaction_groups"_a = std::vector<std::vector<std::uint32_t>>(), "seed"_a = 0);
  bind_step_result(m);
  nb::class_<Trainer>(m, "Trainer", "The state of a training.")
      .def(nb::new_(&make_trainer), "binned"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "unit"_a,
           "n_classes"_a, "params"_a, "n_threads"_a, "raw"_a.noconvert() = nb::none())
      .def("step", &step_py, "classes"_a, "bases"_a, "base_derivatives"_a, "leaf_scale"_a,
           "step"_a = 0, "Grow the trees of a step, choose among the bases, and move the scores.")
      .def(
          "residuals",
          [](const Trainer& t) {
            return std::pair(copy_by_class(t.scores().residual, t.labels()), t.scores().exponent);
          },
          "A copy of the integer residuals, and S: they are multiples of 2^-S.")
      .def(
          "raw", [](const Trainer& t) { return copy_by_class(t.scores().raw, t.labels()); },
          kRawDoc)
      .def(
          "class_losses",
          [](const Trainer& t) { return to_numpy(std::vector<double>(t.scores().class_losses)); },
          "The part of the loss that the rows of each class make.")
      .def("loss", [](const Trainer& t) { return t.scores().loss; }, kLossDoc);
  nb::class_<Validation>(m, "Validation", "Rows that follow the trees.")
      .def(nb::new_(&make_validation), "binned"_a, "y"_a.noconvert(), "weight"_a.noconvert(),
           "unit"_a, "n_classes"_a, "n_threads"_a, "raw"_a.noconvert() = nb::none())
      .def("add", &add_step_py, "step"_a, "Move the scores by the trees of a step.")
      .def(
          "leading",
          [](const Validation& v) { return to_numpy(std::vector<std::int32_t>(v.leading())); },
          "The class of each row's largest score.")
      .def(
          "raw", [](const Validation& v) { return copy_by_class(v.raw(), v.labels()); }, kRawDoc)
      .def("loss", &Validation::loss, kLossDoc);
}

}  // namespace abcgbm
