#include "data/binning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

/// Columns that share a cache line of a row-major table are read together.
constexpr std::size_t kColumnsPerTask = 8;
constexpr std::size_t kMostValues = 1 << 20;  // copied by one thread at a time
constexpr std::size_t kRowsPerTile = 4096;
constexpr std::size_t kSortedRun = 1 << 18;
/// A code of a sparse column takes as much memory as so many codes of a dense one.
constexpr std::size_t kDensePerSparse = 5;

struct Weighted {
  double value;
  std::int64_t weight;
};

/// Distinct values of a column with their weights, as long as there are few of them: most columns
/// of real tables have few, and need no sorting of all rows.
class FewValues {
 public:
  FewValues() : slots_(kSlots) {}

  /// False if there are too many distinct values.
  bool add(double value, std::int64_t weight) {
    for (std::size_t at = hash(value);; at = (at + 1) % kSlots) {
      Slot& slot = slots_[at];
      if (slot.used && slot.value == value) {
        slot.weight += weight;
        return true;
      }
      if (slot.used) continue;
      slot = {value, weight, true};
      return ++n_used_ <= kMost;
    }
  }

  std::vector<Weighted> values() const {
    std::vector<Weighted> out;
    for (const Slot& slot : slots_) {
      if (slot.used) out.push_back({slot.value, slot.weight});
    }
    return out;
  }

  static constexpr std::size_t kMost = 4096;

 private:
  static constexpr std::size_t kSlots = 8192;
  struct Slot {
    double value = 0.0;
    std::int64_t weight = 0;
    bool used = false;
  };

  static std::size_t hash(double value) {
    return (std::bit_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15u) >> 51;
  }

  std::vector<Slot> slots_;
  std::size_t n_used_ = 0;
};

/// Sorts runs, then merges them, so that the user can interrupt in between.
std::vector<Weighted> sorted(std::vector<Weighted> values) {
  const auto is_less = [](const Weighted& a, const Weighted& b) { return a.value < b.value; };
  const std::size_t n = values.size();
  const auto at = [n](std::vector<Weighted>& of, std::size_t i) {
    return of.begin() + static_cast<std::ptrdiff_t>(std::min(i, n));
  };
  for (std::size_t start = 0; start < n; start += kSortedRun) {
    check_interrupt();
    std::sort(at(values, start), at(values, start + kSortedRun), is_less);
  }
  std::vector<Weighted> merged(n > kSortedRun ? n : 0);
  for (std::size_t run = kSortedRun; run < n; run *= 2) {
    for (std::size_t start = 0; start < n; start += 2 * run) {
      check_interrupt();
      const auto middle = at(values, start + run);
      std::merge(at(values, start), middle, middle, at(values, start + 2 * run), at(merged, start),
                 is_less);
    }
    std::swap(values, merged);
  }
  return values;
}

std::vector<Weighted> merge_equal(const std::vector<Weighted>& values) {
  std::vector<Weighted> out;
  for (const Weighted& item : values) {
    if (!out.empty() && out.back().value == item.value) {
      out.back().weight += item.weight;
    } else {
      out.push_back(item);
    }
  }
  return out;
}

std::vector<Weighted> all_values(std::span<const double> column,
                                 std::span<const std::int64_t> weight) {
  std::vector<Weighted> values;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!std::isnan(column[i])) values.push_back({column[i] + 0.0, weight[i]});
  }
  return merge_equal(sorted(std::move(values)));
}

std::vector<Weighted> distinct_values(std::span<const double> column,
                                      std::span<const std::int64_t> weight) {
  if (column.size() <= FewValues::kMost) return all_values(column, weight);
  FewValues few;
  for (std::size_t i = 0; i < column.size(); ++i) {
    // Adding 0.0 turns -0.0 into 0.0.
    if (!std::isnan(column[i]) && !few.add(column[i] + 0.0, weight[i])) {
      return all_values(column, weight);
    }
  }
  return sorted(few.values());
}

double threshold_between(double a, double b) {
  const double middle = a / 2 + b / 2;
  return a <= middle && middle < b ? middle : a;
}

