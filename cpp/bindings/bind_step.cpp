#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <memory>
#include <stdexcept>

#include "arrays.hpp"
#include "bindings.hpp"
#include "step.hpp"

namespace abcgbm {
namespace {

void check_labels(const Binned& binned, const Labels& labels) {
  if (labels.y.size() != binned.n_rows || labels.weight.size() != binned.n_rows) {
    throw std::invalid_argument("y and weight: one for each row of the table");
  }
  if (binned.n_rows == 0 || binned.n_rows >= (std::size_t{1} << 32)) {
    throw std::invalid_argument("a table for training has 1 to 2^32 - 1 rows");
  }
  if (labels.n_classes < 2) throw std::invalid_argument("n_classes: at least 2");
  for (const std::int32_t k : labels.y) {
    if (k < 0 || k >= labels.n_classes) throw std::invalid_argument("y: 0 to n_classes - 1");
  }
}

int bit_length_of_sum(const std::vector<std::int64_t>& weight) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t total = 0;
  for (const std::int64_t w : weight) {
    if (w < 1) throw std::invalid_argument("weight: at least 1");
    total += static_cast<std::uint64_t>(w);
    if (total > kMost) throw std::invalid_argument("weight: the sum is at most 2^40");
  }
  return static_cast<int>(std::bit_width(total));
}

std::unique_ptr<Trainer> make_trainer(std::shared_ptr<Binned> binned, const Vector<std::int32_t>& y,
                                      const Vector<std::int64_t>& weight, double unit,
                                      int n_classes, const GrowParams& params, int n_threads) {
  Labels labels{.y = copy_of(y),
                .weight = copy_of(weight),
                .unit = unit,
                .n_classes = n_classes,
                .total_bits = 0};
  check_labels(*binned, labels);
  labels.total_bits = bit_length_of_sum(labels.weight);
  if (n_threads < 1) throw std::invalid_argument("n_threads: at least 1");
  const nb::gil_scoped_release release;
  return std::make_unique<Trainer>(std::move(binned), std::move(labels), params, n_threads);
}

GrowParams make_params(int max_leaf_nodes, int max_depth, std::int64_t min_weight, double min_gain,
                       double learning_rate) {
  // Node numbers of a tree are kept in 16 bits.
  if (max_leaf_nodes < 2 || max_leaf_nodes > 32768) {
    throw std::invalid_argument("max_leaf_nodes: 2 to 32768");
  }
  if (min_weight < 1) throw std::invalid_argument("min_weight: at least 1");
  return {.max_leaf_nodes = max_leaf_nodes,
          .max_depth = max_depth,
          .min_gain = min_gain,
          .learning_rate = learning_rate,
          .rules = {.min_weight = min_weight}};
}

StepResult step_py(Trainer& trainer, const std::vector<int>& classes, int base,
                   bool base_derivatives, double leaf_scale) {
  const int n_classes = trainer.labels().n_classes;
  if (base < -1 || base >= n_classes || (base < 0 && base_derivatives)) {
    throw std::invalid_argument("base: a class, or -1 for none");
  }
  for (const int k : classes) {
    if (k < 0 || k >= n_classes || k == base) throw std::invalid_argument("classes: out of range");
  }
  const nb::gil_scoped_release release;
  return trainer.step({.classes = classes,
                       .base = base,
                       .base_derivatives = base_derivatives,
                       .leaf_scale = leaf_scale});
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
  step_class.def_prop_ro("tree_start", &tree_starts, kOwned)
      .def_prop_ro("tree_class", &tree_classes, kOwned)
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
  nb::class_<GrowParams>(m, "GrowParams", "How a tree is grown.")
      .def(
          "__init__",
          [](GrowParams* self, int max_leaf_nodes, int max_depth, std::int64_t min_weight,
             double min_gain, double learning_rate) {
            new (self) GrowParams(
                make_params(max_leaf_nodes, max_depth, min_weight, min_gain, learning_rate));
          },
          nb::kw_only(), "max_leaf_nodes"_a = 20, "max_depth"_a = 0, "min_weight"_a = 10,
          "min_gain"_a = 0.0, "learning_rate"_a = 0.1);
  bind_step_result(m);
  nb::class_<Trainer>(m, "Trainer", "The state of a training.")
      .def(nb::new_(&make_trainer), "binned"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "unit"_a,
           "n_classes"_a, "params"_a, "n_threads"_a)
      .def("step", &step_py, "classes"_a, "base"_a, "base_derivatives"_a, "leaf_scale"_a,
           "Grow one tree for each class and move the scores.")
      .def(
          "raw",
          [](const Trainer& t) {
            return to_numpy(std::vector<double>(t.scores().raw),
                            {static_cast<std::size_t>(t.labels().n_classes), t.labels().n_rows()});
          },
          "A copy of the scores, of shape (n_classes, n_rows).")
      .def(
          "residuals",
          [](const Trainer& t) {
            return std::pair(
                to_numpy(std::vector<std::int64_t>(t.scores().residual),
                         {static_cast<std::size_t>(t.labels().n_classes), t.labels().n_rows()}),
                t.scores().exponent);
          },
          "A copy of the integer residuals, and S: they are multiples of 2^-S.")
      .def(
          "class_losses",
          [](const Trainer& t) { return to_numpy(std::vector<double>(t.scores().class_losses)); },
          "The part of the loss that the rows of each class make.")
      .def("loss", [](const Trainer& t) { return t.scores().loss; }, "The training loss.");
}

}  // namespace abcgbm
