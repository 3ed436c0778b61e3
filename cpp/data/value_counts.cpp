#include "data/value_counts.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "data/quantile_cuts.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBetweenChecks = 1 << 16;

RunView view_of(const ValueRun& run) { return {.value = run.value, .weight = run.weight}; }

/// Merges sorted runs with a heap, adding up the weights of equal values.
class Merger {
 public:
  explicit Merger(std::span<const RunView> runs) {
    for (const RunView& run : runs) {
      if (!run.value.empty())
        heap_.push_back({run.value.data(), run.weight.data(), run.value.size()});
    }
    std::ranges::make_heap(heap_, is_later);
  }

  bool is_done() const { return heap_.empty(); }

  WeightedValue next() {
    WeightedValue found = {.value = *heap_.front().value, .weight = 0};
    while (!heap_.empty() && *heap_.front().value == found.value) {
      found.weight += *heap_.front().weight;
      advance();
    }
    return found;
  }

 private:
  struct Head {
    const double* value;
    const std::int64_t* weight;
    std::size_t n_left;
  };

  static bool is_later(const Head& a, const Head& b) { return *a.value > *b.value; }

  /// Advances the run of the smallest value, and restores the heap.
  void advance() {
    Head& first = heap_.front();
    ++first.value;
    ++first.weight;
    if (--first.n_left == 0) {
      std::swap(first, heap_.back());
      heap_.pop_back();
    }
    sink();
  }

  void sink() {
    for (std::size_t at = 0;;) {
      std::size_t smallest = 2 * at + 1;
      if (smallest >= heap_.size()) return;
      if (smallest + 1 < heap_.size() && is_later(heap_[smallest], heap_[smallest + 1])) ++smallest;
      if (!is_later(heap_[at], heap_[smallest])) return;
      std::swap(heap_[at], heap_[smallest]);
      at = smallest;
    }
  }

  std::vector<Head> heap_;
};

/// Calls each(value with its weight) for the distinct values of all runs, ascending.
template <class Each>
void for_each_value(std::span<const RunView> runs, const Each& each) {
  Merger merger(runs);
  for (std::size_t i = 0; !merger.is_done(); ++i) {
    if (i % kBetweenChecks == 0) check_interrupt();
    each(merger.next());
  }
}

ValueRun merged(std::span<const RunView> runs) {
  ValueRun out;
  std::size_t max_size = 0;
  for (const RunView& run : runs) max_size = std::max(max_size, run.value.size());
  out.value.reserve(max_size);
  out.weight.reserve(max_size);
  for_each_value(runs, [&](const WeightedValue& item) {
    out.value.push_back(item.value);
    out.weight.push_back(item.weight);
  });
  return out;
}

/// Adds a run to those of a column. The last runs are merged while they are at most twice as long,
/// so each value takes part in a logarithmic number of merges.
void add_run(std::vector<ValueRun>& runs, ValueRun run) {
  std::size_t n_kept = runs.size();
  std::size_t n_together = run.size();
  while (n_kept > 0 && runs[n_kept - 1].size() <= 2 * n_together) {
    n_together += runs[--n_kept].size();
  }
  if (n_kept < runs.size()) {
    std::vector<RunView> views = {view_of(run)};
    for (std::size_t i = n_kept; i < runs.size(); ++i) views.push_back(view_of(runs[i]));
    run = merged(views);
  }
  runs.resize(n_kept);
  runs.push_back(std::move(run));
}

/// The run of one column of a batch.
ValueRun counted(std::span<const double> column, std::span<const std::int64_t> weight) {
  ValueRun run;
  const std::vector<WeightedValue> found = distinct_values(column, weight);
  run.value.reserve(found.size());
  run.weight.reserve(found.size());
  for (const WeightedValue& item : found) {
    if (item.weight == 0) continue;
    run.value.push_back(item.value);
    run.weight.push_back(item.weight);
  }
  return run;
}

std::vector<RunView> views_of(std::span<const ValueRun> runs) {
  std::vector<RunView> views;
  for (const ValueRun& run : runs) views.push_back(view_of(run));
  return views;
}

std::vector<double> cut(std::span<const RunView> runs, std::size_t max_bins) {
  std::size_t n_values = 0;
  std::int64_t total = 0;
  for_each_value(runs, [&](const WeightedValue& item) {
    ++n_values;
    total += item.weight;
  });
  QuantileCutter cutter(n_values, total, max_bins);
  for_each_value(runs, [&](const WeightedValue& item) { cutter.add(item); });
  return cutter.take();
}

}  // namespace

void ValueCounts::add(const TableView& table, std::span<const std::int64_t> weight,
                      std::size_t first_row, int n_threads) {
  for_each_column(table, n_threads, [&](std::size_t c, std::span<const double> column) {
    digest_[c] += column_digest(column, first_row);
    add_run(runs_[c], counted(column, weight));
  });
}

void ValueCounts::merge(const ValueCounts& other, int n_threads) {
  parallel_for(n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    digest_[c] += other.digest_[c];
    for (const ValueRun& run : other.runs_[c]) add_run(runs_[c], run);
  });
}

std::vector<ValueRun> ValueCounts::take(int n_threads) {
  std::vector<ValueRun> taken(n_columns());
  parallel_for(n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    taken[c] = runs_[c].size() == 1 ? std::move(runs_[c].front()) : merged(views_of(runs_[c]));
    runs_[c].clear();
  });
  return taken;
}

Thresholds ValueCounts::thresholds(std::span<const std::vector<RunView>> further,
                                   std::size_t max_bins, int n_threads) const {
  Thresholds thresholds(n_columns());
  parallel_for(n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    std::vector<RunView> runs = views_of(runs_[c]);
    if (!further.empty()) runs.insert(runs.end(), further[c].begin(), further[c].end());
    thresholds[c] = cut(runs, max_bins);
  });
  return thresholds;
}

std::size_t ValueCounts::n_values() const {
  std::size_t n = 0;
  for (const auto& runs : runs_) {
    for (const ValueRun& run : runs) n += run.size();
  }
  return n;
}

}  // namespace abcgbm
