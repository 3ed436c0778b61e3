#include "histogram.hpp"

#include <algorithm>

#include "parallel.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsBetweenChecks = 1 << 16;
constexpr std::size_t kPrefetchDistance = 12;     // rows of a small node are scattered in memory
constexpr std::size_t kNodeBlockBytes = 1 << 15;  // bins of a block of columns, to stay in L1
constexpr std::size_t kRootBlockBytes = 1 << 14;
constexpr std::size_t kChunk = 2048;  // rows whose residuals are laid out by row, in L2

/// Dense columns [first, last) whose bins fit into `bytes`, at least one.
std::size_t end_of_block(const Binned& binned, std::size_t first, std::size_t bytes_per_bin,
                         std::size_t bytes) {
  const std::vector<std::uint32_t>& offset = binned.dense_offset;
  std::size_t last = first + 1;
  while (last < binned.n_dense() && (offset[last + 1] - offset[first]) * bytes_per_bin <= bytes) {
    ++last;
  }
  return last;
}

template <int W, class Code>
void add_dense(const Binned& binned, const Code* by_row, std::span<const std::uint32_t> rows,
               const Sums<W>* row_sums, Sums<W>* histogram, std::size_t first, std::size_t last) {
  const std::size_t n_columns = binned.n_dense();
  const std::uint32_t* offset = binned.dense_offset.data();
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const std::size_t ahead = rows[std::min(j + kPrefetchDistance, rows.size() - 1)];
    __builtin_prefetch(by_row + ahead * n_columns + first);
    __builtin_prefetch(row_sums + ahead);
    const Sums<W> add = row_sums[rows[j]];
    const Code* code = by_row + rows[j] * n_columns;
    for (std::size_t c = first; c < last; ++c) {
      Sums<W>& bin = histogram[offset[c] + code[c]];
      for (std::size_t w = 0; w < W; ++w) bin[w] += add[w];
    }
  }
}

template <int W>
void add_sparse(const SparseCodes& codes, std::span<const std::uint32_t> rows,
                const Sums<W>* row_sums, Sums<W>* histogram) {
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const std::size_t ahead = rows[std::min(j + kPrefetchDistance, rows.size() - 1)];
    __builtin_prefetch(codes.row_start.data() + ahead);
    __builtin_prefetch(row_sums + ahead);
    const Sums<W> add = row_sums[rows[j]];
    for (const std::uint32_t bin : codes.bins_of(rows[j])) {
      for (std::size_t w = 0; w < W; ++w) histogram[bin][w] += add[w];
    }
  }
}

void subtract_from(std::int64_t& sum, std::int64_t part) { sum -= part; }

template <std::size_t N>
void subtract_from(std::array<std::int64_t, N>& sums, const std::array<std::int64_t, N>& part) {
  for (std::size_t i = 0; i < N; ++i) sums[i] -= part[i];
}

void subtract_from(Line& line, const Line& part) { subtract_from(line.sum, part.sum); }

/// The common bin of a sparse column has what the others leave of the total.
template <class Item>
void set_common_bin(const Feature& feature, const Item& total, Item* bins) {
  Item rest = total;
  Item* first = bins + feature.offset;
  for (std::uint32_t code = 0; code < feature.n_bins; ++code) {
    if (code != feature.common) subtract_from(rest, first[code]);
  }
  first[feature.common] = rest;
}

/// Some trees' share of the work: group `group` of them, dense columns [first, last), and sparse
/// ones [first_sparse, last_sparse).
struct RootTask {
  std::size_t group;
  std::size_t n_trees;  // in the group
  std::size_t first;
  std::size_t last;
  std::size_t first_sparse;
  std::size_t last_sparse;
};

