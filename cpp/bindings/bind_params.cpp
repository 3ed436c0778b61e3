#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "boost/memory.hpp"
#include "grow/params.hpp"

namespace abcgbm {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

bool is_amount(double x) { return std::isfinite(x) && x >= 0.0; }

void check(const GrowParams& grow) {
  // Node numbers have 16 bits.
  require(grow.max_leaf_nodes >= 2 && grow.max_leaf_nodes <= 32768, "max_leaf_nodes: 2 to 32768");
  require(grow.max_depth >= 0, "max_depth: at least 0 (0: no limit)");
  require(is_amount(grow.min_gain), "min_gain: at least 0");
}

void check(const SplitParams& split) {
  require(split.min_weight >= 1, "min_weight: at least 1");
  require(is_amount(split.min_hessian_leaf), "min_hessian_leaf: at least 0");
  require(is_amount(split.l2_regularization), "l2_regularization: at least 0");
  require(is_amount(split.categorical_smoothing), "categorical_smoothing: at least 0");
  require(is_amount(split.categorical_penalty), "categorical_penalty: at least 0");
}

void check(const TrainParams& params) {
  const double rate = params.learning_rate;
  require(rate > 0.0 && rate <= 1.0, "learning_rate: above 0, at most 1");
  require(params.subsample > 0.0 && params.subsample <= 1.0, "subsample: above 0, at most 1");
}

/// Constructs the parameters in the memory that Python has allocated.
template <class Params>
void fill(Params* self, const Params& params) {
  new (self) Params(params);
}

void bind_growth(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<FeatureRules>(m, "FeatureRules", "Feature sampling and interaction constraints.")
      .def(
          "__init__",
          [](FeatureRules* self, std::size_t max_features, std::size_t max_path_features,
             const Groups& interaction_groups) {
            fill(self, {.max_features = max_features,
                        .max_path_features = max_path_features,
                        .groups = interaction_groups});
          },
          "max_features"_a = 0, "max_path_features"_a = 0, "interaction_groups"_a = Groups());
  nb::class_<GrowParams>(m, "GrowParams", "Limits on the growth of a tree.")
      .def(
          "__init__",
          [](GrowParams* self, int max_leaf_nodes, int max_depth, double min_gain,
             const FeatureRules& features) {
            const GrowParams params{.max_leaf_nodes = max_leaf_nodes,
                                    .max_depth = max_depth,
                                    .min_gain = min_gain,
                                    .features = features};
            check(params);
            fill(self, params);
          },
          "max_leaf_nodes"_a = 20, "max_depth"_a = 0, "min_gain"_a = 0.0,
          "features"_a = FeatureRules());
}

void bind_split(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<SplitParams>(m, "SplitParams", "Split criterion and constraints.")
      .def(
          "__init__",
          [](SplitParams* self, bool hessian_split, std::int64_t min_weight,
             double min_hessian_leaf, double l2_regularization, double categorical_smoothing,
             double categorical_penalty) {
            const SplitParams params{.hessian_split = hessian_split,
                                     .min_weight = min_weight,
                                     .min_hessian_leaf = min_hessian_leaf,
                                     .l2_regularization = l2_regularization,
                                     .categorical_smoothing = categorical_smoothing,
                                     .categorical_penalty = categorical_penalty};
            check(params);
            fill(self, params);
          },
          "hessian_split"_a = false, "min_weight"_a = 10, "min_hessian_leaf"_a = 0.0,
          "l2_regularization"_a = 0.0, "categorical_smoothing"_a = 10.0,
          "categorical_penalty"_a = 0.0);
}

using Bytes = std::map<std::string, std::size_t>;

Bytes training_bytes_py(std::size_t n_rows, int n_classes, std::size_t total_bins,
                        const TrainParams& params, std::size_t n_candidates, int n_threads,
                        bool has_ranks, bool in_folder) {
  require(n_classes >= 1 && n_candidates >= 1 && n_threads >= 1,
          "n_classes, n_candidates, n_threads: at least 1");
  Bytes bytes;
  for (const MemoryPart& part : training_bytes({.n_rows = n_rows,
                                                .n_classes = n_classes,
                                                .total_bins = total_bins,
                                                .n_candidates = n_candidates,
                                                .n_threads = n_threads,
                                                .has_ranks = has_ranks},
                                               params)) {
    if (!in_folder || !part.is_of_rows) bytes[part.name] = part.bytes;
  }
  return bytes;
}

void bind_memory(nb::module_& m) {
  using namespace nb::literals;
  m.def("training_bytes", &training_bytes_py, "n_rows"_a, "n_classes"_a, "total_bins"_a, "params"_a,
        "n_candidates"_a, "n_threads"_a, "has_ranks"_a = false, "in_folder"_a = false,
        "The bytes of the large arrays of training by name, without the binned table. in_folder: "
        "only "
        "those that stay in memory if the others are in scratch files.");
  m.def("validation_bytes", &validation_bytes, "n_rows"_a, "n_classes"_a, "n_threads"_a,
        "The bytes of validation rows, without their codes.");
}

}  // namespace

void bind_params(nb::module_& m) {
  using namespace nb::literals;
  bind_growth(m);
  bind_split(m);
  nb::class_<TrainParams>(m, "TrainParams", "Parameters of training.")
      .def(
          "__init__",
          [](TrainParams* self, const GrowParams& grow, const SplitParams& split,
             double learning_rate, double subsample, std::uint64_t seed, bool multi_output,
             std::size_t n_projections, bool base_line_search) {
            const TrainParams params{.grow = grow,
                                     .split = split,
                                     .learning_rate = learning_rate,
                                     .subsample = subsample,
                                     .seed = seed,
                                     .multi_output = multi_output,
                                     .n_projections = n_projections,
                                     .base_line_search = base_line_search};
            check(params);
            fill(self, params);
          },
          "grow"_a = GrowParams(), "split"_a = SplitParams(), "learning_rate"_a = 0.1,
          "subsample"_a = 1.0, "seed"_a = 0, "multi_output"_a = false, "n_projections"_a = 0,
          "base_line_search"_a = false);
  bind_memory(m);
}

}  // namespace abcgbm
