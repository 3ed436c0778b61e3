#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/fill.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "boost/iteration.hpp"
#include "boost/validation.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace abcgbm {
namespace {

constexpr std::size_t kRowsPerPoll = 1024;
constexpr std::size_t kMaxMultiOutputRows = std::size_t{1} << 30;  // their sums fit into 32 bits
constexpr std::size_t kManyScores = std::size_t{1} << 20;          // 16 MB with the residuals

/// Returns freed memory to the system. What was used to read, sort and code the table, about as
/// much as the codes, would otherwise stay allocated during training.
void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void check_groups(const Layout& layout, const FeatureRules& rules) {
  for (const auto& group : rules.groups) {
    for (const std::uint32_t f : group) {
      require(f < layout.n_features(), "interaction_groups: 0 to n_features - 1");
    }
  }
}

void check_rows(const Binned* binned, const Labels* labels, int n_threads) {
  require(binned != nullptr, "binned: a Binned");
  require(labels != nullptr, "labels: a Labels");
  require(labels->n_rows() == binned->n_rows, "labels: one for each row of the table");
  require(binned->layout.n_features() > 0, "binned: at least one feature");
  require(n_threads >= 1, "n_threads: at least 1");
}

using RawScores = std::optional<Matrix<double>>;

/// Scores of shape (n_classes, n_rows), or (n_classes, 1) for all rows, in row order.
LargeVector<double> start_by_row(const Matrix<double>& raw, std::size_t n_rows,
                                 const Storage& storage) {
  auto scores = reserved<double>(raw.shape(0) * n_rows, storage);
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i % kRowsPerPoll == 0) check_interrupt();
    const std::size_t column = raw.shape(1) == 1 ? 0 : i;
    for (std::size_t k = 0; k < raw.shape(0); ++k) {
      scores.push_back(raw.data()[k * raw.shape(1) + column]);
    }
  }
  return scores;
}

/// The initial scores: multiples of 2^-32, so that sums are exact; zeros if none are given.
LargeVector<double> start_scores(const Labels& labels, const RawScores& raw, const Storage& storage,
                                 ScoreOrder order = ScoreOrder::by_class) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  if (!raw) return zeros<double>(n_classes * labels.n_rows(), storage);
  require(raw->shape(0) == n_classes && (raw->shape(1) == labels.n_rows() || raw->shape(1) == 1),
          "raw: of shape (n_classes, n_rows), or (n_classes, 1)");
  for (std::size_t i = 0; i < raw->size(); ++i) {
    if (i % kFilledAtOnce == 0) check_interrupt();
    require(std::abs(raw->data()[i]) < 0x1p20 && raw->data()[i] == on_leaf_grid(raw->data()[i]),
            "raw: multiples of 2^-32, below 2^20 in magnitude");
  }
  if (order == ScoreOrder::by_row) return start_by_row(*raw, labels.n_rows(), storage);
  if (raw->shape(1) == labels.n_rows()) {
    return copied(std::span(raw->data(), raw->size()), storage);
  }
  auto scores = reserved<double>(n_classes * labels.n_rows(), storage);
  for (std::size_t k = 0; k < n_classes; ++k) append(scores, labels.n_rows(), raw->data()[k]);
  return scores;
}

std::unique_ptr<Trainer> make_trainer(std::shared_ptr<Binned> binned,
                                      std::shared_ptr<Labels> labels, const TrainParams& params,
                                      int n_threads, const RawScores& raw, const Storage& storage) {
  const Unlocked unlocked(kTraining);
  check_rows(binned.get(), labels.get(), n_threads);
  check_groups(binned->layout, params.grow.features);
  require(!params.multi_output || labels->shard.total_rows < kMaxMultiOutputRows,
          "multi-output trees need fewer than 2^30 rows");
  const std::size_t n_scores = labels->n_rows() * static_cast<std::size_t>(labels->n_classes);
  if (n_scores >= kManyScores) give_back_memory();
  LargeVector<double> start = start_scores(*labels, raw, storage, order_of(params));
  return std::make_unique<Trainer>(std::move(binned), std::move(labels), std::move(start), params,
                                   n_threads);
}

