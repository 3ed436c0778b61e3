#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "predict/predict.hpp"

namespace abcgbm {
namespace {

using Scores2d = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// The arrays of an ensemble as Python has them, node indices relative to their tree.
struct ForestArrays {
  std::span<const std::int32_t> feature;
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> missing_left;
  std::span<const std::int32_t> left_set_size;
  std::span<const double> value;
  std::span<const std::int64_t> tree_start;
};

/// Every index is checked here once, so that prediction needs no checks: children lie behind their
/// parent within the tree, so a walk always ends.
PackedNode pack_node(const ForestArrays& arrays, std::int64_t begin, std::int64_t end,
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

void check_sizes(const ForestArrays& arrays, std::size_t n_trees) {
  const std::size_t n_nodes = arrays.feature.size();
  require(n_nodes < (std::size_t{1} << 30), "forest: too many nodes");
  require(arrays.threshold.size() == n_nodes && arrays.left.size() == n_nodes &&
              arrays.missing_left.size() == n_nodes && arrays.value.size() == n_nodes &&
              arrays.left_set_size.size() == n_nodes,
          "forest: node arrays differ in length");
  require(arrays.tree_start.size() == n_trees + 1 && arrays.tree_start.front() == 0 &&
              arrays.tree_start.back() == static_cast<std::int64_t>(n_nodes),
          "forest: tree_start does not fit");
}

/// Every node but the root is the child of one split, and only of one. So a tree has one leaf more
/// than splits, which the packing by regions counts on, and no node is out of reach.
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

void pack_trees(const ForestArrays& arrays, Forest& forest) {
  const std::size_t n_trees = forest.tree_class.size();
  check_sizes(arrays, n_trees);
  forest.nodes.reserve(arrays.feature.size());
  forest.root.push_back(0);
  for (std::size_t t = 0; t < n_trees; ++t) {
    const std::int64_t begin = arrays.tree_start[t];
    const std::int64_t end = arrays.tree_start[t + 1];
    require(begin < end && end <= static_cast<std::int64_t>(arrays.feature.size()),
            "forest: tree_start does not rise");
    for (std::int64_t at = begin; at < end; ++at) {
      forest.nodes.push_back(pack_node(arrays, begin, end, at, forest.n_features));
    }
    forest.root.push_back(static_cast<std::uint32_t>(end));
    check_parents(forest.tree(t), forest.root[t]);
  }
}

/// Splits with a set of codes get the place of theirs; sets lie end to end in the order of nodes.
void place_sets(std::span<const std::int32_t> sizes, Forest& forest) {
  require(forest.left_set.size() < (std::size_t{1} << 32), "forest: too many categories");
  std::size_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const auto n_words = static_cast<std::uint32_t>(sizes[i]);
    require(
        sizes[i] > 0 && n_words <= forest.left_set.size() - start && forest.nodes[i].feature >= 0,
        "forest: left_set does not fit");
    const SetPlace place{.start = static_cast<std::uint32_t>(start), .n_words = n_words};
    forest.nodes[i].threshold = std::bit_cast<double>(place);
    forest.nodes[i].left_and_flags |= kIsSet;
    start += n_words;
  }
  require(start == forest.left_set.size(), "forest: left_set does not fit");
}

void check_classes(const Forest& forest) {
  const auto n_classes = static_cast<std::int64_t>(forest.n_classes);
  require(forest.tree_base.size() == forest.tree_class.size() &&
              forest.tree_base_scale.size() == forest.tree_class.size(),
          "forest: tree arrays differ in length");
  for (std::size_t t = 0; t < forest.tree_class.size(); ++t) {
    require(forest.tree_class[t] >= 0 && forest.tree_class[t] < n_classes &&
                forest.tree_base[t] >= -1 && forest.tree_base[t] < n_classes,
            "forest: class out of range");
    require(std::isfinite(forest.tree_base_scale[t]), "forest: tree_base_scale must be finite");
  }
}

std::unique_ptr<Predictor> make_predictor(
    const Vector<std::int32_t>& feature, const Vector<double>& threshold,
    const Vector<std::int32_t>& left, const Vector<std::uint8_t>& missing_left,
    const Vector<double>& value, const Vector<std::int32_t>& left_set_size,
    const Vector<std::uint64_t>& left_set, const Vector<std::int64_t>& tree_start,
    const Vector<std::int32_t>& tree_class, const Vector<std::int32_t>& tree_base,
    const Vector<double>& tree_base_scale, std::size_t n_features, std::size_t n_classes) {
  auto predictor = std::make_unique<Predictor>();
  Forest& forest = predictor->forest;
  forest.tree_class = copy_of(tree_class);
  forest.tree_base = copy_of(tree_base);
  forest.tree_base_scale = copy_of(tree_base_scale);
  forest.n_features = n_features;
  forest.n_classes = n_classes;
  check_classes(forest);
  pack_trees({.feature = span_of(feature),
              .threshold = span_of(threshold),
              .left = span_of(left),
              .missing_left = span_of(missing_left),
              .left_set_size = span_of(left_set_size),
              .value = span_of(value),
              .tree_start = span_of(tree_start)},
             forest);
  forest.left_set = copy_of(left_set);
  place_sets(span_of(left_set_size), forest);
  predictor->regions = make_region_forest(forest);
  return predictor;
}

void add_py(const Predictor& predictor, const Matrix<double>& rows, const Scores2d& raw,
            std::size_t first_tree, std::size_t last_tree, int n_threads) {
  const Forest& forest = predictor.forest;
  require(rows.shape(1) == forest.n_features, "X: wrong number of features");
  require(raw.shape(0) == rows.shape(0) && raw.shape(1) == forest.n_classes, "raw: wrong shape");
  require(first_tree <= last_tree && last_tree <= forest.n_trees(), "trees out of range");
  require(n_threads >= 1, "n_threads: at least 1");
  const Unlocked unlocked(kPrediction);
  add_trees(predictor, {.first = first_tree, .last = last_tree}, rows.data(), rows.shape(0),
            raw.data(), n_threads);
}

}  // namespace

void bind_predict(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Predictor>(m, "Forest", "Trees packed for prediction; all indices are checked.")
      .def(nb::new_(&make_predictor), "feature"_a.noconvert(), "threshold"_a.noconvert(),
           "left"_a.noconvert(), "missing_left"_a.noconvert(), "value"_a.noconvert(),
           "left_set_size"_a.noconvert(), "left_set"_a.noconvert(), "tree_start"_a.noconvert(),
           "tree_class"_a.noconvert(), "tree_base"_a.noconvert(), "tree_base_scale"_a.noconvert(),
           "n_features"_a, "n_classes"_a)
      .def("add", &add_py, "X"_a.noconvert(), "raw"_a.noconvert(), "first_tree"_a, "last_tree"_a,
           "n_threads"_a, "Add trees [first_tree, last_tree) to the scores, in place.");
}

}  // namespace abcgbm
