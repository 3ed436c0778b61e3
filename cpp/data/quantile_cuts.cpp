#include "data/quantile_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "base/parallel.hpp"
#include "data/bin_search.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBuckets = 2048;     // minimum
constexpr std::size_t kMaxBuckets = 8192;  // maximum
constexpr std::size_t kInBucket = 512;     // rows of a bucket, between these bounds
constexpr std::size_t kMaxBins = 512;      // with more bins this does not pay
constexpr std::size_t kSampled = 4;        // sampled values for each bucket
constexpr std::size_t kAtOnce = 1 << 14;   // rows between two checks for an interrupt
constexpr double kNear = 0.1;              // fraction of a bucket that counts as near its end
constexpr int kExpected = 3;               // how often the ends of bins are predicted

double threshold_between(double a, double b) {
  const double middle = a / 2 + b / 2;
  return a <= middle && middle < b ? middle : a;
}

/// Edges that divide a column into buckets of about as many rows each, estimated from a sample.
std::vector<double> bucket_edges(std::span<const double> column) {
  std::vector<double> sample;
  const std::size_t n_buckets = std::clamp(column.size() / kInBucket, kBuckets, kMaxBuckets);
  const std::size_t stride = std::max<std::size_t>(1, column.size() / (n_buckets * kSampled));
  for (std::size_t i = 0; i < column.size(); i += stride) {
    if (!std::isnan(column[i])) sample.push_back(column[i] + 0.0);
  }
  std::ranges::sort(sample);
  std::vector<double> edges;
  const std::size_t step = std::max<std::size_t>(1, sample.size() / n_buckets);
  for (std::size_t i = step; i < sample.size() && edges.size() + 1 < n_buckets; i += step) {
    if (edges.empty() || edges.back() < sample[i]) edges.push_back(sample[i]);
  }
  return edges;
}

/// The rows of a column in ascending buckets. Values are fetched on demand, together with those of
/// the buckets that are needed next. Bins mostly end in few buckets, so about a thirtieth of the
/// rows is sorted.
class Buckets {
 public:
  Buckets(std::span<const double> column, const KnownWeights& weights)
      : column_(column), weight_(weights.weight), common_(weights.common) {
    const BinEdges edges(bucket_edges(column));
    find(edges);
    count(edges.size());
  }

  std::size_t size() const { return total_.size(); }
  bool is_empty(std::size_t b) const { return n_rows_[b] == 0; }
  std::int64_t weight(std::size_t b) const { return total_[b]; }
  bool has_values(std::size_t b) const { return is_requested_[b] != 0; }

  /// Fetches the values of the requested buckets, and drops all others.
  void fetch(const std::vector<std::uint8_t>& is_requested);

  /// The ascending distinct values of a fetched bucket, with their weights.
  std::vector<WeightedValue> values(std::size_t b) const;

  /// The largest value of a bucket; takes a pass over all rows if it was not fetched.
  double largest(std::size_t b) const {
    if (has_values(b)) return values(b).back().value;
    double found = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < column_.size(); ++i) {
      if (bucket_[i] == b) found = std::max(found, column_[i]);
    }
    return found + 0.0;
  }

 private:
  void find(const BinEdges& edges) {
    bucket_.resize(column_.size());
    for (std::size_t i = 0; i < column_.size(); i += kAtOnce) {
      check_interrupt();
      const std::size_t n = std::min(kAtOnce, column_.size() - i);
      edges.find_bins(column_.subspan(i, n), std::span(bucket_).subspan(i, n));
    }
  }

  /// Missing values come last, and are in no bucket.
  void count(std::size_t n_edges) {
    n_rows_.assign(n_edges + 2, 0);
    total_.assign(n_edges + 2, 0);
    for (const std::uint16_t b : bucket_) ++n_rows_[b];
    for (std::size_t i = 0; common_ == KnownWeights::kAny && i < bucket_.size(); ++i) {
      total_[bucket_[i]] += weight_[i];
    }
    for (std::size_t b = 0; common_ != KnownWeights::kAny && b < total_.size(); ++b) {
      total_[b] = common_ * static_cast<std::int64_t>(n_rows_[b]);
    }
    total_.pop_back();
    is_requested_.assign(n_rows_.size(), 0);
  }

  template <class T>
  std::vector<T> fetched(std::span<const T> from, std::size_t n) const;

  std::span<const double> column_;
  std::span<const std::int64_t> weight_;
  std::int64_t common_;                     // weight of every row, or KnownWeights::kAny
  std::vector<std::uint16_t> bucket_;       // by row
  std::vector<std::size_t> n_rows_;         // by bucket, like the next ones
  std::vector<std::int64_t> total_;         // weight
  std::vector<std::uint8_t> is_requested_;  // whether its values are fetched
  std::vector<std::size_t> start_;          // index of the first of them
  std::vector<double> value_;
  std::vector<std::int64_t> value_weight_;  // empty if all rows have the same weight
};

