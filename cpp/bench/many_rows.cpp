#include "bench/many_rows.hpp"

#include <cstdint>
#include <vector>

#include "base/fill.hpp"
#include "tree/histogram.hpp"
#include "tree/partition.hpp"

namespace abcgbm {
namespace {

using Integers = nb::ndarray<nb::numpy, std::int64_t>;
using RowNumbers = nb::ndarray<nb::numpy, std::uint32_t>;
using Unlocked = nb::gil_scoped_release;

void check_rows(const Binned& binned, std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : rows) require(row < binned.n_rows, "rows: 0 to n_rows - 1");
}

/// The number of rows in each bin.
Integers root_weights_py(const Binned& binned, int n_threads) {
  std::vector<std::int64_t> weights;
  {
    const Unlocked unlocked;
    weights = root_weights(binned, RowWeights(), n_threads);
  }
  return to_numpy(std::move(weights));
}

/// The sum of the row numbers in each bin, as a root histogram.
Integers root_sums_py(const Binned& binned, int n_threads) {
  HistogramGroups roots;
  {
    const Unlocked unlocked;
    const auto numbers = [](std::size_t, std::size_t first, std::span<std::int64_t> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(first + i);
      return out.data();
    };
    fill_roots(binned, RowWeights(), 1, numbers, n_threads, roots);
  }
  std::vector<std::int64_t> sums(roots.total_bins);
  for (std::size_t bin = 0; bin < sums.size(); ++bin) sums[bin] = roots.at(0, bin);
  return to_numpy(std::move(sums));
}

/// The sum of the row numbers and the count in each bin, as the histogram of a node with these
/// rows.
Integers node_sums_py(const Binned& binned, const Vector<std::uint32_t>& rows) {
  check_rows(binned, span_of(rows));
  std::vector<Sums<2>> sums;
  Sums<2> total{};
  for (const std::uint32_t row : span_of(rows)) {
    sums.push_back({row, 1});
    add(total, sums.back());
  }
  Histogram<2> histogram(binned.layout.total_bins);
  for (const Block& block : blocks_of(binned.layout, 1)) {
    add_to_block<2>(binned, block, {.rows = span_of(rows), .sums = sums}, histogram);
    finish_block<2>(binned.layout, block, total, histogram);
  }
  std::vector<std::int64_t> out;
  for (const Sums<2>& bin : histogram) out.insert(out.end(), bin.begin(), bin.end());
  return to_numpy(std::move(out), {histogram.size(), 2});
}

/// The rows whose code of a feature is at most `bin`, as a node with these rows is split.
RowNumbers rows_left_py(const Binned& binned, const Vector<std::uint32_t>& rows, int feature,
                        std::uint32_t bin) {
  check_rows(binned, span_of(rows));
  require(feature >= 0 && static_cast<std::size_t>(feature) < binned.layout.n_features(),
          "feature: 0 to n_features - 1");
  RowSets sets;
  sets.rows = copied(span_of(rows));
  sets.scratch.resize(sets.rows.size());
  sets.nodes.assign(1, {0, sets.rows.size()});
  split_rows(sets, 0, binned, {.feature = feature, .bin = bin, .left_set = {}});
  return to_numpy(copied(sets.in_node(1)));
}

}  // namespace

void bind_many_rows(nb::module_& m) {
  using namespace nb::literals;
  m.def("root_weights", &root_weights_py, "binned"_a, "n_threads"_a,
        "The number of rows in each bin.");
  m.def("root_sums", &root_sums_py, "binned"_a, "n_threads"_a,
        "The sum of the row numbers in each bin, as a root histogram.");
  m.def("node_sums", &node_sums_py, "binned"_a, "rows"_a.noconvert(),
        "The sum of the row numbers and the count in each bin, as a node's histogram.");
  m.def("rows_left", &rows_left_py, "binned"_a, "rows"_a.noconvert(), "feature"_a, "bin"_a,
        "The rows with codes of a feature up to the bin, as a node is split.");
}

}  // namespace abcgbm
