#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "predict/apply.hpp"
#include "predict/explain.hpp"
#include "predict/predict.hpp"

namespace abcgbm {
namespace {

using ArraysByName = nb::typed<nb::dict, nb::str, nb::object>;
using Scores2d = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values3d = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Leaves2d = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// An array of an ensemble, which keeps it alive. A wrong dtype is an error, never a hidden copy.
template <class T>
std::span<const T> array_of(const ArraysByName& ensemble, const char* name) {
  Vector<T> array;
  if (!ensemble.contains(name) || !nb::try_cast(ensemble[name], array, false)) {
    PyErr_Format(PyExc_TypeError, "forest: %s is missing or of a wrong type", name);
    throw nb::python_error();
  }
  return span_of(array);
}

template <class T>
std::vector<T> copy_of(const ArraysByName& ensemble, const char* name) {
  const std::span<const T> array = array_of<T>(ensemble, name);
  return {array.begin(), array.end()};
}

/// The nodes of an ensemble, with indices relative to their tree.
struct NodeArrays {
  std::span<const std::int32_t> feature;
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> missing_left;
  std::span<const std::int32_t> left_set_size;
  std::span<const double> value;
  std::span<const std::int64_t> tree_start;
};

NodeArrays nodes_of(const ArraysByName& ensemble) {
  return {.feature = array_of<std::int32_t>(ensemble, "feature"),
          .threshold = array_of<double>(ensemble, "threshold"),
          .left = array_of<std::int32_t>(ensemble, "left"),
          .missing_left = array_of<std::uint8_t>(ensemble, "missing_left"),
          .left_set_size = array_of<std::int32_t>(ensemble, "left_set_size"),
          .value = array_of<double>(ensemble, "value"),
          .tree_start = array_of<std::int64_t>(ensemble, "tree_start")};
}

/// Checks every index once, so that prediction needs no checks. Children follow their parent within
/// the tree, so every traversal ends.
PackedNode pack_node(const NodeArrays& arrays, std::int64_t begin, std::int64_t end,
                     std::int64_t at, std::size_t n_features) {
  const auto i = static_cast<std::size_t>(at);
  const std::int32_t feature = arrays.feature[i];
  if (feature < 0) {
    require(std::isfinite(arrays.value[i]), "forest: leaf values must be finite");
    return {.threshold = arrays.value[i], .feature = -1, .left_and_flags = 0};
  }
  require(static_cast<std::size_t>(feature) < n_features, "forest: feature out of range");
  const std::int64_t left = begin + arrays.left[i];
  require(left > at && left + 1 < end, "forest: child out of range");
  require(!std::isnan(arrays.threshold[i]), "forest: threshold is NaN");
  return {.threshold = arrays.threshold[i],
          .feature = feature,
          .left_and_flags = static_cast<std::uint32_t>(left) * 4u +
                            (arrays.missing_left[i] != 0 ? kMissingLeft : 0u)};
}

void check_sizes(const NodeArrays& arrays, std::size_t n_trees) {
  const std::size_t n_nodes = arrays.feature.size();
  require(n_nodes < (std::size_t{1} << 30), "forest: too many nodes");
  require(arrays.threshold.size() == n_nodes && arrays.left.size() == n_nodes &&
              arrays.missing_left.size() == n_nodes && arrays.value.size() == n_nodes &&
              arrays.left_set_size.size() == n_nodes,
          "forest: node arrays differ in length");
  require(arrays.tree_start.size() == n_trees + 1 && arrays.tree_start.front() == 0 &&
              arrays.tree_start.back() == static_cast<std::int64_t>(n_nodes),
          "forest: tree_start does not match the nodes");
}

/// Every node except the root must be the child of exactly one split. Then a tree has one leaf more
/// than splits, on which the packing by regions relies, and every node is reachable.
void check_parents(std::span<const PackedNode> tree, std::size_t root) {
  std::vector<bool> has_parent(tree.size(), false);
  for (const PackedNode& node : tree) {
    if (node.is_leaf()) continue;
    for (const std::size_t child : {node.left() - root, node.left() + 1 - root}) {
      require(!has_parent[child], "forest: a node with two parents");
      has_parent[child] = true;
    }
  }
  const auto n_children = std::ranges::count(has_parent, true);
  require(static_cast<std::size_t>(n_children) + 1 == tree.size(),
          "forest: a node without a parent");
}

void pack_trees(const NodeArrays& arrays, PackedTrees& trees) {
  const std::size_t n_trees = trees.tree_class.size();
  check_sizes(arrays, n_trees);
  trees.nodes.reserve(arrays.feature.size());
  trees.root.push_back(0);
  for (std::size_t t = 0; t < n_trees; ++t) {
    const std::int64_t begin = arrays.tree_start[t];
    const std::int64_t end = arrays.tree_start[t + 1];
    require(begin < end && end <= static_cast<std::int64_t>(arrays.feature.size()),
            "forest: tree_start does not rise");
    for (std::int64_t at = begin; at < end; ++at) {
      trees.nodes.push_back(pack_node(arrays, begin, end, at, trees.n_features));
    }
    trees.root.push_back(static_cast<std::uint32_t>(end));
    check_parents(trees.tree(t), trees.root[t]);
  }
}

/// Assigns the sets of codes, which are stored end to end, to the splits in the order of the nodes.
void place_sets(std::span<const std::int32_t> sizes, PackedTrees& trees) {
  require(trees.left_set.size() < (std::size_t{1} << 32), "forest: too many categories");
  std::size_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const auto n_words = static_cast<std::uint32_t>(sizes[i]);
    require(sizes[i] > 0 && n_words <= trees.left_set.size() - start && trees.nodes[i].feature >= 0,
            "forest: left_set does not match the splits");
    const SetPlace place{.start = static_cast<std::uint32_t>(start), .n_words = n_words};
    trees.nodes[i].threshold = std::bit_cast<double>(place);
    trees.nodes[i].left_and_flags |= kIsSet;
    start += n_words;
  }
  require(start == trees.left_set.size(), "forest: left_set does not match the splits");
}

void check_classes(const PackedTrees& trees) {
  const auto n_classes = static_cast<std::int64_t>(trees.n_classes);
  require(trees.tree_base.size() == trees.tree_class.size() &&
              trees.tree_base_scale.size() == trees.tree_class.size(),
          "forest: tree arrays differ in length");
  for (std::size_t t = 0; t < trees.tree_class.size(); ++t) {
    require(trees.tree_class[t] >= kAllClasses && trees.tree_class[t] < n_classes &&
                trees.tree_base[t].number_or(0) < n_classes,
            "forest: class out of range");
    require(!trees.is_multi_output(t) || !trees.tree_base[t].exists(),
            "forest: a multi-output tree with a base class");
    require(std::isfinite(trees.tree_base_scale[t]), "forest: tree_base_scale must be finite");
  }
}

/// The leaf values of multi-output trees, of shape (n_leaves, n_classes).
std::vector<float> leaf_values_of(const ArraysByName& ensemble, std::size_t n_classes) {
  Matrix<float> values;
  if (!ensemble.contains("leaf_value") || !nb::try_cast(ensemble["leaf_value"], values, false)) {
    PyErr_SetString(PyExc_TypeError, "forest: leaf_value is missing or of a wrong type");
    throw nb::python_error();
  }
  require(values.shape(1) == n_classes, "forest: leaf_value needs a column for each class");
  std::vector<float> copy(values.data(), values.data() + values.size());
  require(std::ranges::all_of(copy, [](float value) { return std::isfinite(value); }),
          "forest: leaf values must be finite");
  return copy;
}

/// Numbers the leaves of multi-output trees.
void number_leaves(PackedTrees& trees) {
  std::size_t n = 0;
  for (std::size_t t = 0; t < trees.n_trees(); ++t) {
    if (!trees.is_multi_output(t)) continue;
    for (std::size_t i = trees.root[t]; i < trees.root[t + 1]; ++i) {
      if (trees.nodes[i].is_leaf()) trees.nodes[i].threshold = static_cast<double>(n++);
    }
  }
  require(n * trees.n_classes == trees.leaf_value.size(),
          "forest: leaf_value does not match the leaves of multi-output trees");
}

std::unique_ptr<Forest> make_forest(const ArraysByName& ensemble, std::size_t n_features,
                                    std::size_t n_classes) {
  auto forest = std::make_unique<Forest>();
  PackedTrees& trees = forest->trees;
  trees.tree_class = copy_of<std::int32_t>(ensemble, "tree_class");
  for (const std::int32_t base : copy_of<std::int32_t>(ensemble, "tree_base")) {
    require(base >= -1, "forest: class out of range");
    trees.tree_base.push_back(base < 0 ? BaseClass() : BaseClass(base));
  }
  trees.tree_base_scale = copy_of<double>(ensemble, "tree_base_scale");
  trees.left_set = copy_of<std::uint64_t>(ensemble, "left_set");
  trees.n_features = n_features;
  trees.n_classes = n_classes;
  trees.leaf_value = leaf_values_of(ensemble, n_classes);
  check_classes(trees);
  const NodeArrays nodes = nodes_of(ensemble);
  pack_trees(nodes, trees);
  place_sets(nodes.left_set_size, trees);
  number_leaves(trees);
  forest->regions = make_region_trees(trees);
  return forest;
}

void add_py(const Forest& forest, const Matrix<double>& X, const Scores2d& raw,
            std::size_t first_tree, std::size_t last_tree, int n_threads) {
  const PackedTrees& trees = forest.trees;
  require(X.shape(1) == trees.n_features, "X: wrong number of features");
  require(raw.shape(0) == X.shape(0) && raw.shape(1) == trees.n_classes, "raw: wrong shape");
  require(first_tree <= last_tree && last_tree <= trees.n_trees(), "trees out of range");
  require(n_threads >= 1, "n_threads: at least 1");
  const Unlocked unlocked(kPrediction);
  add_trees(forest, {.values = X.data(), .n_rows = X.shape(0), .raw = raw.data()}, first_tree,
            last_tree, n_threads);
}

/// Checks the weight fractions, so that no sum becomes NaN.
WeightedTrees weighted_trees(const Forest& forest, const Vector<double>& fraction,
                             std::size_t n_trees) {
  const std::span<const double> fractions = span_of(fraction);
  require(n_trees <= forest.trees.n_trees(), "trees out of range");
  require(fractions.size() == forest.trees.nodes.size(), "fraction: one for each node");
  require(std::ranges::all_of(fractions, [](double s) { return s >= 0.0 && s <= 1.0; }),
          "fraction: 0 to 1");
  return {.trees = forest.trees, .fraction = fractions, .first = 0, .last = n_trees};
}

void explain_py(const Forest& forest, const Vector<double>& fraction, const Matrix<double>& X,
                const Values3d& shapley, std::size_t n_trees, int n_threads) {
  const PackedTrees& trees = forest.trees;
  require(X.shape(1) == trees.n_features, "X: wrong number of features");
  require(shapley.shape(0) == X.shape(0) && shapley.shape(1) == trees.n_features &&
              shapley.shape(2) == trees.n_classes,
          "shapley: wrong shape");
  require(n_threads >= 1, "n_threads: at least 1");
  const WeightedTrees weighted = weighted_trees(forest, fraction, n_trees);
  const Unlocked unlocked(kExplanation);
  add_shapley_values(
      weighted, {.values = X.data(), .n_rows = X.shape(0), .shapley = shapley.data()}, n_threads);
}

auto mean_scores_py(const Forest& forest, const Vector<double>& fraction, std::size_t n_trees) {
  return to_numpy(mean_scores(weighted_trees(forest, fraction, n_trees)));
}

void apply_py(const Forest& forest, const Matrix<double>& X, const Leaves2d& leaves,
              int n_threads) {
  require(X.shape(1) == forest.trees.n_features, "X: wrong number of features");
  require(leaves.shape(0) == X.shape(0) && leaves.shape(1) <= forest.trees.n_trees(),
          "leaves: wrong shape");
  require(n_threads >= 1, "n_threads: at least 1");
  const Unlocked unlocked(kPrediction);
  find_leaves(forest.trees, {.values = X.data(), .n_rows = X.shape(0), .leaves = leaves.data()},
              leaves.shape(1), n_threads);
}

}  // namespace

void bind_predict(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Forest>(m, "Forest", "Trees packed for prediction; all indices are checked.")
      .def(nb::new_(&make_forest), "ensemble"_a, "n_features"_a, "n_classes"_a,
           "The arrays of an ensemble by name.")
      .def("add", &add_py, "X"_a.noconvert(), "raw"_a.noconvert(), "first_tree"_a, "last_tree"_a,
           "n_threads"_a, "Add trees [first_tree, last_tree) to the scores, in place.")
      .def("explain", &explain_py, "fraction"_a.noconvert(), "X"_a.noconvert(),
           "shapley"_a.noconvert(), "n_trees"_a, "n_threads"_a,
           "Add the Shapley values of the first trees, in place; fraction: of the parent's weight, "
           "by "
           "node.")
      .def("mean_scores", &mean_scores_py, "fraction"_a.noconvert(), "n_trees"_a,
           "The mean score of each class in the first trees, over the training weights.")
      .def("apply", &apply_py, "X"_a.noconvert(), "leaves"_a.noconvert(), "n_threads"_a,
           "Write the leaf of each row in each of the first trees; leaves has a column for each "
           "tree.");
}

}  // namespace abcgbm
