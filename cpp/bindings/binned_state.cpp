#include "bindings/binned_state.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "bindings/arrays.hpp"

namespace abcgbm {
namespace {

using Bundles = std::vector<Bundle>;

/// The feature is in no bundle.
constexpr std::int32_t kNone = -1;

/// A copy of the fields of a state.
struct State {
  std::size_t n_rows = 0;
  std::vector<std::uint32_t> n_bins;  // by feature, like the next four
  std::vector<std::uint32_t> common;
  std::vector<std::uint8_t> is_categorical;
  std::vector<std::uint8_t> is_sparse;
  std::vector<std::int32_t> bundle;
  std::vector<std::int64_t> start;  // of each listed sparse column, and the end
  std::vector<std::uint32_t> row;
  std::vector<std::uint16_t> code;

  std::size_t n_features() const { return n_bins.size(); }
};

// ------------------------------------------------------------------------------------- table to
// state

template <class T, class Field>
nb::object by_feature(const Binned& binned, const Field& field) {
  std::vector<T> out;
  for (const Feature& feature : binned.layout.features) {
    out.push_back(static_cast<T>(field(feature)));
  }
  return nb::cast(to_numpy(std::move(out)));
}

/// All columns of codes as an array of shape (n_columns, n_rows).
nb::object columns_of(const Binned& binned) {
  return std::visit(
      [&](const auto& columns) {
        typename std::decay_t<decltype(columns)>::value_type flat;
        flat.reserve(columns.size() * binned.n_rows);
        for (const auto& column : columns) flat.insert(flat.end(), column.begin(), column.end());
        return nb::cast(to_numpy(std::move(flat), {columns.size(), binned.n_rows}));
      },
      binned.columns);
}

void put_sparse(const Binned& binned, nb::dict& state) {
  std::vector<std::int64_t> start = {0};
  std::vector<std::uint32_t> row;
  std::vector<std::uint16_t> code;
  for (const SparseColumn& column : binned.listed.by_column) {
    row.insert(row.end(), column.row.begin(), column.row.end());
    code.insert(code.end(), column.code.begin(), column.code.end());
    start.push_back(static_cast<std::int64_t>(row.size()));
  }
  state["start"] = nb::cast(to_numpy(std::move(start)));
  state["row"] = nb::cast(to_numpy(std::move(row)));
  state["code"] = nb::cast(to_numpy(std::move(code)));
}

// ------------------------------------------------------------------------------------- state to
// table

nb::object field_of(const nb::dict& state, const char* name) {
  require(state.contains(name), (std::string("state: no ") + name).c_str());
  return nb::borrow(state[name]);
}

template <class T>
std::vector<T> vector_of(const nb::dict& state, const char* name) {
  Vector<T> array;
  const bool is_array = nb::try_cast(field_of(state, name), array, false);
  require(is_array, (std::string("state: ") + name + " has the wrong type").c_str());
  return copy_of(array);
}

State read(const nb::dict& state) {
  State out;
  require(nb::try_cast(field_of(state, "n_rows"), out.n_rows), "state: n_rows has the wrong type");
  out.n_bins = vector_of<std::uint32_t>(state, "n_bins");
  out.common = vector_of<std::uint32_t>(state, "common");
  out.is_categorical = vector_of<std::uint8_t>(state, "is_categorical");
  out.is_sparse = vector_of<std::uint8_t>(state, "is_sparse");
  out.bundle = vector_of<std::int32_t>(state, "bundle");
  out.start = vector_of<std::int64_t>(state, "start");
  out.row = vector_of<std::uint32_t>(state, "row");
  out.code = vector_of<std::uint16_t>(state, "code");
  return out;
}

/// The features, before the layout.
std::vector<Feature> features_of(const State& state) {
  const std::size_t n = state.n_features();
  require(n > 0 && state.common.size() == n && state.is_categorical.size() == n &&
              state.is_sparse.size() == n && state.bundle.size() == n,
          "state: one of n_bins, common, is_categorical, is_sparse, bundle for each feature");
  require(state.n_rows < (std::size_t{1} << 32), "state: n_rows below 2^32");
  std::vector<Feature> features(n);
  for (std::size_t f = 0; f < n; ++f) {
    const bool is_sparse = state.is_sparse[f] != 0;
    require(state.n_bins[f] >= 2 && state.n_bins[f] <= 65535, "state: n_bins is 2 to 65535");
    require(state.common[f] < state.n_bins[f], "state: common is a code");
    require(state.bundle[f] == kNone || (is_sparse && state.bundle[f] >= 0),
            "state: bundle is -1, or a number from 0 on for a sparse feature");
    features[f] = {.offset = 0,
                   .n_bins = state.n_bins[f],
                   .column = 0,
                   .common = state.common[f],
                   .is_sparse = is_sparse,
                   .is_bundled = false,
                   .is_categorical = state.is_categorical[f] != 0};
  }
  return features;
}

Bundles bundles_of(const State& state) {
  Bundles bundles;
  for (std::size_t f = 0; f < state.n_features(); ++f) {
    if (state.bundle[f] == kNone) continue;
    const auto at = static_cast<std::size_t>(state.bundle[f]);
    require(at < state.n_features(), "state: bundle is below n_features");
    bundles.resize(std::max(bundles.size(), at + 1));
    bundles[at].push_back(static_cast<std::uint32_t>(f));
  }
  for (const auto& bundle : bundles) require(!bundle.empty(), "state: no bundle is empty");
  return bundles;
}

/// The number of codes of each column: those of its feature or of its bundle.
std::vector<std::size_t> codes_by_column(const std::vector<Feature>& features,
                                         const Bundles& bundles) {
  std::vector<std::size_t> n_codes;
  for (const Feature& feature : features) {
    if (!feature.is_sparse) n_codes.push_back(feature.n_bins);
  }
  for (const auto& bundle : bundles) {
    std::size_t n = 0;
    for (const std::uint32_t f : bundle) n += features[f].n_bins;
    n_codes.push_back(n);
  }
  return n_codes;
}

template <class Code>
Columns<Code> checked_columns(const Matrix<Code>& given, const std::vector<std::size_t>& n_codes,
                              std::size_t n_rows) {
  require(given.shape(0) == n_codes.size() && given.shape(1) == n_rows,
          "state: columns has the wrong shape");
  Columns<Code> columns;
  for (std::size_t c = 0; c < n_codes.size(); ++c) {
    require(n_codes[c] <= std::size_t{std::numeric_limits<Code>::max()} + 1,
            "state: a bundle of too many codes");
    const Code* first = given.data() + c * n_rows;
    columns.emplace_back(first, first + n_rows);
    require(std::ranges::all_of(columns.back(), [&](Code code) { return code < n_codes[c]; }),
            "state: a code that its column does not have");
  }
  return columns;
}

AnyColumns columns_from(const State& state, const std::vector<std::size_t>& n_codes,
                        const nb::object& given) {
  const bool is_narrow =
      std::ranges::all_of(state.n_bins, [](std::uint32_t n_bins) { return n_bins <= 256; });
  Matrix<std::uint8_t> narrow;
  Matrix<std::uint16_t> wide;
  if (is_narrow && nb::try_cast(given, narrow, false)) {
    return checked_columns(narrow, n_codes, state.n_rows);
  }
  require(!is_narrow && nb::try_cast(given, wide, false), "state: columns has the wrong type");
  return checked_columns(wide, n_codes, state.n_rows);
}

SparseColumn sparse_column(const State& state, std::size_t at, const Feature& feature) {
  SparseColumn column;
  std::int64_t before = -1;
  for (auto i = static_cast<std::size_t>(state.start[at]);
       i < static_cast<std::size_t>(state.start[at + 1]); ++i) {
    require(state.row[i] > before && state.row[i] < state.n_rows,
            "state: rows of a sparse column ascend, from 0 to n_rows - 1");
    require(state.code[i] < feature.n_bins && state.code[i] != feature.common,
            "state: a code that a sparse column cannot list");
    before = state.row[i];
    column.row.push_back(state.row[i]);
    column.code.push_back(state.code[i]);
  }
  return column;
}

std::vector<SparseColumn> listed_from(const State& state, const std::vector<Feature>& features) {
  const auto is_listed = [&](std::size_t f) {
    return features[f].is_sparse && state.bundle[f] == kNone;
  };
  std::size_t n_listed = 0;
  for (std::size_t f = 0; f < features.size(); ++f) n_listed += is_listed(f) ? 1 : 0;
  require(state.start.size() == n_listed + 1 && state.start.front() == 0 &&
              state.start.back() == static_cast<std::int64_t>(state.row.size()) &&
              state.row.size() == state.code.size() && std::ranges::is_sorted(state.start),
          "state: start, row and code do not match");
  std::vector<SparseColumn> columns;
  for (std::size_t f = 0; f < features.size(); ++f) {
    if (is_listed(f)) columns.push_back(sparse_column(state, columns.size(), features[f]));
  }
  return columns;
}

}  // namespace

BinnedState state_of(const Binned& binned) {
  const std::size_t n_dense = binned.layout.n_features() - binned.layout.sparse_features.size();
  BinnedState state;
  state["n_rows"] = nb::cast(binned.n_rows);
  state["n_bins"] = by_feature<std::uint32_t>(binned, [](const Feature& f) { return f.n_bins; });
  state["common"] = by_feature<std::uint32_t>(binned, [](const Feature& f) { return f.common; });
  state["is_categorical"] =
      by_feature<std::uint8_t>(binned, [](const Feature& f) { return f.is_categorical; });
  state["is_sparse"] =
      by_feature<std::uint8_t>(binned, [](const Feature& f) { return f.is_sparse; });
  state["bundle"] = by_feature<std::int32_t>(binned, [&](const Feature& f) {
    return f.is_bundled ? static_cast<std::int32_t>(f.column - n_dense) : kNone;
  });
  state["columns"] = columns_of(binned);
  put_sparse(binned, state);
  return state;
}

std::shared_ptr<Binned> binned_from_state(const BinnedState& given) {
  const State state = read(given);
  std::vector<Feature> features = features_of(state);
  const Bundles bundles = bundles_of(state);
  const auto n_codes = codes_by_column(features, bundles);
  AnyColumns columns = columns_from(state, n_codes, field_of(given, "columns"));
  std::vector<SparseColumn> listed = listed_from(state, features);
  return std::make_shared<Binned>(stored_binned(state.n_rows,
                                                make_layout(std::move(features), bundles),
                                                std::move(columns), std::move(listed)));
}

}  // namespace abcgbm
