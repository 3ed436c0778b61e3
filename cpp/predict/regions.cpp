#include "predict/regions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kMaxSplits = 255;  // of a small tree, so that region numbers are bytes
constexpr std::size_t kLargestCode = 65535;

// ----------------------------------------------------------------------------------------- packing

bool is_small(std::span<const PackedNode> tree) { return tree.size() <= 2 * kMaxSplits + 1; }

/// What the splits of small trees compare each feature with.
struct SplitPoints {
  std::map<std::uint32_t, std::vector<double>> thresholds;  // ascending and distinct
  std::map<std::uint32_t, std::size_t> n_words;             // of the longest set
};

void add_split_point(const PackedTrees& packed, const PackedNode& node, SplitPoints& points) {
  if (node.is_leaf()) return;
  const auto feature = static_cast<std::uint32_t>(node.feature);
  if (node.is_set()) {
    std::size_t& n_words = points.n_words[feature];
    n_words = std::max(n_words, packed.set_of(node).size());
  } else {
    points.thresholds[feature].push_back(node.threshold);
  }
}

SplitPoints split_points_of(const PackedTrees& packed) {
  SplitPoints points;
  for (std::size_t t = 0; t < packed.n_trees(); ++t) {
    if (!is_small(packed.tree(t))) continue;
    for (const PackedNode& node : packed.tree(t)) add_split_point(packed, node, points);
  }
  for (auto& [feature, thresholds] : points.thresholds) {
    std::ranges::sort(thresholds);
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  }
  return points;
}

/// The largest code of any column: of a value above all thresholds, or of no category.
std::size_t largest_code(const SplitPoints& points) {
  std::size_t largest = 0;
  for (const auto& [feature, thresholds] : points.thresholds) {
    largest = std::max(largest, thresholds.size());
  }
  for (const auto& [feature, n_words] : points.n_words) largest = std::max(largest, 64 * n_words);
  return largest;
}

void set_features(RegionTrees& regions, const SplitPoints& points) {
  for (const auto& [feature, thresholds] : points.thresholds) {
    const std::size_t n_padded = std::bit_ceil(thresholds.size() + 1) - 1;
    const std::size_t first = regions.thresholds.size();
    regions.numeric.push_back({.feature = feature,
                               .n_thresholds = static_cast<std::uint32_t>(thresholds.size()),
                               .first = static_cast<std::uint32_t>(first),
                               .n_padded = static_cast<std::uint32_t>(n_padded)});
    regions.thresholds.insert(regions.thresholds.end(), thresholds.begin(), thresholds.end());
    regions.thresholds.resize(first + n_padded, std::numeric_limits<double>::infinity());
  }
  for (const auto& [feature, n_words] : points.n_words) {
    const auto with_none = static_cast<std::uint32_t>(n_words + 1);
    regions.categorical.push_back({.feature = feature, .n_words = with_none});
  }
}

template <class Feature>
std::size_t place_of(const std::vector<Feature>& features, std::int32_t feature) {
  const auto number = static_cast<std::uint32_t>(feature);
  const auto found = std::ranges::lower_bound(features, number, {}, &Feature::feature);
  return static_cast<std::size_t>(found - features.begin());
}

/// value <= threshold if and only if no more thresholds are below the value than below the
/// threshold.
RegionSplit threshold_split(const RegionTrees& regions, const PackedNode& node) {
  const std::size_t place = place_of(regions.numeric, node.feature);
  const NumericFeature& numeric = regions.numeric[place];
  const double* first = regions.thresholds.data() + numeric.first;
  const auto code = std::lower_bound(first, first + numeric.n_thresholds, node.threshold) - first;
  return {.column = static_cast<std::uint32_t>(2 * place + (node.missing_left() ? 0 : 1)),
          .code = static_cast<std::uint16_t>(code)};
}

/// Extends the set, as codes beyond its words go where missing values go.
RegionSplit set_split(RegionTrees& regions, std::span<const std::uint64_t> set,
                      const PackedNode& node) {
  const std::size_t place = place_of(regions.categorical, node.feature);
  std::vector<std::uint64_t>& all = regions.left_sets;
  all.insert(all.end(), set.begin(), set.end());
  all.resize(all.size() + regions.categorical[place].n_words - set.size(),
             node.missing_left() ? ~std::uint64_t{0} : 0);
  return {.column = static_cast<std::uint32_t>(2 * regions.numeric.size() + place)};
}

