#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/table_view.hpp"
#include "bindings/unlocked.hpp"
#include "data/value_counts.hpp"

namespace abcgbm {
namespace {

using Run = std::pair<Vector<double>, Vector<std::int64_t>>;
using OwnedRun = std::pair<nb::ndarray<nb::numpy, double>, nb::ndarray<nb::numpy, std::int64_t>>;

void add_py(ValueCounts& counts, const Table& table, const Vector<std::int64_t>& weight,
            std::size_t first_row, int n_threads) {
  require(table.shape(1) == counts.n_columns(), "X: as many columns as are counted");
  require(weight.shape(0) == table.shape(0), "weight: one for each row");
  require(std::ranges::all_of(span_of(weight), [](std::int64_t w) { return w >= 0; }),
          "weight: at least 0");
  const Unlocked unlocked(kBinning);
  counts.add(table_view(table), span_of(weight), first_row, n_threads);
}

void merge_py(ValueCounts& counts, const ValueCounts& other, int n_threads) {
  require(counts.n_columns() == other.n_columns() && &counts != &other,
          "other: different counts of the same columns");
  const Unlocked unlocked(kBinning);
  counts.merge(other, n_threads);
}

std::vector<OwnedRun> take_py(ValueCounts& counts, int n_threads) {
  std::vector<ValueRun> runs;
  {
    const Unlocked unlocked(kBinning);
    runs = counts.take(n_threads);
  }
  std::vector<OwnedRun> out;
  for (ValueRun& run : runs) {
    out.emplace_back(to_numpy(std::move(run.value)), to_numpy(std::move(run.weight)));
  }
  return out;
}

/// The order of the values is not checked: runs come from `take`, through private scratch files.
std::vector<std::vector<RunView>> views_of(const std::vector<std::vector<Run>>& runs) {
  std::vector<std::vector<RunView>> views(runs.size());
  for (std::size_t c = 0; c < runs.size(); ++c) {
    for (const auto& [value, weight] : runs[c]) {
      require(value.shape(0) == weight.shape(0), "runs: a weight for each value");
      views[c].push_back({.value = span_of(value), .weight = span_of(weight)});
    }
  }
  return views;
}

std::vector<nb::ndarray<nb::numpy, double>> thresholds_py(const ValueCounts& counts,
                                                          const std::vector<std::vector<Run>>& runs,
                                                          std::size_t max_bins, int n_threads) {
  require(max_bins >= 2 && max_bins <= 65534, "max_bins: 2 to 65534");
  require(runs.empty() || runs.size() == counts.n_columns(), "runs: a list for each column");
  const std::vector<std::vector<RunView>> views = views_of(runs);
  Thresholds thresholds;
  {
    const Unlocked unlocked(kBinning);
    thresholds = counts.thresholds(views, max_bins, n_threads);
  }
  std::vector<nb::ndarray<nb::numpy, double>> out;
  for (auto& of_column : thresholds) out.push_back(to_numpy(std::move(of_column)));
  return out;
}

}  // namespace

void bind_value_counts(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<ValueCounts>(m, "ValueCounts", "Distinct values of columns, counted batch by batch.")
      .def(nb::init<std::size_t>(), "n_columns"_a)
      .def("add", &add_py, "X"_a.noconvert(), "weight"_a.noconvert(), "first_row"_a, "n_threads"_a,
           "Count the rows from first_row on; rows of weight 0 and NaN are ignored.")
      .def("merge", &merge_py, "other"_a, "n_threads"_a,
           "Add the counts of other rows of the same columns.")
      .def("take", &take_py, "n_threads"_a,
           "Return values and weights, one run for each column, and clear the counts.")
      .def("thresholds", &thresholds_py, "runs"_a, "max_bins"_a, "n_threads"_a,
           "The thresholds of each column, from the stored runs and the given ones.")
      .def_prop_ro("n_columns", &ValueCounts::n_columns)
      .def_prop_ro("n_values", &ValueCounts::n_values, "Number of stored values, over all columns.")
      .def_prop_ro(
          "digests",
          [](const ValueCounts& counts) {
            const auto digests = counts.digests();
            return to_numpy(std::vector<std::uint64_t>(digests.begin(), digests.end()));
          },
          nb::rv_policy::automatic, "Digests of the columns, over all rows so far.");
}

}  // namespace abcgbm
