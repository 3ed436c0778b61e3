#include "histogram.hpp"

#include <algorithm>

#include "parallel.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsBetweenChecks = 1 << 16;
constexpr std::size_t kPrefetchDistance = 12;     // rows of a small node are scattered in memory
constexpr std::size_t kNodeBlockBytes = 1 << 15;  // bins of a block of features, to stay in L1
constexpr std::size_t kRootBlockBytes = 1 << 14;
constexpr std::size_t kChunk = 2048;  // rows whose residuals are laid out by row, in L2

/// Features [first, last) whose bins fit into `bytes`, at least one.
std::size_t end_of_block(const Binned& binned, std::size_t first, std::size_t bytes_per_bin,
                         std::size_t bytes) {
  std::size_t last = first + 1;
  while (last < binned.n_features &&
         (binned.offset[last + 1] - binned.offset[first]) * bytes_per_bin <= bytes) {
    ++last;
  }
  return last;
}

template <int W, class Code>
void add_rows_to_block(const Binned& binned, const Code* by_row,
                       std::span<const std::uint32_t> rows, const Sums<W>* row_sums,
                       Sums<W>* histogram, std::size_t first, std::size_t last) {
  const std::size_t n_features = binned.n_features;
  const std::uint32_t* offset = binned.offset.data();
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const std::size_t ahead = rows[std::min(j + kPrefetchDistance, rows.size() - 1)];
    __builtin_prefetch(by_row + ahead * n_features + first);
    __builtin_prefetch(row_sums + ahead);
    const Sums<W> add = row_sums[rows[j]];
    const Code* code = by_row + rows[j] * n_features;
    for (std::size_t f = first; f < last; ++f) {
      Sums<W>& bin = histogram[offset[f] + code[f]];
      for (std::size_t w = 0; w < W; ++w) bin[w] += add[w];
    }
  }
}

/// Some trees' share of the work: group `group` of them, features [first, last).
struct RootTask {
  std::size_t group;
  std::size_t n_trees;  // in the group
  std::size_t first;
  std::size_t last;
};

/// Lays the values of one group of trees out by row, times the weights; absent trees are 0.
void transpose_chunk(const Labels& labels, const RowValues& values, const RootTask& task,
                     std::size_t start, std::span<Line> out) {
  std::array<std::int64_t, kChunk> scratch;
  const std::int64_t* weight = labels.weight.data() + start;
  for (std::size_t lane = 0; lane < kLane; ++lane) {
    if (lane >= task.n_trees) {
      for (Line& line : out) line.sum[lane] = 0;
      continue;
    }
    const std::int64_t* from =
        values(task.group * kLane + lane, start, std::span(scratch).first(out.size()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i].sum[lane] = from[i] * weight[i];
  }
}

template <class Code>
struct LineBlock {
  std::size_t n;  // rows
  std::size_t n_features;
  std::size_t first;  // features [first, last)
  std::size_t last;
  const std::uint32_t* offset;
  const Code* by_row;  // of the chunk's first row
  const Line* rows;
  Line* bins;
};

template <class Code>
struct AddLinesKernel {
  [[gnu::always_inline]] static inline void run(const LineBlock<Code>* block) {
    for (std::size_t i = 0; i < block->n; ++i) {
      const Line row = block->rows[i];
      const Code* code = block->by_row + i * block->n_features;
      for (std::size_t f = block->first; f < block->last; ++f) {
        Line& bin = block->bins[block->offset[f] + code[f]];
        for (std::size_t lane = 0; lane < kLane; ++lane) bin.sum[lane] += row.sum[lane];
      }
    }
  }
};

/// Row chunks outside, blocks of features inside, so that both stay in the cache.
template <class Code>
void fill_group(const Binned& binned, const Labels& labels, const RowValues& values,
                const Code* by_row, const RootTask& task, Line* bins) {
  std::fill(bins + binned.offset[task.first], bins + binned.offset[task.last], Line{});
  std::vector<Line> rows(std::min(kChunk, labels.n_rows()));
  for (std::size_t start = 0; start < labels.n_rows(); start += kChunk) {
    check_interrupt();
    const std::size_t n = std::min(kChunk, labels.n_rows() - start);
    transpose_chunk(labels, values, task, start, std::span(rows).first(n));
    for (std::size_t f = task.first; f < task.last;) {
      const std::size_t end =
          std::min(task.last, end_of_block(binned, f, sizeof(Line), kRootBlockBytes));
      const LineBlock<Code> block{.n = n,
                                  .n_features = binned.n_features,
                                  .first = f,
                                  .last = end,
                                  .offset = binned.offset.data(),
                                  .by_row = by_row + start * binned.n_features,
                                  .rows = rows.data(),
                                  .bins = bins};
      dispatch<AddLinesKernel<Code>>(&block);
      f = end;
    }
  }
}

}  // namespace