/// Lays the values of one group of trees out by row, times the weights; absent trees are 0.
void transpose_chunk(std::span<const std::int64_t> weight, const RowValues& values,
                     const RootTask& task, std::size_t start, std::span<Line> out) {
  std::array<std::int64_t, kChunk> scratch;
  for (std::size_t lane = 0; lane < kLane; ++lane) {
    if (lane >= task.n_trees) {
      for (Line& line : out) line.sum[lane] = 0;
      continue;
    }
    const std::int64_t* from =
        values(task.group * kLane + lane, start, std::span(scratch).first(out.size()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i].sum[lane] = from[i] * weight[start + i];
  }
}

template <class Code>
struct LineBlock {
  std::size_t n;  // rows
  std::size_t n_columns;
  std::size_t first;  // columns [first, last)
  std::size_t last;
  const std::uint32_t* offset;
  const Code* by_row;  // of the chunk's first row
  const Line* rows;
  Line* bins;
};

template <class Code>
struct AddLinesKernel {
  [[gnu::always_inline]] static inline void run(const LineBlock<Code>* given) {
    const LineBlock<Code> block = *given;  // a copy, which no store can change
    for (std::size_t i = 0; i < block.n; ++i) {
      const Line row = block.rows[i];
      const Code* code = block.by_row + i * block.n_columns;
      for (std::size_t c = block.first; c < block.last; ++c) {
        Line& bin = block.bins[block.offset[c] + code[c]];
        for (std::size_t lane = 0; lane < kLane; ++lane) bin.sum[lane] += row.sum[lane];
      }
    }
  }
};

struct SparseLines {
  std::size_t n;  // rows
  const std::size_t* row_start;
  const std::uint32_t* bin;
  std::uint32_t first_bin;  // bins [first_bin, last_bin) are counted
  std::uint32_t last_bin;
  const Line* rows;
  Line* bins;
  Line* total;
};

struct AddSparseLinesKernel {
  [[gnu::always_inline]] static inline void run(const SparseLines* given) {
    const SparseLines lines = *given;
    Line total = *lines.total;
    for (std::size_t i = 0; i < lines.n; ++i) {
      const Line row = lines.rows[i];
      for (std::size_t lane = 0; lane < kLane; ++lane) total.sum[lane] += row.sum[lane];
      for (std::size_t e = lines.row_start[i]; e < lines.row_start[i + 1]; ++e) {
        if (lines.bin[e] < lines.first_bin || lines.bin[e] >= lines.last_bin) continue;
        Line& bin = lines.bins[lines.bin[e]];
        for (std::size_t lane = 0; lane < kLane; ++lane) bin.sum[lane] += row.sum[lane];
      }
    }
    *lines.total = total;
  }
};

/// One group of trees over one range of columns.
template <class Code>
class GroupFiller {
 public:
  GroupFiller(const Binned& binned, const Code* by_row, const RootTask& task, Line* bins)
      : binned_(binned), by_row_(by_row), task_(task), bins_(bins) {
    first_sparse_bin_ = sparse_offset(task.first_sparse);
    last_sparse_bin_ = sparse_offset(task.last_sparse);
    std::fill(bins + binned.dense_offset[task.first], bins + binned.dense_offset[task.last],
              Line{});
    std::fill(bins + first_sparse_bin_, bins + last_sparse_bin_, Line{});
  }

  /// Rows outside, blocks of columns inside, so that both stay in the cache.
  void add(std::size_t start, std::span<const Line> rows) {
    for (std::size_t c = task_.first; c < task_.last;) {
      const std::size_t end =
          std::min(task_.last, end_of_block(binned_, c, sizeof(Line), kRootBlockBytes));
      const LineBlock<Code> block{.n = rows.size(),
                                  .n_columns = binned_.n_dense(),
                                  .first = c,
                                  .last = end,
                                  .offset = binned_.dense_offset.data(),
                                  .by_row = by_row_ + start * binned_.n_dense(),
                                  .rows = rows.data(),
                                  .bins = bins_};
      dispatch<AddLinesKernel<Code>>(&block);
      c = end;
    }
    if (task_.first_sparse < task_.last_sparse) add_sparse_lines(start, rows);
  }

  void finish() {
    for (std::size_t c = task_.first_sparse; c < task_.last_sparse; ++c) {
      set_common_bin(binned_.features[binned_.sparse[c]], total_, bins_);
    }
  }

 private:
  std::uint32_t sparse_offset(std::size_t c) const {
    return c < binned_.sparse.size() ? binned_.features[binned_.sparse[c]].offset
                                     : static_cast<std::uint32_t>(binned_.total_bins);
  }

  void add_sparse_lines(std::size_t start, std::span<const Line> rows) {
    const SparseLines lines{.n = rows.size(),
                            .row_start = binned_.sparse_codes.row_start.data() + start,
                            .bin = binned_.sparse_codes.bin.data(),
                            .first_bin = first_sparse_bin_,
                            .last_bin = last_sparse_bin_,
                            .rows = rows.data(),
                            .bins = bins_,
                            .total = &total_};
    dispatch<AddSparseLinesKernel>(&lines);
  }

  const Binned& binned_;
  const Code* by_row_;
  RootTask task_;
  Line* bins_;
  std::uint32_t first_sparse_bin_;
  std::uint32_t last_sparse_bin_;
  Line total_;
};

template <class Code>
void fill_group(const Binned& binned, std::span<const std::int64_t> weight, const RowValues& values,
                const Code* by_row, const RootTask& task, Line* bins) {
  GroupFiller<Code> filler(binned, by_row, task, bins);
  std::vector<Line> rows(std::min(kChunk, weight.size()));
  for (std::size_t start = 0; start < weight.size(); start += kChunk) {
    check_interrupt();
    const auto chunk = std::span(rows).first(std::min(kChunk, weight.size() - start));
    transpose_chunk(weight, values, task, start, chunk);
    filler.add(start, chunk);
  }
  filler.finish();
}

}  // namespace

