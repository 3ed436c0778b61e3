#include "data/binning.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/bundles.hpp"
#include "data/quantile_cuts.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsPerTile = 4096;

std::size_t code_of(double value, std::span<const double> thresholds) {
  if (std::isnan(value)) return thresholds.size() + 1;
  const auto first = std::ranges::lower_bound(thresholds, value);
  return static_cast<std::size_t>(first - thresholds.begin());
}

/// Lists the rows whose code is not the common one.
template <class Code>
SparseColumn listed_rows(const LargeVector<Code>& codes, std::uint32_t common) {
  SparseColumn column(storage_of(codes));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == common) continue;
    column.row.push_back(static_cast<std::uint32_t>(i));
    column.code.push_back(codes[i]);
  }
  return column;
}

/// The codes of a sparse column, without the common one.
SparseColumn coded_column(const SparseView& table, std::size_t column,
                          const std::vector<double>& thresholds, std::uint32_t common,
                          const Storage& storage) {
  SparseColumn out(storage);
  for (auto i = static_cast<std::size_t>(table.start[column]);
       i < static_cast<std::size_t>(table.start[column + 1]); ++i) {
    const std::size_t code = code_of(table.value[i], thresholds);
    if (code == common) continue;
    out.row.push_back(table.row[i]);
    out.code.push_back(static_cast<std::uint16_t>(code));
  }
  return out;
}

/// The distinct values of a sparse column with their weights, including the fill value.
std::vector<WeightedValue> distinct_in_sparse(const SparseView& table, std::size_t column,
                                              std::span<const std::int64_t> weight,
                                              std::int64_t total) {
  std::vector<double> values;
  std::vector<std::int64_t> weights;
  for (auto i = static_cast<std::size_t>(table.start[column]);
       i < static_cast<std::size_t>(table.start[column + 1]); ++i) {
    values.push_back(table.value[i]);
    weights.push_back(weight[table.row[i]]);
    total -= weights.back();
  }
  if (total > 0) {
    values.push_back(table.fill[column]);
    weights.push_back(total);
  }
  return distinct_values(values, weights);
}

}  // namespace

void copy_columns(const TableView& table, std::size_t first, std::size_t last,
                  std::vector<double>& out) {
  out.resize((last - first) * table.n_rows);
  for (std::size_t start = 0; start < table.n_rows; start += kRowsPerTile) {
    check_interrupt();
    const std::size_t stop = std::min(start + kRowsPerTile, table.n_rows);
    for (std::size_t f = first; f < last; ++f) {
      const double* from = table.data + static_cast<std::ptrdiff_t>(f) * table.column_stride;
      double* to = out.data() + (f - first) * table.n_rows;
      for (std::size_t i = start; i < stop; ++i) {
        to[i] = from[static_cast<std::ptrdiff_t>(i) * table.row_stride];
      }
    }
  }
}

Thresholds find_thresholds(const TableView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads) {
  const KnownWeights weights(weight);
  Thresholds thresholds(table.n_features);
  for_each_column(table, n_threads, [&](std::size_t f, std::span<const double> column) {
    thresholds[f] = column_thresholds(column, weights, max_bins);
  });
  return thresholds;
}

Thresholds find_thresholds(const SparseView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads) {
  const std::int64_t total = total_weight(RowWeights(weight), weight.size());
  Thresholds thresholds(table.n_columns());
  parallel_for(table.n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    check_interrupt();
    thresholds[c] = cut_values(distinct_in_sparse(table, c, weight, total), max_bins);
  });
  return thresholds;
}

BinnedBuilder::BinnedBuilder(std::size_t n_rows, std::span<const std::uint8_t> is_categorical,
                             Storage storage)
    : n_rows_(n_rows),
      thresholds_(is_categorical.size()),
      features_(is_categorical.size()),
      storage_(std::move(storage)),
      sparse_(is_categorical.size()),
      is_added_(is_categorical.size()),
      is_layout_known_(is_categorical.size()),
      digest_(is_categorical.size()) {
  for (std::size_t f = 0; f < features_.size(); ++f) {
    features_[f].is_categorical = is_categorical[f] != 0;
  }
  std::visit([&](auto& columns) { columns.resize(features_.size()); }, dense_);
}

void BinnedBuilder::set_thresholds(std::size_t f, std::vector<double> thresholds) {
  thresholds_[f] = std::move(thresholds);
  features_[f].n_bins = static_cast<std::uint32_t>(thresholds_[f].size() + 2);
  if (features_[f].n_bins > 256) widen();
}

void BinnedBuilder::set_common_code(std::size_t f, std::uint32_t common, std::size_t n_listed,
                                    std::size_t n_rows) {
  features_[f].common = common;
  features_[f].is_sparse = abcgbm::is_sparse(n_listed, n_rows);
  is_layout_known_[f] = 1;
}

/// Switches to codes of two bytes.
void BinnedBuilder::widen() {
  const auto* narrow = std::get_if<Columns<std::uint8_t>>(&dense_);
  if (narrow == nullptr) return;
  Columns<std::uint16_t> wide;
  for (const auto& column : *narrow) wide.emplace_back(column.begin(), column.end(), storage_);
  dense_ = std::move(wide);
}