std::unique_ptr<Validation> make_validation(std::shared_ptr<Binned> binned,
                                            std::shared_ptr<Labels> labels, int n_threads,
                                            const RawScores& raw, const Storage& storage) {
  const Unlocked unlocked(kTraining);
  check_rows(binned.get(), labels.get(), n_threads);
  LargeVector<double> start = start_scores(*labels, raw, storage);
  return std::make_unique<Validation>(std::move(binned), std::move(labels), std::move(start),
                                      n_threads);
}

bool fits(const TreeNode& node, const Layout& layout) {
  const auto f = static_cast<std::size_t>(node.feature);
  if (f >= layout.n_features()) return false;
  const Feature& feature = layout.features[f];
  if (!feature.is_categorical) return node.bin < feature.missing_code() && node.left_set.empty();
  return node.left_set.size() == empty_set(feature.missing_code()).size();
}

/// Checks that the trees have the bins and classes of this table.
void add_result_py(Validation& validation, const IterationResult& result) {
  const Layout& layout = validation.binned().layout;
  for (const Tree& tree : result.trees) {
    require(std::max(tree.tree_class, tree.base.number_or(0)) < validation.labels().n_classes,
            "result: of a training with other classes");
    require(!tree.is_multi_output() || result.n_classes == validation.labels().n_classes,
            "result: of a training with other classes");
    for (const TreeNode& node : tree.nodes) {
      require(node.is_leaf() || fits(node, layout), "result: of a training with other bins");
    }
  }
  if (!result.changed) return;
  const Unlocked unlocked(kTraining);
  validation.add(result.trees);
}

/// Transposes an array of n_rows rows.
template <class T, class From>
LargeVector<T> transposed(std::span<const From> values, std::size_t n_rows) {
  const std::size_t n_columns = values.size() / n_rows;
  LargeVector<T> out = zeros<T>(values.size());
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i % kRowsPerPoll == 0) check_interrupt();
    for (std::size_t k = 0; k < n_columns; ++k) out[k * n_rows + i] = values[i * n_columns + k];
  }
  return out;
}

/// Copies scores or residuals of either order to an array of shape (n_classes, n_rows).
template <class T, class From>
nb::ndarray<nb::numpy, T> copy_by_class(std::span<const T> by_class, std::span<const From> by_row,
                                        const Labels& labels) {
  LargeVector<T> copy;
  {
    const Unlocked unlocked(kTraining);
    copy = by_row.empty() ? copied(by_class) : transposed<T>(by_row, labels.n_rows());
  }
  return to_numpy(std::move(copy), {static_cast<std::size_t>(labels.n_classes), labels.n_rows()});
}

nb::ndarray<nb::numpy, double> raw_py(const Trainer& trainer) {
  const std::span<const double> raw(trainer.scores().raw);
  const bool is_by_row = trainer.scores().order == ScoreOrder::by_row;
  return copy_by_class(raw, is_by_row ? raw : std::span<const double>(), trainer.labels());
}

std::pair<nb::ndarray<nb::numpy, std::int64_t>, int> residuals_py(const Trainer& trainer) {
  const Scores& scores = trainer.scores();
  return {
      copy_by_class(std::span(scores.residual), std::span(scores.row_residual), trainer.labels()),
      scores.exponent};
}

constexpr const char* kRawDoc = "A copy of the scores, of shape (n_classes, n_rows).";
constexpr const char* kLossDoc = "The loss of all rows.";

bool all_differ(std::vector<int> values) {
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) == values.end();
}

constexpr int kNoBase = -1;  // in Python

std::vector<BaseClass> to_bases(const std::vector<int>& given) {
  std::vector<BaseClass> bases;
  for (const int k : given) bases.push_back(k == kNoBase ? BaseClass() : BaseClass(k));
  return bases;
}

void check_classes(const std::vector<int>& classes, const std::vector<int>& bases, int n_classes) {
  const auto is_class = [&](int k) { return k >= 0 && k < n_classes; };
  require(std::ranges::all_of(classes, is_class) && all_differ(classes),
          "classes: distinct, 0 to n_classes - 1");
  const bool are_classes =
      !bases.empty() && std::ranges::all_of(bases, is_class) && all_differ(bases);
  require(are_classes || bases == std::vector<int>{kNoBase},
          "bases: distinct classes, or [-1] for none");
  require(!classes.empty() && !(bases.size() == 1 && classes == bases),
          "classes: at least one that is not the base");
}

