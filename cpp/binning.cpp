#include "binning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "parallel.hpp"

namespace abcgbm {
namespace {

/// Columns that share a cache line of a row-major table are read together.
constexpr std::size_t kColumnsPerTask = 8;
constexpr std::size_t kMostValues = 1 << 23;  // copied by one thread at a time
constexpr std::size_t kRowsPerTile = 4096;
constexpr std::size_t kSortedRun = 1 << 18;

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

 private:
  static constexpr std::size_t kSlots = 8192;
  static constexpr std::size_t kMost = 4096;
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

/// Lays the codes out by row, tile by tile.
template <class Code>
void fill_by_row(Codes<Code>& codes, std::size_t n_rows, std::size_t n_features, int n_threads) {
  const std::size_t n_tiles = (n_rows + kRowsPerTile - 1) / kRowsPerTile;
  parallel_for(n_tiles, n_threads, [&](std::size_t tile, std::size_t) {
    const std::size_t stop = std::min((tile + 1) * kRowsPerTile, n_rows);
    for (std::size_t f = 0; f < n_features; ++f) {
      const Code* from = codes.by_column.data() + f * n_rows;
      for (std::size_t i = tile * kRowsPerTile; i < stop; ++i) {
        codes.by_row[i * n_features + f] = from[i];
      }
    }
  });
}

template <class Code>
Codes<Code> code_table(const TableView& table, const std::vector<std::vector<double>>& thresholds,
                       int n_threads) {
  Codes<Code> codes;
  codes.by_column.resize(table.n_rows * table.n_features);
  codes.by_row.resize(table.n_rows * table.n_features);
  for_each_column(table, n_threads, [&](std::size_t f, std::span<const double> column) {
    Code* to = codes.by_column.data() + f * table.n_rows;
    const std::size_t missing = thresholds[f].size() + 1;
    for (std::size_t i = 0; i < column.size(); ++i) {
      to[i] = static_cast<Code>(std::isnan(column[i]) ? missing
                                                      : count_below(thresholds[f], column[i]));
    }
  });
  fill_by_row(codes, table.n_rows, table.n_features, n_threads);
  return codes;
}

template <class Code>
Codes<Code> take_codes(const Codes<Code>& from, const Binned& binned,
                       std::span<const std::int64_t> rows) {
  Codes<Code> codes;
  codes.by_column.reserve(rows.size() * binned.n_features);
  codes.by_row.resize(rows.size() * binned.n_features);
  for (std::size_t f = 0; f < binned.n_features; ++f) {
    const Code* column = from.by_column.data() + f * binned.n_rows;
    for (const std::int64_t row : rows) codes.by_column.push_back(column[row]);
  }
  fill_by_row(codes, rows.size(), binned.n_features, 1);
  return codes;
}

}  // namespace

std::vector<std::vector<double>> find_thresholds(const TableView& table,
                                                 std::span<const std::int64_t> weight,
                                                 std::size_t max_bins, int n_threads) {
  std::vector<std::vector<double>> thresholds(table.n_features);
  for_each_column(table, n_threads, [&](std::size_t f, std::span<const double> column) {
    thresholds[f] = thresholds_of(distinct_values(column, weight), max_bins);
  });
  return thresholds;
}

Binned bin_table(const TableView& table, const std::vector<std::vector<double>>& thresholds,
                 int n_threads) {
  Binned binned{.n_rows = table.n_rows, .n_features = table.n_features, .offset = {0}, .codes = {}};
  std::size_t most_bins = 0;
  for (const auto& of_feature : thresholds) {
    const std::size_t n_bins = of_feature.size() + 2;
    most_bins = std::max(most_bins, n_bins);
    if (n_bins > std::numeric_limits<std::uint32_t>::max() - binned.offset.back()) {
      throw std::length_error("too many bins in all: 2^32 or more");
    }
    binned.offset.push_back(binned.offset.back() + static_cast<std::uint32_t>(n_bins));
  }
  if (most_bins <= 256) {
    binned.codes = code_table<std::uint8_t>(table, thresholds, n_threads);
  } else {
    binned.codes = code_table<std::uint16_t>(table, thresholds, n_threads);
  }
  return binned;
}

Binned take_rows(const Binned& binned, std::span<const std::int64_t> rows) {
  Binned out{
      .n_rows = rows.size(), .n_features = binned.n_features, .offset = binned.offset, .codes = {}};
  std::visit([&](const auto& codes) { out.codes = take_codes(codes, binned, rows); }, binned.codes);
  return out;
}

}  // namespace abcgbm