template <int W>
void add_rows(const Binned& binned, std::span<const std::uint32_t> rows,
              std::span<const Sums<W>> row_sums, std::span<Sums<W>> histogram) {
  std::visit(
      [&](const auto& codes) {
        for (std::size_t first = 0; first < binned.n_features;) {
          const std::size_t last = end_of_block(binned, first, sizeof(Sums<W>), kNodeBlockBytes);
          for (std::size_t start = 0; start < rows.size(); start += kRowsBetweenChecks) {
            check_interrupt();
            const std::size_t n = std::min(kRowsBetweenChecks, rows.size() - start);
            add_rows_to_block<W>(binned, codes.by_row.data(), rows.subspan(start, n),
                                 row_sums.data(), histogram.data(), first, last);
          }
          first = last;
        }
      },
      binned.codes);
}

template <int W>
void subtract(std::span<Sums<W>> parent, std::span<const Sums<W>> child) {
  for (std::size_t i = 0; i < parent.size(); ++i) {
    for (std::size_t w = 0; w < W; ++w) parent[i][w] -= child[i][w];
  }
}

template void add_rows<2>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<2>>,
                          std::span<Sums<2>>);
template void add_rows<3>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<3>>,
                          std::span<Sums<3>>);
template void subtract<2>(std::span<Sums<2>>, std::span<const Sums<2>>);
template void subtract<3>(std::span<Sums<3>>, std::span<const Sums<3>>);

std::vector<std::int64_t> root_weights(const Binned& binned, const Labels& labels, int n_threads) {
  std::vector<std::int64_t> weights(binned.total_bins(), 0);
  std::visit(
      [&](const auto& codes) {
        parallel_for(binned.n_features, n_threads, [&](std::size_t f, std::size_t) {
          const auto* column = codes.by_column.data() + f * binned.n_rows;
          std::int64_t* bins = weights.data() + binned.offset[f];
          for (std::size_t i = 0; i < binned.n_rows; ++i) bins[column[i]] += labels.weight[i];
        });
      },
      binned.codes);
  return weights;
}

void fill_roots(const Binned& binned, const Labels& labels, std::size_t n_trees,
                const RowValues& values, int n_threads, RootHistograms& roots) {
  const std::size_t n_groups = (n_trees + kLane - 1) / kLane;
  roots.total_bins = binned.total_bins();
  roots.lines.resize(n_groups * roots.total_bins);
  // Each thread owns a range of features, so nothing has to be merged.
  const std::size_t n_ranges =
      std::min(binned.n_features, static_cast<std::size_t>(std::max(n_threads, 1)));
  std::visit(
      [&](const auto& codes) {
        parallel_for(n_groups * n_ranges, n_threads, [&](std::size_t i, std::size_t) {
          const std::size_t group = i / n_ranges;
          const std::size_t range = i % n_ranges;
          const RootTask task{.group = group,
                              .n_trees = std::min(kLane, n_trees - group * kLane),
                              .first = range * binned.n_features / n_ranges,
                              .last = (range + 1) * binned.n_features / n_ranges};
          fill_group(binned, labels, values, codes.by_row.data(), task,
                     roots.lines.data() + group * roots.total_bins);
        });
      },
      binned.codes);
}

}  // namespace abcgbm
