#include "data/binned.hpp"

#include <utility>

#include "base/fill.hpp"
#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsBetweenChecks = 4096;

/// The sparse columns of a table before they are laid out, in the order of its sparse features.
struct Sparse {
  const Layout& layout;
  std::vector<SparseColumn>& columns;

  /// Calls each(feature, column) for the features that satisfy a predicate.
  template <class Has, class Each>
  void for_each(const Has& has, const Each& each) const {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::uint32_t f = layout.sparse_features[i];
      if (has(layout.features[f])) each(layout.features[f], columns[i]);
    }
  }
};

/// Adds a column for every bundle: the code of a row is its bin in any of the bundled features.
template <class Code>
void add_bundles(const Sparse& sparse, std::span<const Bundle> bundles, std::size_t n_rows,
                 Columns<Code>& columns) {
  for (const Bundle& bundle : bundles) {
    const Feature& first = sparse.layout.features[bundle.front()];
    columns.emplace_back(n_rows, static_cast<Code>(first.common),
                         storage_of(sparse.columns.front().row));
  }
  const auto is_bundled = [](const Feature& feature) { return feature.is_bundled; };
  sparse.for_each(is_bundled, [&](const Feature& feature, const SparseColumn& column) {
    const std::uint32_t begin = sparse.layout.begin_in_column(feature);
    LargeVector<Code>& codes = columns[feature.column];
    for (std::size_t i = 0; i < column.row.size(); ++i) {
      codes[column.row[i]] = static_cast<Code>(begin + column.code[i]);
    }
  });
}

/// Builds the row-wise copy of the listed features.
void fill_by_row(Binned& binned) {
  const Layout& layout = binned.layout;
  const auto features =
      std::span(layout.by_bin).subspan(layout.first_feature_from(layout.column_bin.back()));
  if (features.empty()) return;
  ListedCodes& listed = binned.listed;
  const Storage storage = storage_of(listed.by_column.front().row);
  listed.row_start = zeros<std::size_t>(binned.n_rows + 1, storage);
  for (const SparseColumn& column : listed.by_column) {
    for (const std::uint32_t row : column.row) ++listed.row_start[std::size_t{row} + 1];
  }
  for (std::size_t i = 0; i < binned.n_rows; ++i) listed.row_start[i + 1] += listed.row_start[i];
  listed.bin = LargeVector<std::uint32_t>(listed.row_start.back(), storage);
  LargeVector<std::size_t> next(listed.row_start.begin(), listed.row_start.end() - 1, storage);
  for (const std::uint32_t f : features) {
    check_interrupt();
    const Feature& feature = layout.features[f];
    const SparseColumn& column = listed.by_column[feature.column];
    for (std::size_t i = 0; i < column.row.size(); ++i) {
      listed.bin[next[column.row[i]]++] = feature.offset + column.code[i];
    }
  }
}

template <class Code>
LargeVector<Code> take(const LargeVector<Code>& codes, std::span<const std::int64_t> rows) {
  auto out = reserved<Code>(rows.size(), storage_of(codes));
  for (const std::int64_t row : rows) out.push_back(codes[static_cast<std::size_t>(row)]);
  return out;
}

/// The listed features of a subset of the rows.
std::vector<SparseColumn> take_listed(const Binned& binned, std::span<const std::int64_t> rows) {
  const Layout& layout = binned.layout;
  if (binned.listed.by_column.empty()) return {};
  std::vector<SparseColumn> columns(binned.listed.by_column.size(),
                                    SparseColumn(storage_of(binned.listed.bin)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0) check_interrupt();
    for (const std::uint32_t bin : binned.listed.bins_of_row(static_cast<std::size_t>(rows[i]))) {
      const std::size_t f = layout.by_bin[layout.first_feature_from(std::size_t{bin} + 1) - 1];
      const Feature& feature = layout.features[f];
      columns[feature.column].row.push_back(static_cast<std::uint32_t>(i));
      columns[feature.column].code.push_back(static_cast<std::uint16_t>(bin - feature.offset));
    }
  }
  return columns;
}

/// All codes of one feature.
std::vector<std::uint16_t> feature_codes(const Binned& binned, const Feature& feature) {
  std::vector<std::uint16_t> codes(binned.n_rows, static_cast<std::uint16_t>(feature.common));
  if (feature.is_listed()) {
    const SparseColumn& column = binned.listed.by_column[feature.column];
    for (std::size_t i = 0; i < column.row.size(); ++i) codes[column.row[i]] = column.code[i];
    return codes;
  }
  const std::uint32_t begin = binned.layout.begin_in_column(feature);
  std::visit(
      [&](const auto& columns) {
        const auto& column = columns[feature.column];
        for (std::size_t i = 0; i < codes.size(); ++i) {
          const std::uint32_t code = column[i] - begin;  // beyond n_bins: another feature's
          if (code < feature.n_bins) codes[i] = static_cast<std::uint16_t>(code);
        }
      },
      binned.columns);
  return codes;
}

}  // namespace

Binned make_binned(std::size_t n_rows, Layout layout, std::span<const Bundle> bundles,
                   AnyColumns dense, std::vector<SparseColumn> sparse) {
  Binned binned{
      .n_rows = n_rows, .layout = std::move(layout), .columns = std::move(dense), .listed = {}};
  const Sparse given{.layout = binned.layout, .columns = sparse};
  std::visit([&](auto& columns) { add_bundles(given, bundles, n_rows, columns); }, binned.columns);
  const auto is_listed = [](const Feature& feature) { return feature.is_listed(); };
  given.for_each(is_listed, [&](const Feature&, SparseColumn& column) {
    binned.listed.by_column.push_back(std::move(column));
  });
  sparse.clear();
  fill_by_row(binned);
  return binned;
}

Binned stored_binned(std::size_t n_rows, Layout layout, AnyColumns columns,
                     std::vector<SparseColumn> listed) {
  Binned binned{.n_rows = n_rows,
                .layout = std::move(layout),
                .columns = std::move(columns),
                .listed = {.by_column = std::move(listed), .row_start = {}, .bin = {}}};
  fill_by_row(binned);
  return binned;
}

Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows) {
  AnyColumns taken;
  std::visit(
      [&](const auto& from) {
        std::decay_t<decltype(from)> columns;
        for (const auto& column : from) columns.push_back(take(column, rows));
        taken = std::move(columns);
      },
      binned.columns);
  return stored_binned(rows.size(), binned.layout, std::move(taken), take_listed(binned, rows));
}

std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features) {
  std::vector<std::uint16_t> out(binned.n_rows * features.size());
  for (std::size_t c = 0; c < features.size(); ++c) {
    const Feature& feature = binned.layout.features[static_cast<std::size_t>(features[c])];
    const std::vector<std::uint16_t> codes = feature_codes(binned, feature);
    for (std::size_t i = 0; i < codes.size(); ++i) out[i * features.size() + c] = codes[i];
  }
  return out;
}

}  // namespace abcgbm
