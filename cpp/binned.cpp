#include "binned.hpp"

#include <algorithm>
#include <utility>

#include "parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsPerTile = 4096;

/// Lays the codes out by row, tile by tile.
template <class Code>
void fill_dense_by_row(DenseCodes<Code>& codes, std::size_t n_rows, int n_threads) {
  const std::size_t n_columns = codes.by_column.size();
  const std::size_t n_tiles = (n_rows + kRowsPerTile - 1) / kRowsPerTile;
  codes.by_row.resize(n_rows * n_columns);
  parallel_for(n_tiles, n_threads, [&](std::size_t tile, std::size_t) {
    const std::size_t stop = std::min((tile + 1) * kRowsPerTile, n_rows);
    for (std::size_t c = 0; c < n_columns; ++c) {
      const Code* from = codes.by_column[c].data();
      for (std::size_t i = tile * kRowsPerTile; i < stop; ++i) {
        codes.by_row[i * n_columns + c] = from[i];
      }
    }
  });
}

/// Lays the codes of sparse columns out by row.
void fill_sparse_by_row(Binned& binned) {
  if (binned.sparse.empty()) return;
  SparseCodes& codes = binned.sparse_codes;
  codes.row_start.assign(binned.n_rows + 1, 0);
  for (const SparseColumn& column : codes.by_column) {
    for (const std::uint32_t row : column.row) ++codes.row_start[row + 1];
  }
  for (std::size_t i = 0; i < binned.n_rows; ++i) codes.row_start[i + 1] += codes.row_start[i];
  codes.bin.resize(codes.row_start.back());
  std::vector<std::size_t> next(codes.row_start.begin(), codes.row_start.end() - 1);
  for (const std::uint32_t f : binned.sparse) {
    check_interrupt();
    const Feature& feature = binned.features[f];
    const SparseColumn& column = codes.by_column[feature.column];
    for (std::size_t i = 0; i < column.row.size(); ++i) {
      codes.bin[next[column.row[i]]++] = feature.offset + column.code[i];
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

/// Some rows of the sparse columns: their bins say which columns they are in.
std::vector<SparseColumn> take_sparse(const Binned& binned, std::span<const std::int64_t> rows) {
  std::vector<SparseColumn> columns(binned.sparse.size());
  if (columns.empty()) return columns;
  std::vector<std::uint32_t> offsets;
  offsets.reserve(columns.size());
  for (const std::uint32_t f : binned.sparse) offsets.push_back(binned.features[f].offset);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsPerTile == 0) check_interrupt();
    for (const std::uint32_t bin : binned.sparse_codes.bins_of(static_cast<std::size_t>(rows[i]))) {
      const auto above = std::ranges::upper_bound(offsets, bin);
      const auto column = static_cast<std::size_t>(above - offsets.begin()) - 1;
      columns[column].row.push_back(static_cast<std::uint32_t>(i));
      columns[column].code.push_back(static_cast<std::uint16_t>(bin - offsets[column]));
    }
  }
  return columns;
}

/// All codes of one feature.
std::vector<std::uint16_t> codes_of(const Binned& binned, const Feature& feature) {
  if (!feature.is_sparse) {
    return std::visit(
        [&](const auto& codes) {
          const auto& column = codes.by_column[feature.column];
          return std::vector<std::uint16_t>(column.begin(), column.end());
        },
        binned.dense_codes);
  }
  std::vector<std::uint16_t> codes(binned.n_rows, static_cast<std::uint16_t>(feature.common));
  const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
  for (std::size_t i = 0; i < column.row.size(); ++i) codes[column.row[i]] = column.code[i];
  return codes;
}

}  // namespace

void fill_by_row(Binned& binned, int n_threads) {
  std::visit([&](auto& codes) { fill_dense_by_row(codes, binned.n_rows, n_threads); },
             binned.dense_codes);
  fill_sparse_by_row(binned);
}

Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows) {
  Binned out = {.n_rows = rows.size(),
                .total_bins = binned.total_bins,
                .features = binned.features,
                .dense_offset = binned.dense_offset,
                .sparse = binned.sparse,
                .dense_codes = {},
                .sparse_codes = {}};
  std::visit(
      [&](const auto& from) {
        std::decay_t<decltype(from)> codes;
        for (const auto& column : from.by_column) codes.by_column.push_back(take(column, rows));
        out.dense_codes = std::move(codes);
      },
      binned.dense_codes);
  out.sparse_codes.by_column = take_sparse(binned, rows);
  fill_by_row(out, 1);
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
