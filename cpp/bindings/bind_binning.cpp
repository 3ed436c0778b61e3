#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.hpp"
#include "bindings.hpp"
#include "binning.hpp"

namespace abcgbm {
namespace {

using Table = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Thresholds = std::vector<Vector<double>>;

TableView view_of(const Table& table) {
  return {.data = table.data(),
          .n_rows = table.shape(0),
          .n_features = table.shape(1),
          .row_stride = table.stride(0),
          .column_stride = table.stride(1)};
}

std::vector<nb::ndarray<nb::numpy, double>> find_thresholds_py(const Table& table,
                                                               const Vector<std::int64_t>& weight,
                                                               std::size_t max_bins,
                                                               int n_threads) {
  require(weight.shape(0) == table.shape(0), "weight: one for each row");
  require(max_bins >= 2 && max_bins <= 65534, "max_bins: 2 to 65534");
  std::vector<std::vector<double>> thresholds;
  {
    const nb::gil_scoped_release release;
    thresholds = find_thresholds(view_of(table), span_of(weight), max_bins, n_threads);
  }
  std::vector<nb::ndarray<nb::numpy, double>> out;
  for (auto& of_feature : thresholds) out.push_back(to_numpy(std::move(of_feature)));
  return out;
}

std::shared_ptr<Binned> bin_table_py(const Table& table, const Thresholds& thresholds,
                                     int n_threads) {
  require(thresholds.size() == table.shape(1), "thresholds: one array for each feature");
  std::vector<std::vector<double>> copies;
  for (const auto& of_feature : thresholds) {
    require(of_feature.shape(0) <= 65533, "thresholds: at most 65533 for each feature");
    copies.push_back(copy_of(of_feature));
  }
  const nb::gil_scoped_release release;
  return std::make_shared<Binned>(bin_table(view_of(table), copies, n_threads));
}

nb::ndarray<nb::numpy, std::uint16_t> codes_py(const Binned& binned) {
  std::vector<std::uint16_t> out;
  std::visit([&](const auto& codes) { out.assign(codes.by_row.begin(), codes.by_row.end()); },
             binned.codes);
  return to_numpy(std::move(out), {binned.n_rows, binned.n_features});
}

std::shared_ptr<Binned> take_py(const Binned& binned, const Vector<std::int64_t>& rows) {
  for (const std::int64_t row : span_of(rows)) {
    require(row >= 0 && static_cast<std::size_t>(row) < binned.n_rows, "rows: 0 to n_rows - 1");
  }
  return std::make_shared<Binned>(take_rows(binned, span_of(rows)));
}

std::vector<std::uint32_t> n_bins_py(const Binned& binned) {
  std::vector<std::uint32_t> out;
  for (std::size_t f = 0; f < binned.n_features; ++f) out.push_back(binned.n_bins(f));
  return out;
}

}  // namespace

void bind_binning(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Binned>(m, "Binned", "Bin codes of a table.")
      .def_ro("n_rows", &Binned::n_rows)
      .def_ro("n_features", &Binned::n_features)
      .def_prop_ro("n_bins", &n_bins_py, "Bins of each feature: values, and one for missing.")
      .def_prop_ro(
          "code_bytes", [](const Binned& binned) { return binned.codes.index() + 1; },
          "Bytes of a code: 1 or 2.")
      .def("take", &take_py, "rows"_a.noconvert(), "The given rows, by number.")
      .def("codes", &codes_py, "A copy of the codes, of shape (n_rows, n_features).");
  m.def("find_thresholds", &find_thresholds_py, "X"_a.noconvert(), "weight"_a.noconvert(),
        "max_bins"_a, "n_threads"_a, "Thresholds between the value bins of each column.");
  m.def("bin_table", &bin_table_py, "X"_a.noconvert(), "thresholds"_a, "n_threads"_a,
        "Code a table by the thresholds of its columns.");
}

}  // namespace abcgbm