/// Greedy bins of about equal weight; docs/arithmetic.md, "Bins".
std::vector<double> thresholds_of(const std::vector<Weighted>& values, std::size_t max_bins) {
  std::vector<double> thresholds;
  std::int64_t rest = 0;
  for (const Weighted& item : values) rest += item.weight;
  std::size_t bins_left = max_bins;
  std::int64_t acc = 0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const bool enough_bins = values.size() - j <= bins_left - 1;
    const bool is_full =
        (2 * acc + values[j].weight) * static_cast<std::int64_t>(bins_left) > 2 * rest;
    if (acc > 0 && bins_left > 1 && (enough_bins || is_full)) {
      thresholds.push_back(threshold_between(values[j - 1].value, values[j].value));
      --bins_left;
      rest -= acc;
      acc = 0;
    }
    acc += values[j].weight;
  }
  return thresholds;
}

/// Copies columns [first, last) side by side, tile by tile, so that each cache line is read once.
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

/// Calls each(f, values) for every column, groups of neighbouring columns in parallel.
template <class Each>
void for_each_column(const TableView& table, int n_threads, const Each& each) {
  const std::size_t n_together = std::clamp<std::size_t>(
      kMostValues / std::max<std::size_t>(table.n_rows, 1), 1, kColumnsPerTask);
  const std::size_t n_groups = (table.n_features + n_together - 1) / n_together;
  parallel_for(n_groups, n_threads, [&](std::size_t group, std::size_t) {
    const std::size_t first = group * n_together;
    const std::size_t last = std::min(first + n_together, table.n_features);
    std::vector<double> columns;
    copy_columns(table, first, last, columns);
    for (std::size_t f = first; f < last; ++f) {
      check_interrupt();
      each(f, std::span<const double>(columns.data() + (f - first) * table.n_rows, table.n_rows));
    }
  });
}

/// The number of thresholds strictly below the value, by a search without branches.
std::size_t count_below(const std::vector<double>& thresholds, double value) {
  const double* base = thresholds.data();
  std::size_t n = thresholds.size();
  while (n > 1) {
    const std::size_t half = n / 2;
    base += base[half - 1] < value ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(base - thresholds.data()) + (n == 1 && *base < value ? 1 : 0);
}

std::size_t code_of(double value, const std::vector<double>& thresholds) {
  return std::isnan(value) ? thresholds.size() + 1 : count_below(thresholds, value);
}

/// The most common of some codes, and how often it occurs.
template <class Code>
std::pair<std::uint32_t, std::size_t> most_common(const std::vector<Code>& codes,
                                                  std::uint32_t n_bins) {
  std::vector<std::size_t> count(n_bins, 0);
  for (const Code code : codes) ++count[code];
  const auto largest = std::ranges::max_element(count);
  return {static_cast<std::uint32_t>(largest - count.begin()), *largest};
}

template <class Code>
SparseColumn without(const std::vector<Code>& codes, std::uint32_t common) {
  SparseColumn column;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == common) continue;
    column.row.push_back(static_cast<std::uint32_t>(i));
    column.code.push_back(codes[i]);
  }
  return column;
}

/// The values of a sparse column and their weights, the filled ones as one more value.
std::vector<Weighted> distinct_values(const SparseView& table, std::size_t column,
                                      std::span<const std::int64_t> weight, std::int64_t total) {
  std::vector<double> values;
  std::vector<std::int64_t> weights;
  for (auto i = static_cast<std::size_t>(table.start[column]);
       i < static_cast<std::size_t>(table.start[column + 1]); ++i) {
    values.push_back(table.value[i]);
    weights.push_back(weight[static_cast<std::size_t>(table.row[i])]);
    total -= weights.back();
  }
  if (total > 0) {
    values.push_back(table.fill[column]);
    weights.push_back(total);
  }
  return distinct_values(values, weights);
}

}  // namespace

Thresholds find_thresholds(const TableView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads) {
  Thresholds thresholds(table.n_features);
  for_each_column(table, n_threads, [&](std::size_t f, std::span<const double> column) {
    thresholds[f] = thresholds_of(distinct_values(column, weight), max_bins);
  });
  return thresholds;
}

Thresholds find_thresholds(const SparseView& table, std::span<const std::int64_t> weight,
                           std::size_t max_bins, int n_threads) {
  std::int64_t total = 0;
  for (const std::int64_t w : weight) total += w;
  Thresholds thresholds(table.n_columns());
  parallel_for(table.n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    check_interrupt();
    thresholds[c] = thresholds_of(distinct_values(table, c, weight, total), max_bins);
  });
  return thresholds;
}

