#include "data/reductions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kSortedRun = 1 << 18;
constexpr std::int64_t kEnoughWeight = std::int64_t{1} << 62;

/// Counts distinct values in a hash table as long as they are few. Most columns of real tables have
/// few, and need not be sorted.
class FewValues {
 public:
  /// How many distinct values are few; grows with the number of rows.
  static std::size_t max_values(std::size_t n_rows) {
    return std::clamp(n_rows / kRowsPerValue, kMinValues, kMaxValues);
  }

  explicit FewValues(std::size_t n_rows)
      : max_values_(max_values(n_rows)),
        slots_(std::bit_ceil(2 * max_values_), {kFree, 0}),
        shift_(std::countl_zero(slots_.size()) + 1) {}

  /// False if there are too many distinct values.
  bool add(double value, std::int64_t weight) {
    for (std::size_t at = slot_of(value);; at = (at + 1) % slots_.size()) {
      WeightedValue& slot = slots_[at];
      if (slot.value == value) {
        slot.weight += weight;
        return true;
      }
      if (!std::isnan(slot.value)) continue;
      slot = {value, weight};
      return ++n_used_ <= max_values_;
    }
  }

  std::vector<WeightedValue> values() const {
    std::vector<WeightedValue> out;
    std::ranges::copy_if(slots_, std::back_inserter(out),
                         [](const WeightedValue& slot) { return !std::isnan(slot.value); });
    return out;
  }

 private:
  static constexpr double kFree = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::size_t kMinValues = 4096;
  static constexpr std::size_t kMaxValues = 16384;
  static constexpr std::size_t kRowsPerValue = 128;

  std::size_t slot_of(double value) const {
    const std::uint64_t mixed = std::bit_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15u;
    return mixed >> shift_;  // the upper bits, as integers stored as doubles have no lower ones
  }

  std::size_t max_values_;
  std::vector<WeightedValue> slots_;
  int shift_;
  std::size_t n_used_ = 0;
};

/// Sorts runs, then merges them, with checks for an interrupt in between.
std::vector<WeightedValue> sorted(std::vector<WeightedValue> values) {
  const auto is_less = [](const WeightedValue& a, const WeightedValue& b) {
    return a.value < b.value;
  };
  const std::size_t n = values.size();
  const auto at = [n](std::vector<WeightedValue>& of, std::size_t i) {
    return of.begin() + static_cast<std::ptrdiff_t>(std::min(i, n));
  };
  for (std::size_t start = 0; start < n; start += kSortedRun) {
    check_interrupt();
    std::sort(at(values, start), at(values, start + kSortedRun), is_less);
  }
  std::vector<WeightedValue> merged(n > kSortedRun ? n : 0);
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

std::vector<WeightedValue> merge_equal(const std::vector<WeightedValue>& values) {
  std::vector<WeightedValue> out;
  for (const WeightedValue& item : values) {
    if (!out.empty() && out.back().value == item.value) {
      out.back().weight += item.weight;
    } else {
      out.push_back(item);
    }
  }
  return out;
}

/// The term of one value in the digest of its column. Factors are odd and differ between rows, so
/// that a changed value or two swapped ones change the sum.
std::uint64_t digest_of(double value, std::size_t row) {
  constexpr std::uint64_t kMissing = 0x7ff8000000000000u;  // the same for every NaN
  const std::uint64_t bits =
      std::isnan(value) ? kMissing : std::bit_cast<std::uint64_t>(value + 0.0);
  const std::uint64_t mixed = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15u;
  return (mixed ^ (mixed >> 29)) * (2 * std::uint64_t{row} + 1);
}

}  // namespace

std::vector<WeightedValue> sorted_values(std::span<const double> column,
                                         std::span<const std::int64_t> weight) {
  std::vector<WeightedValue> values;
  for (std::size_t i = 0; i < column.size(); ++i) {
    // Adding 0.0 turns -0.0 into 0.0.
    if (!std::isnan(column[i])) values.push_back({column[i] + 0.0, weight[i]});
  }
  return merge_equal(sorted(std::move(values)));
}

std::optional<std::vector<WeightedValue>> few_distinct_values(
    std::span<const double> column, std::span<const std::int64_t> weight) {
  FewValues counts(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!std::isnan(column[i]) && !counts.add(column[i] + 0.0, weight[i])) return std::nullopt;
  }
  return sorted(counts.values());
}

std::vector<WeightedValue> distinct_values(std::span<const double> column,
                                           std::span<const std::int64_t> weight) {
  if (column.size() <= FewValues::max_values(column.size())) return sorted_values(column, weight);
  auto few = few_distinct_values(column, weight);
  return few ? std::move(*few) : sorted_values(column, weight);
}

std::uint64_t column_digest(std::span<const double> column, std::size_t first_row) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < column.size(); ++i) sum += digest_of(column[i], first_row + i);
  return sum;
}

std::int64_t total_weight(RowWeights weight, std::size_t n_rows) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n_rows && total <= kEnoughWeight; ++i) total += weight[i];
  return total;
}

bool lists_any(const SparseColumn& column, const std::vector<bool>& has_row) {
  return std::ranges::any_of(column.row, [&](std::uint32_t row) { return has_row[row]; });
}

}  // namespace abcgbm
