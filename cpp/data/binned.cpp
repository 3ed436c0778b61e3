#include "data/binned.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/parallel.hpp"
#include "data/bundles.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsBetweenChecks = 4096;
constexpr std::size_t kBinsPerBlock = 2048;  // sums of two numbers are then 32 kB

/// The number of features whose bins lie before `bin`.
std::size_t first_feature_from(const Binned& binned, std::size_t bin) {
  const auto offset = [&](std::uint32_t f) { return std::size_t{binned.features[f].offset}; };
  return static_cast<std::size_t>(std::ranges::lower_bound(binned.by_bin, bin, {}, offset) -
                                  binned.by_bin.begin());
}

/// Numbers the bins in the order of by_bin, and the columns that they begin.
void lay_out_bins(Binned& binned, const std::vector<Bundle>& bundles) {
  std::vector<std::uint8_t> is_placed(binned.n_features(), 0);
  std::size_t total = 0;
  const auto place = [&](std::uint32_t f) {
    binned.features[f].offset = static_cast<std::uint32_t>(total);
    binned.by_bin.push_back(f);
    is_placed[f] = 1;
    total += binned.features[f].n_bins;
  };
  const auto begin_column = [&] { binned.column_bin.push_back(static_cast<std::uint32_t>(total)); };
  for (std::uint32_t f = 0; f < binned.n_features(); ++f) {
    if (binned.features[f].is_sparse) continue;
    begin_column();
    place(f);
  }
  for (const Bundle& bundle : bundles) {
    begin_column();
    std::ranges::for_each(bundle, place);
  }
  begin_column();  // the end of the last
  for (const std::uint32_t f : binned.sparse) {
    if (is_placed[f] == 0) place(f);
  }
  if (total > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("too many bins in all: 2^32 or more");
  }
  binned.total_bins = total;
}

/// Which bin each row has in any column of the bundle.
template <class Code>
std::vector<Code> bundle_codes(const Binned& binned, const Bundle& bundle) {
  const Feature& first = binned.features[bundle.front()];
  std::vector<Code> codes(binned.n_rows, static_cast<Code>(first.common));
  for (const std::uint32_t f : bundle) {
    const Feature& feature = binned.features[f];
    const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
    const std::uint32_t begin = feature.offset - first.offset;
    for (std::size_t i = 0; i < column.row.size(); ++i) {
      codes[column.row[i]] = static_cast<Code>(begin + column.code[i]);
    }
  }
  return codes;
}

/// Bundled features are read from their bundle's column from now on.
void drop_bundled(Binned& binned, const std::vector<Bundle>& bundles) {
  const std::size_t n_dense = binned.n_features() - binned.sparse.size();
  std::vector<SparseColumn> columns = std::exchange(binned.sparse_codes.by_column, {});
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    for (const std::uint32_t f : bundles[i]) {
      binned.features[f].is_bundled = true;
      binned.features[f].column = static_cast<std::uint32_t>(n_dense + i);
    }
  }
  std::vector<SparseColumn>& kept = binned.sparse_codes.by_column;
  for (const std::uint32_t f : binned.sparse) {
    Feature& feature = binned.features[f];
    if (feature.is_bundled) continue;
    kept.push_back(std::move(columns[feature.column]));
    feature.column = static_cast<std::uint32_t>(kept.size() - 1);
  }
}

/// Lays out by row the codes of sparse columns.
void fill_by_row(Binned& binned) {
  const auto free =
      std::span(binned.by_bin).subspan(first_feature_from(binned, binned.column_bin.back()));
  if (free.empty()) return;
  SparseCodes& codes = binned.sparse_codes;
  const auto column_of = [&](std::uint32_t f) -> const SparseColumn& {
    return codes.by_column[binned.features[f].column];
  };
  codes.row_start.assign(binned.n_rows + 1, 0);
  for (const std::uint32_t f : free) {
    for (const std::uint32_t row : column_of(f).row) ++codes.row_start[row + 1];
  }
  for (std::size_t i = 0; i < binned.n_rows; ++i) codes.row_start[i + 1] += codes.row_start[i];
  codes.bin.resize(codes.row_start.back());
  std::vector<std::size_t> next(codes.row_start.begin(), codes.row_start.end() - 1);
  for (const std::uint32_t f : free) {
    check_interrupt();
    const SparseColumn& column = column_of(f);
    for (std::size_t i = 0; i < column.row.size(); ++i) {
      codes.bin[next[column.row[i]]++] = binned.features[f].offset + column.code[i];
    }
  }
}

template <class Code>
std::vector<Code> take(const std::vector<Code>& codes, std::span<const std::int64_t> rows) {
  std::vector<Code> out;
  out.reserve(rows.size());
  for (const std::int64_t row : rows) out.push_back(codes[static_cast<std::size_t>(row)]);
  return out;
}