template <int W>
void add_rows(const Binned& binned, std::span<const std::uint32_t> rows,
              std::span<const Sums<W>> row_sums, const Sums<W>& total,
              std::span<Sums<W>> histogram) {
  const auto for_chunks = [&](const auto& each) {
    for (std::size_t start = 0; start < rows.size(); start += kRowsBetweenChecks) {
      check_interrupt();
      each(rows.subspan(start, std::min(kRowsBetweenChecks, rows.size() - start)));
    }
  };
  std::visit(
      [&](const auto& codes) {
        for (std::size_t first = 0; first < binned.n_dense();) {
          const std::size_t last = end_of_block(binned, first, sizeof(Sums<W>), kNodeBlockBytes);
          for_chunks([&](std::span<const std::uint32_t> chunk) {
            add_dense<W>(binned, codes.by_row.data(), chunk, row_sums.data(), histogram.data(),
                         first, last);
          });
          first = last;
        }
      },
      binned.dense_codes);
  if (binned.sparse.empty()) return;
  for_chunks([&](std::span<const std::uint32_t> chunk) {
    add_sparse<W>(binned.sparse_codes, chunk, row_sums.data(), histogram.data());
  });
  for (const std::uint32_t f : binned.sparse) {
    set_common_bin(binned.features[f], total, histogram.data());
  }
}

template <int W>
void subtract(std::span<Sums<W>> parent, std::span<const Sums<W>> child) {
  for (std::size_t i = 0; i < parent.size(); ++i) subtract_from(parent[i], child[i]);
}

template void add_rows<2>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<2>>,
                          const Sums<2>&, std::span<Sums<2>>);
template void add_rows<3>(const Binned&, std::span<const std::uint32_t>, std::span<const Sums<3>>,
                          const Sums<3>&, std::span<Sums<3>>);
template void subtract<2>(std::span<Sums<2>>, std::span<const Sums<2>>);
template void subtract<3>(std::span<Sums<3>>, std::span<const Sums<3>>);

std::vector<std::int64_t> root_weights(const Binned& binned, std::span<const std::int64_t> weight,
                                       int n_threads) {
  std::vector<std::int64_t> weights(binned.total_bins, 0);
  std::int64_t total = 0;
  for (const std::int64_t w : weight) total += w;
  parallel_for(binned.n_features(), n_threads, [&](std::size_t f, std::size_t) {
    const Feature& feature = binned.features[f];
    std::int64_t* bins = weights.data() + feature.offset;
    if (feature.is_sparse) {
      const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
      for (std::size_t i = 0; i < column.row.size(); ++i) {
        bins[column.code[i]] += weight[column.row[i]];
      }
      set_common_bin(feature, total, weights.data());
      return;
    }
    std::visit(
        [&](const auto& codes) {
          const auto& column = codes.by_column[feature.column];
          for (std::size_t i = 0; i < column.size(); ++i) bins[column[i]] += weight[i];
        },
        binned.dense_codes);
  });
  return weights;
}

void fill_roots(const Binned& binned, std::span<const std::int64_t> weight, std::size_t n_trees,
                const RowValues& values, int n_threads, RootHistograms& roots) {
  const std::size_t n_groups = (n_trees + kLane - 1) / kLane;
  const std::size_t n_dense = binned.n_dense();
  const std::size_t n_sparse = binned.sparse.size();
  roots.total_bins = binned.total_bins;
  roots.lines.resize(n_groups * roots.total_bins);
  // A task owns a range of columns, so nothing has to be merged; every one reads all rows, so there
  // are no more of them than it takes to give each thread one.
  const std::size_t n_wanted = (static_cast<std::size_t>(n_threads) + n_groups - 1) / n_groups;
  const std::size_t n_ranges = std::min(binned.n_features(), n_wanted);
  std::visit(
      [&](const auto& codes) {
        parallel_for(n_groups * n_ranges, n_threads, [&](std::size_t i, std::size_t) {
          const std::size_t group = i / n_ranges;
          const std::size_t range = i % n_ranges;
          const RootTask task{.group = group,
                              .n_trees = std::min(kLane, n_trees - group * kLane),
                              .first = range * n_dense / n_ranges,
                              .last = (range + 1) * n_dense / n_ranges,
                              .first_sparse = range * n_sparse / n_ranges,
                              .last_sparse = (range + 1) * n_sparse / n_ranges};
          fill_group(binned, weight, values, codes.by_row.data(), task,
                     roots.lines.data() + group * roots.total_bins);
        });
      },
      binned.dense_codes);
}

}  // namespace abcgbm