/// Packs the splits in the order of the nodes, and the values by region.
RegionTree pack_tree(const PackedTrees& packed, std::size_t t, RegionTrees& regions) {
  const std::span<const PackedNode> nodes = packed.tree(t);
  RegionTree tree{.first_split = static_cast<std::uint32_t>(regions.splits.size()),
                  .first_value = static_cast<std::uint32_t>(regions.values.size()),
                  .first_word = static_cast<std::uint32_t>(regions.left_sets.size()),
                  .is_small = true};
  std::vector<std::uint16_t> region(nodes.size(), 0);
  regions.values.resize(regions.values.size() + nodes.size() / 2 + 1);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    if (nodes[at].is_leaf()) {
      regions.values[tree.first_value + region[at]] = nodes[at].threshold;  // holds a leaf's value
      continue;
    }
    RegionSplit split = nodes[at].is_set() ? set_split(regions, packed.set_of(nodes[at]), nodes[at])
                                           : threshold_split(regions, nodes[at]);
    split.region = region[at];
    regions.splits.push_back(split);
    const std::size_t left = nodes[at].left() - packed.root[t];
    region[left] = region[at];
    region[left + 1] = static_cast<std::uint16_t>(++tree.n_splits);
  }
  return tree;
}

// ------------------------------------------------------------------------------------------ coding

/// Counts the thresholds below each value; none for NaN. Their number is a power of two minus one,
/// so that the search has the same steps for all rows.
struct RankKernel {
  [[gnu::always_inline]] static void run(const double* thresholds, std::uint32_t n_thresholds,
                                         const double* x, std::size_t n_rows, std::uint32_t* rank) {
    std::fill_n(rank, n_rows, 0u);
    for (std::uint32_t half = (n_thresholds + 1) / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < n_rows; ++i) {
        rank[i] += thresholds[rank[i] + half - 1] < x[i] ? half : 0u;
      }
    }
  }
};

template <class Code>
void write_ranks(const NumericFeature& numeric, const double* x, const std::uint32_t* rank,
                 Code* nan_goes_left) {
  Code* nan_goes_right = nan_goes_left + kRowsAtOnce;
  const auto above_all = static_cast<Code>(numeric.n_thresholds);
  for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
    nan_goes_left[i] = static_cast<Code>(rank[i]);
    nan_goes_right[i] = std::isnan(x[i]) ? above_all : nan_goes_left[i];
  }
}

template <class Code>
void write_categories(const CategoricalFeature& categorical, const double* x, Code* codes) {
  const std::uint32_t none = 64 * (categorical.n_words - 1);
  for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
    const bool is_code = x[i] >= 0.0 && x[i] < static_cast<double>(none);
    codes[i] = static_cast<Code>(is_code ? static_cast<std::uint32_t>(x[i]) : none);
  }
}

/// Writes two columns for each numeric feature (NaN goes left, NaN goes right), then one for each
/// categorical one. Codes beyond n_rows are stale; the leaf values they lead to are ignored.
template <class Code>
void code_rows_as(const RegionTrees& trees, const double* rows, std::size_t n_rows,
                  std::size_t n_features, std::vector<Code>& codes) {
  codes.resize(trees.n_columns() * kRowsAtOnce);
  double x[kRowsAtOnce] = {};
  const auto read = [&](std::size_t feature) {
    for (std::size_t i = 0; i < n_rows; ++i) x[i] = rows[i * n_features + feature];
  };
  Code* column = codes.data();
  std::uint32_t rank[kRowsAtOnce] = {};
  for (const NumericFeature& numeric : trees.numeric) {
    read(numeric.feature);
    const double* thresholds = trees.thresholds.data() + numeric.first;
    // Arguments are passed by value with explicit types, so arrays must decay to pointers.
    dispatch<RankKernel>(thresholds, numeric.n_padded, static_cast<const double*>(x), n_rows,
                         static_cast<std::uint32_t*>(rank));
    write_ranks(numeric, x, rank, column);
    column += 2 * kRowsAtOnce;
  }
  for (const CategoricalFeature& categorical : trees.categorical) {
    read(categorical.feature);
    write_categories(categorical, x, column);
    column += kRowsAtOnce;
  }
}