BinnedBuilder::BinnedBuilder(std::size_t n_rows, Thresholds thresholds,
                             std::span<const std::uint8_t> is_categorical)
    : thresholds_(std::move(thresholds)),
      sparse_(thresholds_.size()),
      is_added_(thresholds_.size()) {
  binned_.n_rows = n_rows;
  binned_.features.resize(thresholds_.size());
  std::uint32_t most_bins = 0;
  for (std::size_t f = 0; f < thresholds_.size(); ++f) {
    binned_.features[f].n_bins = static_cast<std::uint32_t>(thresholds_[f].size() + 2);
    binned_.features[f].is_categorical = is_categorical[f] != 0;
    most_bins = std::max(most_bins, binned_.features[f].n_bins);
  }
  if (most_bins > 256) dense_ = std::vector<std::vector<std::uint16_t>>();
  std::visit([&](auto& columns) { columns.resize(thresholds_.size()); }, dense_);
}

/// Keeps the codes of a feature in whichever form takes less memory.
template <class Code>
void BinnedBuilder::set_column(std::size_t feature, std::vector<Code> codes) {
  Feature& this_one = binned_.features[feature];
  const auto [common, n_common] = most_common(codes, this_one.n_bins);
  this_one.is_sparse = (codes.size() - n_common) * kDensePerSparse <= codes.size();
  if (this_one.is_sparse) {
    this_one.common = common;
    sparse_[feature] = without(codes, common);
  } else {
    std::get<std::vector<std::vector<Code>>>(dense_)[feature] = std::move(codes);
  }
}

void BinnedBuilder::add(const TableView& table, std::span<const std::int32_t> features,
                        int n_threads) {
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        for_each_column(table, n_threads, [&](std::size_t c, std::span<const double> column) {
          const auto f = static_cast<std::size_t>(features[c]);
          std::vector<Code> codes(column.size());
          for (std::size_t i = 0; i < column.size(); ++i) {
            codes[i] = static_cast<Code>(code_of(column[i], thresholds_[f]));
          }
          set_column(f, std::move(codes));
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
    Feature& feature = binned_.features[f];
    feature.common = static_cast<std::uint32_t>(code_of(table.fill[c], thresholds_[f]));
    SparseColumn column;
    for (auto i = static_cast<std::size_t>(table.start[c]);
         i < static_cast<std::size_t>(table.start[c + 1]); ++i) {
      const std::size_t code = code_of(table.value[i], thresholds_[f]);
      if (code == feature.common) continue;
      column.row.push_back(static_cast<std::uint32_t>(table.row[i]));
      column.code.push_back(static_cast<std::uint16_t>(code));
    }
    feature.is_sparse = column.row.size() * kDensePerSparse <= table.n_rows;
    if (feature.is_sparse) {
      sparse_[f] = std::move(column);
    } else {
      set_all_codes(f, column);
    }
  });
  mark_added(features);
}

/// The codes of a column that lists too many rows to be kept so.
void BinnedBuilder::set_all_codes(std::size_t feature, const SparseColumn& column) {
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        std::vector<Code> codes(binned_.n_rows,
                                static_cast<Code>(binned_.features[feature].common));
        for (std::size_t i = 0; i < column.row.size(); ++i) {
          codes[column.row[i]] = static_cast<Code>(column.code[i]);
        }
        set_column(feature, std::move(codes));
      },
      dense_);
}

/// Only when all of them are there: an interrupt may come in between.
void BinnedBuilder::mark_added(std::span<const std::int32_t> features) {
  for (const std::int32_t f : features) is_added_[static_cast<std::size_t>(f)] = 1;
}

bool BinnedBuilder::has_all() const {
  return std::ranges::all_of(is_added_, [](std::uint8_t is_added) { return is_added != 0; });
}

Binned BinnedBuilder::finish() {
  Binned binned = std::exchange(binned_, {});
  std::visit(
      [&](auto& of_features) {
        std::decay_t<decltype(of_features)> columns;
        for (std::size_t f = 0; f < binned.features.size(); ++f) {
          Feature& feature = binned.features[f];
          if (feature.is_sparse) {
            feature.column = static_cast<std::uint32_t>(binned.sparse.size());
            binned.sparse.push_back(static_cast<std::uint32_t>(f));
            binned.sparse_codes.by_column.push_back(std::move(sparse_[f]));
          } else {
            feature.column = static_cast<std::uint32_t>(columns.size());
            columns.push_back(std::move(of_features[f]));
          }
        }
        binned.columns = std::move(columns);
      },
      dense_);
  arrange(binned);
  return binned;
}

}  // namespace abcgbm