/// The entries of the requested buckets, bucket by bucket.
template <class T>
std::vector<T> Buckets::fetched(std::span<const T> from, std::size_t n) const {
  std::vector<T> out(n);
  std::vector<std::size_t> next = start_;
  for (std::size_t begin = 0; begin < from.size(); begin += kAtOnce) {
    check_interrupt();
    const std::size_t end = std::min(begin + kAtOnce, from.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (is_requested_[bucket_[i]] != 0) out[next[bucket_[i]]++] = from[i];
    }
  }
  return out;
}

void Buckets::fetch(const std::vector<std::uint8_t>& is_requested) {
  std::ranges::copy(is_requested, is_requested_.begin());
  std::size_t n = 0;
  for (std::size_t b = 0; b < is_requested.size(); ++b) n += is_requested[b] != 0 ? n_rows_[b] : 0;
  start_.assign(n_rows_.size(), 0);
  std::size_t at = 0;
  for (std::size_t b = 0; b < is_requested.size(); ++b) {
    if (is_requested[b] != 0) start_[b] = std::exchange(at, at + n_rows_[b]);
  }
  value_ = fetched(column_, n);
  if (common_ == KnownWeights::kAny) value_weight_ = fetched(weight_, n);
}

std::vector<WeightedValue> Buckets::values(std::size_t b) const {
  const auto value = std::span(value_).subspan(start_[b], n_rows_[b]);
  if (common_ == KnownWeights::kAny) {
    return sorted_values(value, std::span(value_weight_).subspan(start_[b], n_rows_[b]));
  }
  std::vector<double> sorted(value.begin(), value.end());
  for (double& item : sorted) item += 0.0;
  std::ranges::sort(sorted);
  std::vector<WeightedValue> out;
  for (const double item : sorted) {
    if (out.empty() || out.back().value != item) out.push_back({item, 0});
    out.back().weight += common_;
  }
  return out;
}

/// The buckets from `first` on in which bins will end if no single value is heavy. If an end is
/// near that of its bucket, the adjacent bucket is included.
std::vector<std::uint8_t> expected_ends(const Buckets& buckets, std::size_t first,
                                        const QuantileCutter& cutter) {
  std::vector<std::uint8_t> is_requested(buckets.size() + 2, 0);  // at b + 1
  is_requested[first + 1] = 1;
  auto [acc, rest, bins_left] = cutter.state();
  for (std::size_t b = first; b < buckets.size(); ++b) {
    const auto of_bucket = static_cast<double>(buckets.weight(b));
    acc += of_bucket;
    for (; bins_left > 1 && acc * bins_left > rest; --bins_left) {
      const double after = acc - rest / bins_left;  // of the bucket's weight
      is_requested[b + 1] = 1;
      if (after < kNear * of_bucket) is_requested[b + 2] = 1;
      if (after > (1 - kNear) * of_bucket) is_requested[b] = 1;
      acc -= rest / bins_left;
      rest -= rest / bins_left;
    }
  }
  return {is_requested.begin() + 1, is_requested.end() - 1};
}

std::vector<std::uint8_t> all_from(const Buckets& buckets, std::size_t first) {
  std::vector<std::uint8_t> is_requested(buckets.size(), 1);
  std::fill_n(is_requested.begin(), first, 0);
  return is_requested;
}

/// The number of distinct values from a bucket on.
std::size_t n_values_from(Buckets& buckets, std::size_t first) {
  buckets.fetch(all_from(buckets, first));
  std::size_t n = 0;
  for (std::size_t b = first; b < buckets.size(); ++b) n += buckets.values(b).size();
  return n;
}

/// Computes the quantile cuts while sorting only the buckets in which bins end; of the others only
/// the weight matters.
class BucketCutter {
 public:
  BucketCutter(Buckets buckets, std::size_t max_bins)
      : buckets_(std::move(buckets)),
        cutter_(std::numeric_limits<std::size_t>::max(), total(), max_bins) {}