/// Stores the codes of a feature as a dense column or as a list, whichever is smaller.
template <class Code>
void BinnedBuilder::set_codes(std::size_t f, LargeVector<Code> codes) {
  Feature& feature = features_[f];
  if (is_layout_known_[f] == 0) {
    const std::vector<std::size_t> count = count_codes<Code>(codes, feature.n_bins);
    const auto common = std::ranges::max_element(count);
    set_common_code(f, static_cast<std::uint32_t>(common - count.begin()), n_rows_ - *common,
                    n_rows_);
  }
  if (feature.is_sparse) {
    sparse_[f] = listed_rows(codes, feature.common);
  } else {
    std::get<Columns<Code>>(dense_)[f] = std::move(codes);
  }
}

void BinnedBuilder::add(const TableView& table, std::span<const std::int32_t> features,
                        int n_threads) {
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        for_each_column(table, n_threads, [&](std::size_t c, std::span<const double> column) {
          const auto f = static_cast<std::size_t>(features[c]);
          LargeVector<Code> codes(column.size(), storage_);
          BinEdges(thresholds_[f]).find_bins(column, codes);
          set_codes(f, std::move(codes));
        });
      },
      dense_);
  mark_added(features);
}

void BinnedBuilder::add_rows(const TableView& table, std::span<const std::int32_t> features,
                             std::size_t first_row, int n_threads) {
  std::visit(
      [&](auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        for_each_column(table, n_threads, [&](std::size_t c, std::span<const double> column) {
          const auto f = static_cast<std::size_t>(features[c]);
          digest_[f] += column_digest(column, first_row);
          if (columns[f].empty()) columns[f] = LargeVector<Code>(n_rows_, storage_);
          const auto codes = std::span(columns[f]).subspan(first_row, column.size());
          BinEdges(thresholds_[f]).find_bins(column, codes);
        });
      },
      dense_);
}

void BinnedBuilder::finish_features(std::span<const std::int32_t> features, int n_threads) {
  std::visit(
      [&](auto& columns) {
        parallel_for(features.size(), n_threads, [&](std::size_t i, std::size_t) {
          check_interrupt();
          const auto f = static_cast<std::size_t>(features[i]);
          set_codes(f, std::move(columns[f]));
        });
      },
      dense_);
  mark_added(features);
}

void BinnedBuilder::add(const SparseView& table, std::span<const std::int32_t> features,
                        int n_threads) {
  parallel_for(table.n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    check_interrupt();
    const auto f = static_cast<std::size_t>(features[c]);
    Feature& feature = features_[f];
    const auto fill = static_cast<std::uint32_t>(code_of(table.fill[c], thresholds_[f]));
    SparseColumn column = coded_column(table, c, thresholds_[f], fill, storage_);
    if (is_layout_known_[f] == 0 && abcgbm::is_sparse(column.row.size(), n_rows_)) {
      set_common_code(f, fill, column.row.size(), n_rows_);
    }
    if (feature.is_sparse && feature.common == fill) {
      sparse_[f] = std::move(column);
    } else {
      set_all_codes(f, column, fill);
    }
  });
  mark_added(features);
}

/// Expands a sparse column that lists too many rows, or whose fill value is not the common code.
void BinnedBuilder::set_all_codes(std::size_t f, const SparseColumn& column, std::uint32_t fill) {
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        LargeVector<Code> codes(n_rows_, static_cast<Code>(fill), storage_);
        for (std::size_t i = 0; i < column.row.size(); ++i) {
          codes[column.row[i]] = static_cast<Code>(column.code[i]);
        }
        set_codes(f, std::move(codes));
      },
      dense_);
}

/// Marks all features of a call at its end, as an interrupt may come before.
void BinnedBuilder::mark_added(std::span<const std::int32_t> features) {
  for (const std::int32_t f : features) is_added_[static_cast<std::size_t>(f)] = 1;
}

bool BinnedBuilder::has_all() const {
  return std::ranges::all_of(is_added_, [](std::uint8_t is_added) { return is_added != 0; });
}

std::vector<Bundle> BinnedBuilder::bundles() const {
  return find_bundles(features_, sparse_, n_rows_, max_bins());
}

bool BinnedBuilder::fit_a_code(std::span<const Bundle> bundles) const {
  return std::ranges::all_of(bundles, [&](const Bundle& bundle) {
    std::size_t n_bins = 0;
    for (const std::uint32_t f : bundle) n_bins += features_[f].n_bins;
    return n_bins <= max_bins();
  });
}

std::vector<std::int32_t> BinnedBuilder::conflicts(std::span<const Bundle> bundles) const {
  std::vector<std::int32_t> conflicts(features_.size(), 0);
  for (const Bundle& bundle : bundles) {
    std::vector<bool> has_row(n_rows_);
    for (const std::uint32_t f : bundle) {
      check_interrupt();
      conflicts[f] = lists_any(sparse_[f], has_row) ? 1 : 0;
      for (const std::uint32_t row : sparse_[f].row) has_row[row] = true;
    }
  }
  return conflicts;
}

Binned BinnedBuilder::finish(std::span<const Bundle> bundles) {
  std::vector<SparseColumn> sparse;
  std::visit(
      [&](auto& dense) {
        std::decay_t<decltype(dense)> columns;
        for (std::size_t f = 0; f < features_.size(); ++f) {
          if (features_[f].is_sparse) {
            sparse.push_back(std::move(sparse_[f]));
          } else {
            columns.push_back(std::move(dense[f]));
          }
        }
        dense = std::move(columns);
      },
      dense_);
  const Layout layout = make_layout(std::exchange(features_, {}), bundles);
  return make_binned(n_rows_, layout, bundles, std::move(dense_), std::move(sparse));
}

}  // namespace abcgbm