void check_plan(const IterationPlan& plan, int n_classes) {
  require(plan.bases.front().exists() || !plan.base_derivatives,
          "base derivatives need a base class");
  require(plan.bases.size() == 1 || plan.base_derivatives, "a search needs base derivatives");
  require(plan.bases.size() == 1 || plan.classes.size() == static_cast<std::size_t>(n_classes),
          "a search grows trees for all classes");
  require(plan.leaf_scale > 0.0 && plan.leaf_scale <= 1.0, "leaf_scale: above 0, to 1");
}

void check_multi_output(const IterationPlan& plan, int n_classes) {
  require(plan.classes.size() == static_cast<std::size_t>(n_classes) &&
              !plan.bases.front().exists() && !plan.base_derivatives,
          "a multi-output tree needs all classes and no base class");
}

IterationResult train_iteration_py(Trainer& trainer, const std::vector<int>& classes,
                                   const std::vector<int>& bases, bool base_derivatives,
                                   double leaf_scale, std::uint64_t iteration) {
  check_classes(classes, bases, trainer.labels().n_classes);
  const IterationPlan plan{.classes = classes,
                           .bases = to_bases(bases),
                           .base_derivatives = base_derivatives,
                           .leaf_scale = leaf_scale,
                           .iteration = iteration};
  check_plan(plan, trainer.labels().n_classes);
  if (trainer.is_multi_output()) check_multi_output(plan, trainer.labels().n_classes);
  const Unlocked unlocked(kTraining);
  return trainer.train_iteration(plan);
}