  std::vector<double> run() {
    for (std::size_t b = 0; b < buckets_.size(); ++b) n_after_ += buckets_.is_empty(b) ? 0 : 1;
    for (std::size_t b = 0; b < buckets_.size() && !cutter_.is_done(); ++b) {
      if (buckets_.is_empty(b)) continue;
      check_interrupt();
      --n_after_;
      if (!knows_left_ && cutter_.may_skip(buckets_.weight(b), n_after_)) {
        cutter_.skip(buckets_.weight(b));
        skipped_ = b;
      } else {
        add(b);
      }
    }
    return cutter_.take();
  }

 private:
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b) sum += buckets_.weight(b);
    return sum;
  }

  void add(std::size_t b) {
    if (!knows_left_ && !cutter_.has_many_left(n_after_)) {
      cutter_.set_left(n_values_from(buckets_, b));
      knows_left_ = true;
    }
    if (!buckets_.has_values(b)) fetch_from(b);
    for (const WeightedValue& item : buckets_.values(b)) {
      if (skipped_ && cutter_.ends_before(item)) cutter_.set_last(buckets_.largest(*skipped_));
      skipped_.reset();
      cutter_.add(item);
    }
  }

  /// If values are heavy, bins do not end where predicted; after a few attempts all buckets are
  /// fetched.
  void fetch_from(std::size_t b) {
    const bool is_expected = ++n_fetches_ <= kExpected;
    buckets_.fetch(is_expected ? expected_ends(buckets_, b, cutter_) : all_from(buckets_, b));
  }

  Buckets buckets_;
  QuantileCutter cutter_;
  int n_fetches_ = 0;
  std::size_t n_after_ = 0;  // non-empty buckets after the current one
  bool knows_left_ = false;
  std::optional<std::size_t> skipped_;  // the previous bucket, if its values were not fetched
};

/// The thresholds of the rows with a positive weight.
std::vector<double> thresholds_of_present(std::span<const double> column,
                                          std::span<const std::int64_t> weight,
                                          std::size_t max_bins) {
  std::vector<double> value;
  std::vector<std::int64_t> above_zero;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (weight[i] == 0) continue;
    value.push_back(column[i]);
    above_zero.push_back(weight[i]);
  }
  return column_thresholds(value, KnownWeights(above_zero), max_bins);
}

}  // namespace

KnownWeights::KnownWeights(std::span<const std::int64_t> all)
    : weight(all), common(all.empty() ? kAny : all.front()), has_absent(false) {
  for (const std::int64_t of_row : all) {
    if (of_row != common) common = kAny;
    has_absent |= of_row == 0;
  }
}

bool QuantileCutter::ends_before(const WeightedValue& item) const {
  const bool enough_bins = n_left_ <= bins_left_ - 1;
  const bool is_full = (2 * acc_ + item.weight) * static_cast<std::int64_t>(bins_left_) > 2 * rest_;
  return acc_ > 0 && bins_left_ > 1 && (enough_bins || is_full);
}

void QuantileCutter::add(const WeightedValue& item) {
  if (ends_before(item)) {
    thresholds_.push_back(threshold_between(last_, item.value));
    --bins_left_;
    rest_ -= acc_;
    acc_ = 0;
  }
  acc_ += item.weight;
  last_ = item.value;
  --n_left_;
}

bool QuantileCutter::may_skip(std::int64_t weight, std::size_t n_after) const {
  return has_many_left(n_after) && (acc_ + weight) * static_cast<std::int64_t>(bins_left_) <= rest_;
}

std::vector<double> cut_values(const std::vector<WeightedValue>& values, std::size_t max_bins) {
  std::int64_t total = 0;
  for (const WeightedValue& item : values) total += item.weight;
  QuantileCutter cutter(values.size(), total, max_bins);
  for (const WeightedValue& item : values) cutter.add(item);
  return cutter.take();
}

std::vector<double> sorted_thresholds(std::span<const double> column,
                                      std::span<const std::int64_t> weight, std::size_t max_bins) {
  return cut_values(distinct_values(column, weight), max_bins);
}

std::vector<double> column_thresholds(std::span<const double> column, const KnownWeights& weights,
                                      std::size_t max_bins) {
  const std::span<const std::int64_t> weight = weights.weight;
  if (weights.has_absent) return thresholds_of_present(column, weight, max_bins);
  if (max_bins > kMaxBins || column.size() < 8 * kBuckets) {
    return sorted_thresholds(column, weight, max_bins);
  }
  if (const auto few = few_distinct_values(column, weight)) return cut_values(*few, max_bins);
  return BucketCutter(Buckets(column, weights), max_bins).run();
}

}  // namespace abcgbm
