#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/binned_state.hpp"
#include "bindings/table_view.hpp"
#include "bindings/unlocked.hpp"
#include "data/binning.hpp"

namespace abcgbm {
namespace {

using ThresholdArrays = std::vector<Vector<double>>;
using OwnedArrays = std::vector<nb::ndarray<nb::numpy, double>>;

/// Columns in the format of scipy.sparse's csc, with ascending rows.
struct SparseArrays {
  std::size_t n_rows;
  Vector<double> fill;
  Vector<std::int64_t> start;
  std::variant<Vector<std::int32_t>, Vector<std::uint32_t>> row;
  Vector<double> value;
};

/// SciPy numbers rows by signed integers below this.
constexpr std::size_t kMaxSignedRows = std::size_t{1} << 31;

template <class Row>
std::unique_ptr<SparseArrays> make_sparse(std::size_t n_rows, const Vector<double>& fill,
                                          const Vector<std::int64_t>& start, const Vector<Row>& row,
                                          const Vector<double>& value) {
  require(std::is_unsigned_v<Row> || n_rows <= kMaxSignedRows,
          "indices: uint32 if there are more than 2^31 rows");
  return std::make_unique<SparseArrays>(SparseArrays{n_rows, fill, start, row, value});
}

/// Negative row numbers become out of range.
std::span<const std::uint32_t> rows_of(const SparseArrays& arrays) {
  return std::visit(
      [](const auto& row) -> std::span<const std::uint32_t> {
        return {reinterpret_cast<const std::uint32_t*>(row.data()), row.shape(0)};
      },
      arrays.row);
}

void check_column(const SparseView& view, std::size_t column) {
  std::int64_t before = -1;
  for (auto i = static_cast<std::size_t>(view.start[column]);
       i < static_cast<std::size_t>(view.start[column + 1]); ++i) {
    require(view.row[i] > before && view.row[i] < view.n_rows,
            "indices: ascending in each column, 0 to n_rows - 1");
    before = view.row[i];
  }
}

SparseView view_of(const SparseArrays& arrays) {
  const SparseView view{.n_rows = arrays.n_rows,
                        .fill = span_of(arrays.fill),
                        .start = span_of(arrays.start),
                        .row = rows_of(arrays),
                        .value = span_of(arrays.value)};
  require(view.start.size() == view.fill.size() + 1 && view.start.front() == 0 &&
              view.start.back() == static_cast<std::int64_t>(view.row.size()) &&
              view.row.size() == view.value.size(),
          "fill, indptr, indices, data: lengths do not match");
  require(std::ranges::is_sorted(view.start), "indptr: ascending");
  for (std::size_t column = 0; column < view.n_columns(); ++column) check_column(view, column);
  return view;
}

template <class View>
OwnedArrays find_in(const View& view, const Vector<std::int64_t>& weight, std::size_t max_bins,
                    int n_threads) {
  require(weight.shape(0) == view.n_rows, "weight: one for each row");
  require(max_bins >= 2 && max_bins <= 65534, "max_bins: 2 to 65534");
  Thresholds thresholds;
  {
    const Unlocked unlocked(kBinning);
    thresholds = find_thresholds(view, span_of(weight), max_bins, n_threads);
  }
  OwnedArrays out;
  for (auto& of_feature : thresholds) out.push_back(to_numpy(std::move(of_feature)));
  return out;
}

OwnedArrays find_thresholds_py(const Table& table, const Vector<std::int64_t>& weight,
                               std::size_t max_bins, int n_threads) {
  return find_in(table_view(table), weight, max_bins, n_threads);
}

OwnedArrays find_sparse_thresholds_py(const SparseArrays& columns,
                                      const Vector<std::int64_t>& weight, std::size_t max_bins,
                                      int n_threads) {
  return find_in(view_of(columns), weight, max_bins, n_threads);
}

void set_thresholds_py(BinnedBuilder& builder, std::size_t feature,
                       const Vector<double>& thresholds) {
  require(feature < builder.n_features() && !builder.has(feature),
          "feature: 0 to n_features - 1, not yet added");
  require(thresholds.shape(0) <= 65533, "thresholds: at most 65533 for each feature");
  builder.set_thresholds(feature, copy_of(thresholds));
}

std::unique_ptr<BinnedBuilder> make_builder(std::size_t n_rows,
                                            const std::optional<ThresholdArrays>& thresholds,
                                            const Vector<std::uint8_t>& is_categorical,
                                            const Storage& storage) {
  require(n_rows < (std::size_t{1} << 32), "n_rows: below 2^32");
  auto builder = std::make_unique<BinnedBuilder>(n_rows, span_of(is_categorical), storage);
  if (!thresholds) return builder;
  require(is_categorical.shape(0) == thresholds->size(), "is_categorical: one for each feature");
  for (std::size_t f = 0; f < thresholds->size(); ++f) {
    set_thresholds_py(*builder, f, (*thresholds)[f]);
  }
  return builder;
}

/// Copies the features, since other threads may change the array once the GIL is released.
std::vector<std::int32_t> checked_features(const BinnedBuilder& builder,
                                           const Vector<std::int32_t>& features,
                                           std::size_t n_columns) {
  require(features.shape(0) == n_columns, "features: one for each column");
  std::vector<std::int32_t> copy = copy_of(features);
  std::vector<std::int32_t> given = copy;
  std::ranges::sort(given);
  require(std::ranges::adjacent_find(given) == given.end(), "features: each once");
  for (const std::int32_t f : given) {
    require(f >= 0 && static_cast<std::size_t>(f) < builder.n_features(),
            "features: 0 to n_features - 1");
    require(!builder.has(static_cast<std::size_t>(f)), "features: each once");
    require(builder.has_bins(static_cast<std::size_t>(f)), "features: set_thresholds comes first");
  }
  return copy;
}

void add_block_py(BinnedBuilder& builder, const Vector<std::int32_t>& features, const Table& table,
                  int n_threads) {
  require(table.shape(0) == builder.n_rows(), "X: expected as many rows as in the table");
  const auto checked = checked_features(builder, features, table.shape(1));
  const Unlocked unlocked(kBinning);
  builder.add(table_view(table), checked, n_threads);
}

void add_sparse_py(BinnedBuilder& builder, const Vector<std::int32_t>& features,
                   const SparseArrays& columns, int n_threads) {
  const SparseView view = view_of(columns);
  require(view.n_rows == builder.n_rows(), "X: expected as many rows as in the table");
  const auto checked = checked_features(builder, features, view.n_columns());
  const Unlocked unlocked(kBinning);
  builder.add(view, checked, n_threads);
}

void add_rows_py(BinnedBuilder& builder, const Vector<std::int32_t>& features, const Table& table,
                 std::size_t first_row, int n_threads) {
  const std::size_t n_rows = builder.n_rows();
  require(first_row <= n_rows && table.shape(0) <= n_rows - first_row,
          "X: its rows are outside the table");
  const auto checked = checked_features(builder, features, table.shape(1));
  const Unlocked unlocked(kBinning);
  builder.add_rows(table_view(table), checked, first_row, n_threads);
}

nb::ndarray<nb::numpy, std::uint64_t> finish_features_py(BinnedBuilder& builder,
                                                         const Vector<std::int32_t>& features,
                                                         int n_threads) {
  const auto checked = checked_features(builder, features, features.shape(0));
  std::vector<std::uint64_t> digests;
  {
    const Unlocked unlocked(kBinning);
    builder.finish_features(checked, n_threads);
  }
  for (const std::int32_t f : checked) {
    digests.push_back(builder.digest(static_cast<std::size_t>(f)));
  }
  return to_numpy(std::move(digests));
}

void set_common_code_py(BinnedBuilder& builder, std::size_t feature, std::uint32_t common,
                        std::size_t n_listed, std::size_t n_rows) {
  require(feature < builder.n_features() && !builder.has(feature),
          "feature: 0 to n_features - 1, not yet added");
  require(builder.has_bins(feature), "feature: set_thresholds comes first");
  require(common < builder.n_bins(feature), "common: a code of the feature");
  require(n_listed <= n_rows, "n_listed: at most n_rows");
  builder.set_common_code(feature, common, n_listed, n_rows);
}

void check_whole(const BinnedBuilder& builder) {
  require(builder.n_features() > 0 && builder.has_all(), "every feature must be added, once");
}

/// Requires sparse features, each once, and no more bins in a bundle than a code can hold.
void check_bundles(const BinnedBuilder& builder, const std::vector<Bundle>& bundles) {
  std::vector<std::uint32_t> all;
  for (const Bundle& bundle : bundles) {
    require(!bundle.empty(), "bundles: at least one feature in each");
    all.insert(all.end(), bundle.begin(), bundle.end());
  }
  std::ranges::sort(all);
  require(std::ranges::adjacent_find(all) == all.end(), "bundles: each feature once");
  require(std::ranges::all_of(all, [&](std::uint32_t f) { return builder.is_sparse(f); }),
          "bundles: sparse features");
  require(builder.fit_a_code(bundles), "bundles: too many bins for a code");
}

std::vector<Bundle> bundles_py(const BinnedBuilder& builder) {
  check_whole(builder);
  const Unlocked unlocked(kBinning);
  return builder.bundles();
}

nb::ndarray<nb::numpy, std::int32_t> conflicts_py(const BinnedBuilder& builder,
                                                  const std::vector<Bundle>& bundles) {
  check_whole(builder);
  check_bundles(builder, bundles);
  std::vector<std::int32_t> conflicts;
  {
    const Unlocked unlocked(kBinning);
    conflicts = builder.conflicts(bundles);
  }
  return to_numpy(std::move(conflicts));
}

std::shared_ptr<Binned> finish_py(BinnedBuilder& builder,
                                  const std::optional<std::vector<Bundle>>& bundles) {
  check_whole(builder);
  if (bundles) check_bundles(builder, *bundles);
  const Unlocked unlocked(kBinning);
  if (bundles) {
    const std::vector<std::int32_t> conflicts = builder.conflicts(*bundles);
    require(std::ranges::count(conflicts, 1) == 0, "bundles: features without conflicts");
  }
  return std::make_shared<Binned>(builder.finish(bundles ? *bundles : builder.bundles()));
}

std::shared_ptr<Binned> take_py(const Binned& binned, const Vector<std::int64_t>& rows) {
  const std::vector<std::int64_t> copy = copy_of(rows);
  for (const std::int64_t row : copy) {
    require(row >= 0 && static_cast<std::size_t>(row) < binned.n_rows, "rows: 0 to n_rows - 1");
  }
  const Unlocked unlocked(kBinning);
  return std::make_shared<Binned>(take_rows(binned, copy));
}

nb::ndarray<nb::numpy, std::uint16_t> codes_py(const Binned& binned,
                                               const std::optional<Vector<std::int32_t>>& given) {
  std::vector<std::int32_t> features(binned.layout.n_features());
  std::iota(features.begin(), features.end(), 0);
  if (given) features = copy_of(*given);
  for (const std::int32_t f : features) {
    require(f >= 0 && static_cast<std::size_t>(f) < binned.layout.n_features(),
            "features: 0 to n_features - 1");
  }
  return to_numpy(codes_of(binned, features), {binned.n_rows, features.size()});
}

/// Defines a property that lists one field of all features.
template <class T, class Field>
void feature_property(nb::class_<Binned>& binned_class, const char* name, const Field& field,
                      const char* doc) {
  binned_class.def_prop_ro(
      name,
      [field](const Binned& binned) {
        std::vector<T> out;
        for (const Feature& feature : binned.layout.features) out.push_back(field(feature));
        return out;
      },
      doc);
}

void bind_features(nb::class_<Binned>& binned_class) {
  feature_property<std::uint32_t>(
      binned_class, "n_bins", [](const Feature& f) { return f.n_bins; },
      "Number of bins of each feature, including the one for missing values.");
  feature_property<bool>(
      binned_class, "is_sparse", [](const Feature& f) { return f.is_sparse; },
      "Whether only the rows without the feature's most common code are stored.");
  feature_property<bool>(
      binned_class, "is_bundled", [](const Feature& f) { return f.is_bundled; },
      "Whether a sparse feature is in a bundle.");
  feature_property<bool>(
      binned_class, "is_categorical", [](const Feature& f) { return f.is_categorical; },
      "Whether splits on the feature are sets of codes.");
}

void bind_binned(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Binned> binned_class(m, "Binned", "A table of bin codes.");
  bind_features(binned_class);
  binned_class.def_ro("n_rows", &Binned::n_rows)
      .def_prop_ro("n_features", [](const Binned& binned) { return binned.layout.n_features(); })
      .def_prop_ro(
          "total_bins", [](const Binned& binned) { return binned.layout.total_bins; },
          "Number of bins of all features.")
      .def_prop_ro(
          "code_bytes", [](const Binned& binned) { return binned.columns.index() + 1; },
          "Bytes of a code: 1 or 2.")
      .def("state", &state_of, "The table as a dict of flat arrays.")
      .def_static("from_state", &binned_from_state, "state"_a,
                  "The table of such a dict; ValueError if it is invalid.")
      .def("take", &take_py, "rows"_a.noconvert(), "The given rows, by number, as a table.")
      .def("codes", &codes_py, "features"_a.noconvert() = nb::none(),
           "A copy of the codes of some or all features, of shape (n_rows, n_features).");
}

}  // namespace

void bind_binning(nb::module_& m) {
  using namespace nb::literals;
  bind_binned(m);
  m.def("find_thresholds", &find_thresholds_py, "X"_a.noconvert(), "weight"_a.noconvert(),
        "max_bins"_a, "n_threads"_a, "Thresholds between the value bins of each column.");
  nb::class_<SparseArrays>(
      m, "SparseColumns",
      "The columns of a csc matrix, without a copy; rows that are not listed have the fill value.")
      .def(nb::new_(&make_sparse<std::int32_t>), "n_rows"_a, "fill"_a.noconvert(),
           "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert())
      .def(nb::new_(&make_sparse<std::uint32_t>), "n_rows"_a, "fill"_a.noconvert(),
           "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert());
  m.def("find_sparse_thresholds", &find_sparse_thresholds_py, "columns"_a, "weight"_a.noconvert(),
        "max_bins"_a, "n_threads"_a, "Thresholds between the value bins of each sparse column.");
  nb::class_<BinnedBuilder>(m, "BinnedBuilder", "Codes a table, a few columns at a time.")
      .def(nb::new_(&make_builder), "n_rows"_a, "thresholds"_a.none(),
           "is_categorical"_a.noconvert(), "storage"_a = Storage())
      .def("set_thresholds", &set_thresholds_py, "feature"_a, "thresholds"_a.noconvert(),
           "Set the bins of a feature; to be called before its values are added.")
      .def("add_block", &add_block_py, "features"_a.noconvert(), "X"_a.noconvert(), "n_threads"_a,
           "Code the given features, which are the columns of X.")
      .def("add_sparse", &add_sparse_py, "features"_a.noconvert(), "columns"_a, "n_threads"_a,
           "Code the given features, which are the sparse columns.")
      .def("add_rows", &add_rows_py, "features"_a.noconvert(), "X"_a.noconvert(), "first_row"_a,
           "n_threads"_a, "Code the rows of the given features from first_row on.")
      .def("finish_features", &finish_features_py, "features"_a.noconvert(), "n_threads"_a,
           "Finish features that were coded by add_rows; return the digests of their columns.")
      .def("set_common_code", &set_common_code_py, "feature"_a, "common"_a, "n_listed"_a,
           "n_rows"_a, "Set the common code of a feature, and how many of all rows have another.")
      .def("bundles", &bundles_py, "Bundles of sparse features that never list the same row.")
      .def("conflicts", &conflicts_py, "bundles"_a,
           "For each feature, 1 if it conflicts with an earlier one of its bundle in some row, "
           "else 0.")
      .def("finish", &finish_py, "bundles"_a = nb::none(),
           "Return the binned table and empty the builder; without bundles, they are found in the "
           "rows.");
}

}  // namespace abcgbm