/// Collects one field of all nodes of all trees.
template <class T, class Field>
nb::ndarray<nb::numpy, T> gather(const IterationResult& result, const Field& field) {
  std::vector<T> out;
  for (const Tree& tree : result.trees) {
    for (const TreeNode& node : tree.nodes) out.push_back(static_cast<T>(field(node)));
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::uint64_t> left_sets(const IterationResult& result) {
  std::vector<std::uint64_t> out;
  for (const Tree& tree : result.trees) {
    for (const TreeNode& node : tree.nodes) {
      out.insert(out.end(), node.left_set.begin(), node.left_set.end());
    }
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::int64_t> tree_starts(const IterationResult& result) {
  std::vector<std::int64_t> out{0};
  for (const Tree& tree : result.trees) {
    out.push_back(out.back() + static_cast<std::int64_t>(tree.nodes.size()));
  }
  return to_numpy(std::move(out));
}

nb::ndarray<nb::numpy, std::int32_t> tree_classes(const IterationResult& result) {
  std::vector<std::int32_t> out;
  for (const Tree& tree : result.trees) out.push_back(tree.tree_class);
  return to_numpy(std::move(out));
}

/// Collects the values of multi-output trees, of shape (n, n_classes).
template <class T>
nb::ndarray<nb::numpy, T> by_class(const IterationResult& result,
                                   std::vector<T> MultiOutputValues::* field) {
  std::vector<T> out;
  for (const Tree& tree : result.trees) {
    const std::vector<T>& values = tree.multi_output.*field;
    out.insert(out.end(), values.begin(), values.end());
  }
  const auto n_classes = static_cast<std::size_t>(result.n_classes);
  const std::size_t n = out.size() / n_classes;
  return to_numpy(std::move(out), {n, n_classes});
}

nb::ndarray<nb::numpy, std::int32_t> gain_features(const IterationResult& result) {
  std::vector<std::int32_t> out;
  for (const Tree& tree : result.trees) {
    out.insert(out.end(), tree.multi_output.feature.begin(), tree.multi_output.feature.end());
  }
  return to_numpy(std::move(out));
}

/// The array owns its memory, without a reference to the result.
constexpr auto kOwned = nb::rv_policy::automatic;

template <class T, class Field>
void node_property(nb::class_<IterationResult>& result_class, const char* name,
                   const Field& field) {
  result_class.def_prop_ro(
      name, [field](const IterationResult& result) { return gather<T>(result, field); }, kOwned);
}

void bind_nodes(nb::class_<IterationResult>& result_class) {
  node_property<std::int32_t>(result_class, "feature", [](const TreeNode& n) { return n.feature; });
  node_property<std::int32_t>(result_class, "bin", [](const TreeNode& n) { return n.bin; });
  node_property<std::int32_t>(result_class, "left", [](const TreeNode& n) { return n.left; });
  node_property<std::uint8_t>(result_class, "missing_left",
                              [](const TreeNode& n) { return n.missing_left; });
  node_property<double>(result_class, "value", [](const TreeNode& n) { return n.value; });
  node_property<double>(result_class, "gain", [](const TreeNode& n) { return n.gain; });
  node_property<double>(result_class, "weight", [](const TreeNode& n) { return n.weight; });
  node_property<std::int32_t>(result_class, "left_set_size",
                              [](const TreeNode& n) { return n.left_set.size(); });
  result_class.def_prop_ro(
      "left_set", &left_sets, kOwned,
      "The sets of codes that go left in categorical splits, 64 codes to a word.");
}

void bind_iteration_result(nb::module_& m) {
  nb::class_<IterationResult> result_class(m, "IterationResult",
                                           "The trees of an iteration as flat arrays.");
  bind_nodes(result_class);
  result_class
      .def_prop_ro(
          "leaf_value",
          [](const IterationResult& s) { return by_class(s, &MultiOutputValues::of_leaf); }, kOwned,
          "The leaf values of a multi-output tree, in the order of the nodes, by class.")
      .def_prop_ro("gain_feature", &gain_features, kOwned,
                   "The split features of a multi-output tree, ascending.")
      .def_prop_ro(
          "class_gain",
          [](const IterationResult& s) { return by_class(s, &MultiOutputValues::gain); }, kOwned,
          "The gain of all splits on each of them, by class.")
      .def_prop_ro("tree_start", &tree_starts, kOwned)
      .def_prop_ro("tree_class", &tree_classes, kOwned)
      .def_prop_ro(
          "base", [](const IterationResult& s) { return s.base.number_or(kNoBase); },
          "The base class; -1 without one.")
      .def_ro(
          "candidate_losses", &IterationResult::candidate_losses,
          "The loss after the step of each candidate for the base class, if there were several.")
      .def_prop_ro(
          "base_scale",
          [](const IterationResult& s) {
            return s.trees.empty() ? 1.0 : s.trees.front().base_scale;
          },
          "The fraction of the trees' values by which the base class moves.")
      .def_prop_ro(
          "n_halvings", [](const IterationResult& s) { return s.step_scale.step_halvings; },
          "How often the line search halved the step; negative: doubled it.")
      .def_ro("changed", &IterationResult::changed, "Whether the iteration changed any score.");
}

}  // namespace

void bind_training(nb::module_& m) {
  using namespace nb::literals;
  bind_iteration_result(m);
  nb::class_<Trainer>(m, "Trainer", "The state of training.")
      .def(nb::new_(&make_trainer), "binned"_a, "labels"_a, "params"_a, "n_threads"_a,
           "raw"_a.noconvert() = nb::none(), "storage"_a = Storage())
      .def("train_iteration", &train_iteration_py, "classes"_a, "bases"_a, "base_derivatives"_a,
           "leaf_scale"_a, "iteration"_a = 0,
           "Grow the trees of an iteration, choose among the bases, and update the scores.")
      .def("residuals", &residuals_py,
           "A copy of the integer residuals, which are multiples of 2^-S, and S.")
      .def("raw", &raw_py, kRawDoc)
      .def(
          "class_losses",
          [](const Trainer& t) { return to_numpy(std::vector<double>(t.scores().class_losses)); },
          "The loss summed over the rows of each class.")
      .def("loss", [](const Trainer& t) { return t.scores().loss; }, kLossDoc);
  nb::class_<Validation>(m, "Validation", "Scores of validation rows, updated tree by tree.")
      .def(nb::new_(&make_validation), "binned"_a, "labels"_a, "n_threads"_a,
           "raw"_a.noconvert() = nb::none(), "storage"_a = Storage())
      .def("add", &add_result_py, "result"_a, "Update the scores by the trees of an iteration.")
      .def(
          "leading", [](const Validation& v) { return to_numpy(copied(std::span(v.leading()))); },
          "The class of each row's largest score.")
      .def(
          "raw",
          [](const Validation& v) {
            return copy_by_class(std::span(v.raw()), std::span<const double>(), v.labels());
          },
          kRawDoc)
      .def("loss", &Validation::loss, kLossDoc);
}

}  // namespace abcgbm