/// Some rows of the sparse columns: the rows' bins say which columns they are in.
std::vector<SparseColumn> take_sparse(const Binned& binned, std::span<const std::int64_t> rows) {
  std::vector<SparseColumn> columns(binned.sparse_codes.by_column.size());
  if (columns.empty()) return columns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0) check_interrupt();
    for (const std::uint32_t bin : binned.sparse_codes.bins_of(static_cast<std::size_t>(rows[i]))) {
      const std::size_t f = binned.by_bin[first_feature_from(binned, std::size_t{bin} + 1) - 1];
      const Feature& feature = binned.features[f];
      columns[feature.column].row.push_back(static_cast<std::uint32_t>(i));
      columns[feature.column].code.push_back(static_cast<std::uint16_t>(bin - feature.offset));
    }
  }
  return columns;
}

/// All codes of one feature.
std::vector<std::uint16_t> codes_of(const Binned& binned, const Feature& feature) {
  std::vector<std::uint16_t> codes(binned.n_rows, static_cast<std::uint16_t>(feature.common));
  if (feature.is_listed()) {
    const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
    for (std::size_t i = 0; i < column.row.size(); ++i) codes[column.row[i]] = column.code[i];
    return codes;
  }
  const std::uint32_t begin = binned.begin_in_column(feature);
  std::visit(
      [&](const auto& columns) {
        const auto& column = columns[feature.column];
        for (std::size_t i = 0; i < codes.size(); ++i) {
          const std::uint32_t code = column[i] - begin;  // of another feature: out of range
          if (code < feature.n_bins) codes[i] = static_cast<std::uint16_t>(code);
        }
      },
      binned.columns);
  return codes;
}

}  // namespace

void arrange(Binned& binned) {
  std::visit(
      [&](auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        const std::size_t most_bins = std::size_t{std::numeric_limits<Code>::max()} + 1;
        const std::vector<Bundle> bundles = find_bundles(binned, most_bins);
        lay_out_bins(binned, bundles);
        for (const Bundle& bundle : bundles) {
          columns.push_back(bundle_codes<Code>(binned, bundle));
        }
        drop_bundled(binned, bundles);
      },
      binned.columns);
  fill_by_row(binned);
}

void arrange(Binned& binned, const std::vector<Bundle>& bundles) {
  lay_out_bins(binned, bundles);
  drop_bundled(binned, bundles);
  fill_by_row(binned);
}

std::vector<Block> blocks_of(const Binned& binned, std::size_t n_wanted) {
  const std::vector<std::uint32_t>& bin = binned.column_bin;
  const std::size_t n_columns = binned.n_columns();
  const std::size_t most_columns = std::max<std::size_t>(1, n_columns / n_wanted);
  std::vector<Block> blocks;
  const auto add = [&](std::size_t first, std::size_t last, std::size_t first_bin,
                       std::size_t last_bin) {
    const std::size_t begin = first_feature_from(binned, first_bin);
    const std::size_t end = first_feature_from(binned, last_bin);
    blocks.push_back({.first_column = first,
                      .last_column = last,
                      .first_bin = first_bin,
                      .last_bin = last_bin,
                      .features = std::span(binned.by_bin).subspan(begin, end - begin)});
  };
  for (std::size_t first = 0, last = 0; first < n_columns; first = last) {
    last = first + 1;
    while (last < std::min(n_columns, first + most_columns) &&
           bin[last + 1] - bin[first] <= kBinsPerBlock) {
      ++last;
    }
    add(first, last, bin[first], bin[last]);
  }
  if (bin.back() < binned.total_bins) add(n_columns, n_columns, bin.back(), binned.total_bins);
  return blocks;
}

Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows) {
  Binned out = {.n_rows = rows.size(),
                .total_bins = binned.total_bins,
                .features = binned.features,
                .sparse = binned.sparse,
                .by_bin = binned.by_bin,
                .column_bin = binned.column_bin,
                .columns = {},
                .sparse_codes = {}};
  std::visit(
      [&](const auto& from) {
        std::decay_t<decltype(from)> columns;
        for (const auto& column : from) columns.push_back(take(column, rows));
        out.columns = std::move(columns);
      },
      binned.columns);
  out.sparse_codes.by_column = take_sparse(binned, rows);
  fill_by_row(out);
  return out;
}

std::vector<std::uint16_t> codes_of(const Binned& binned, std::span<const std::int32_t> features) {
  std::vector<std::uint16_t> out(binned.n_rows * features.size());
  for (std::size_t c = 0; c < features.size(); ++c) {
    const auto codes = codes_of(binned, binned.features[static_cast<std::size_t>(features[c])]);
    for (std::size_t i = 0; i < codes.size(); ++i) out[i * features.size() + c] = codes[i];
  }
  return out;
}

}  // namespace abcgbm