// ----------------------------------------------------------------------------------------- regions

/// 1 for each row whose category is not in the set, else 0.
template <std::size_t Rows, class Code>
[[gnu::always_inline]] inline void mark_outside(const std::uint64_t* set, const Code* codes,
                                                Code* outside) {
  for (std::size_t i = 0; i < Rows; ++i) {
    outside[i] = static_cast<Code>(~(set[codes[i] / 64] >> (codes[i] % 64)) & 1u);
  }
}

template <std::size_t Rows, class Code>
[[gnu::always_inline]] inline void divide_region(const Code* codes, Code code, Code region,
                                                 Code next, Code* regions) {
  for (std::size_t i = 0; i < Rows; ++i) {
    const bool moves = (codes[i] > code) && (regions[i] == region);
    regions[i] = moves ? next : regions[i];
  }
}

template <class Code, std::size_t Rows>
struct RegionKernel {
  [[gnu::always_inline]] static void run(const RegionTrees* trees, const RegionTree* tree,
                                         const Code* codes, double* values) {
    alignas(64) Code region_of_row[Rows] = {};
    alignas(64) Code outside[Rows];
    const std::size_t n_numeric_columns = 2 * trees->numeric.size();
    const RegionSplit* splits = trees->splits.data() + tree->first_split;
    const std::uint64_t* set = trees->left_sets.data() + tree->first_word;
    for (std::size_t s = 0; s < tree->n_splits; ++s) {
      const RegionSplit split = splits[s];
      const Code* column = codes + split.column * kRowsAtOnce;
      if (split.column >= n_numeric_columns) {
        mark_outside<Rows>(set, column, outside);
        set += trees->categorical[split.column - n_numeric_columns].n_words;
        column = outside;
      }
      divide_region<Rows>(column, static_cast<Code>(split.code), static_cast<Code>(split.region),
                          static_cast<Code>(s + 1), region_of_row);
    }
    const double* leaves = trees->values.data() + tree->first_value;
    for (std::size_t i = 0; i < Rows; ++i) values[i] = leaves[region_of_row[i]];
  }
};

/// A chunk with at most a quarter of the rows takes a quarter of the work.
template <class Code>
void leaf_values_as(const RegionTrees& trees, const RegionTree& tree,
                    const std::vector<Code>& codes, std::size_t n_rows, double* values) {
  if (n_rows <= kRowsAtOnce / 4) {
    dispatch<RegionKernel<Code, kRowsAtOnce / 4>>(&trees, &tree, codes.data(), values);
  } else {
    dispatch<RegionKernel<Code, kRowsAtOnce>>(&trees, &tree, codes.data(), values);
  }
}

}  // namespace

RegionTrees make_region_trees(const PackedTrees& packed) {
  RegionTrees regions;
  regions.trees.resize(packed.n_trees());
  const SplitPoints points = split_points_of(packed);
  const std::size_t largest = largest_code(points);
  if (largest > kLargestCode) return regions;
  regions.has_wide_codes = largest > 255;
  set_features(regions, points);
  for (std::size_t t = 0; t < packed.n_trees(); ++t) {
    if (is_small(packed.tree(t))) regions.trees[t] = pack_tree(packed, t, regions);
  }
  return regions;
}

void code_rows(const RegionTrees& trees, const double* rows, std::size_t n_rows,
               std::size_t n_features, CodeChunk& codes) {
  if (trees.has_wide_codes) {
    code_rows_as(trees, rows, n_rows, n_features, codes.wide);
  } else {
    code_rows_as(trees, rows, n_rows, n_features, codes.narrow);
  }
}

void leaf_values(const RegionTrees& trees, const RegionTree& tree, const CodeChunk& codes,
                 std::size_t n_rows, ChunkValues values) {
  if (trees.has_wide_codes) {
    leaf_values_as(trees, tree, codes.wide, n_rows, values.data());
  } else {
    leaf_values_as(trees, tree, codes.narrow, n_rows, values.data());
  }
}

}  // namespace abcgbm
