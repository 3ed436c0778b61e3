#include "tree/histogram.hpp"

#include <algorithm>
#include <bit>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kPrefetchDistance = 12;  // rows of a small node are scattered in memory
constexpr std::size_t kChunk = 2048;           // rows whose residuals are laid out by row, in L2
constexpr std::size_t kLinesTogether = 512;    // of columns that are counted together, in L1
constexpr std::size_t kAnyBins = std::size_t{1} << 32;

/// N columns that are counted together: what is read of a row serves all, and a row need not wait
/// for the one before where both have the same bin.
template <std::size_t N, class Code, class Item>
struct Together {
  Together(const Binned& binned, const Columns<Code>& columns, std::size_t first, Item* all_bins) {
    for (std::size_t c = 0; c < N; ++c) {
      code[c] = columns[first + c].data();
      bins[c] = all_bins + binned.column_bin[first + c];
    }
  }
  std::array<const Code*, N> code;
  std::array<Item*, N> bins;
};

/// Calls each() with the columns of a block: four together, as many as there are registers for, or
/// fewer if they have more than `most_bins`.
template <class Code, class Item, class Each>
void for_columns(const Binned& binned, const Columns<Code>& columns, const Block& block,
                 std::size_t most_bins, Item* bins, const Each& each) {
  const auto fits = [&](std::size_t first, std::size_t n) {
    return first + n <= block.last_column &&
           binned.column_bin[first + n] - binned.column_bin[first] <= most_bins;
  };
  for (std::size_t first = block.first_column; first < block.last_column;) {
    if (fits(first, 4)) {
      each(Together<4, Code, Item>(binned, columns, first, bins));
      first += 4;
    } else if (fits(first, 2)) {
      each(Together<2, Code, Item>(binned, columns, first, bins));
      first += 2;
    } else {
      each(Together<1, Code, Item>(binned, columns, first, bins));
      first += 1;
    }
  }
}

/// Adds some rows to N columns.
template <int W, std::size_t N, class Code>
struct AddRowsKernel {
  [[gnu::always_inline]] static inline void run(const RowsToCount<W>* given,
                                                const Together<N, Code, Sums<W>>* together) {
    const RowsToCount<W> rows = *given;
    const Together<N, Code, Sums<W>> columns = *together;
    for (std::size_t j = 0; j < rows.rows.size(); ++j) {
      const std::uint32_t row = rows.rows[j];
      const HeldSums<W> more(rows.sums[j]);
      for (std::size_t c = 0; c < N; ++c) more.add_to(columns.bins[c][columns.code[c][row]]);
    }
  }
};

template <int W>
void add_sparse(const SparseCodes& codes, const RowsToCount<W>& rows, Sums<W>* histogram) {
  const std::size_t n_rows = rows.rows.size();
  const std::uint32_t* row = rows.rows.data();
  for (std::size_t j = 0; j < n_rows; ++j) {
    __builtin_prefetch(codes.row_start.data() + row[std::min(j + kPrefetchDistance, n_rows - 1)]);
    const Sums<W> add = rows.sums[j];
    for (const std::uint32_t bin : codes.bins_of(row[j])) {
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

template <class Item>
void set_common_bins(const Binned& binned, const Block& block, const Item& total, Item* bins) {
  for (const std::uint32_t f : block.features) {
    if (binned.features[f].is_sparse) set_common_bin(binned.features[f], total, bins);
  }
}

/// A group of trees in some blocks of columns.
struct RootTask {
  std::size_t first_tree;
  std::size_t n_trees;
  std::span<const Block> blocks;
  Line* bins;  // of the group
};

/// Lays the values of one group of trees out by row, times the weights; absent trees are 0.
void transpose_chunk(RowWeights weight, const RowValues& values, const RootTask& task,
                     std::size_t start, std::span<Line> out) {
  std::array<std::int64_t, kChunk> scratch;
  for (std::size_t lane = 0; lane < kLane; ++lane) {
    if (lane >= task.n_trees) {
      for (Line& line : out) line.sum[lane] = 0;
      continue;
    }
    const std::int64_t* from =
        values(task.first_tree + lane, start, std::span(scratch).first(out.size()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i].sum[lane] = from[i] * weight[start + i];
  }
}

[[gnu::always_inline]] inline void add_line(Line& to, const Line& line) {
  for (std::size_t lane = 0; lane < kLane; ++lane) to.sum[lane] += line.sum[lane];
}

/// Adds a chunk of rows, the first of which is `start`, to N columns.
template <std::size_t N, class Code>
struct AddLinesKernel {
  [[gnu::always_inline]] static inline void run(const Line* rows, std::size_t n, std::size_t start,
                                                const Together<N, Code, Line>* given) {
    const Together<N, Code, Line> columns = *given;
    for (std::size_t i = 0; i < n; ++i) {
      const Line row = rows[i];
      for (std::size_t c = 0; c < N; ++c) {
        add_line(columns.bins[c][columns.code[c][start + i]], row);
      }
    }
  }
};

/// Adds a chunk of rows to the sparse columns.
struct AddSparseLinesKernel {
  [[gnu::always_inline]] static inline void run(const Line* rows, std::size_t n,
                                                const std::size_t* row_start,
                                                const std::uint32_t* bin, Line* bins) {
    for (std::size_t i = 0; i < n; ++i) {
      const Line row = rows[i];
      for (std::size_t e = row_start[i]; e < row_start[i + 1]; ++e) add_line(bins[bin[e]], row);
    }
  }
};

/// Adds a chunk of rows, the first of which is `start`, to one block of columns.
template <class Code>
void add_lines(const Binned& binned, const Columns<Code>& columns, const Block& block,
               std::size_t start, std::span<const Line> rows, Line* bins) {
  if (block.is_sparse()) {
    const SparseCodes& codes = binned.sparse_codes;
    dispatch<AddSparseLinesKernel>(rows.data(), rows.size(), codes.row_start.data() + start,
                                   codes.bin.data(), bins);
  }
  const auto add = [&]<std::size_t N>(const Together<N, Code, Line>& together) {
    dispatch<AddLinesKernel<N, Code>>(rows.data(), rows.size(), start, &together);
  };
  for_columns(binned, columns, block, kLinesTogether, bins, add);
}

void fill_group(const Binned& binned, RowWeights weight, const RowValues& values,
                const RootTask& task) {
  std::fill(task.bins + task.blocks.front().first_bin, task.bins + task.blocks.back().last_bin,
            Line{});
  std::vector<Line> rows(std::min(kChunk, binned.n_rows));
  Line total;
  for (std::size_t start = 0; start < binned.n_rows; start += kChunk) {
    check_interrupt();
    const auto chunk = std::span(rows).first(std::min(kChunk, binned.n_rows - start));
    transpose_chunk(weight, values, task, start, chunk);
    if (!binned.sparse.empty()) {
      for (const Line& row : chunk) add_line(total, row);
    }
    std::visit(
        [&](const auto& columns) {
          for (const Block& block : task.blocks) {
            add_lines(binned, columns, block, start, chunk, task.bins);
          }
        },
        binned.columns);
  }
  for (const Block& block : task.blocks) set_common_bins(binned, block, total, task.bins);
}

}  // namespace

template <int W>
void count_block(const Binned& binned, const Block& block, const RowsToCount<W>& rows,
                 std::span<Sums<W>> histogram) {
  if (block.is_sparse()) return add_sparse<W>(binned.sparse_codes, rows, histogram.data());
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        const auto add = [&]<std::size_t N>(const Together<N, Code, Sums<W>>& together) {
          dispatch<AddRowsKernel<W, N, Code>>(&rows, &together);
        };
        for_columns(binned, columns, block, kAnyBins, histogram.data(), add);
      },
      binned.columns);
}

template <int W>
void finish_block(const Binned& binned, const Block& block, const Sums<W>& total,
                  std::span<Sums<W>> histogram) {
  set_common_bins(binned, block, total, histogram.data());
}

template <int W>
void subtract(const Block& block, std::span<Sums<W>> parent, std::span<const Sums<W>> child) {
  Sums<W>* from = parent.data();
  const Sums<W>* part = child.data();
  for (std::size_t i = block.first_bin; i < block.last_bin; ++i) subtract_from(from[i], part[i]);
}

template void count_block<2>(const Binned&, const Block&, const RowsToCount<2>&,
                             std::span<Sums<2>>);
template void count_block<3>(const Binned&, const Block&, const RowsToCount<3>&,
                             std::span<Sums<3>>);
template void finish_block<2>(const Binned&, const Block&, const Sums<2>&, std::span<Sums<2>>);
template void finish_block<3>(const Binned&, const Block&, const Sums<3>&, std::span<Sums<3>>);
template void subtract<2>(const Block&, std::span<Sums<2>>, std::span<const Sums<2>>);
template void subtract<3>(const Block&, std::span<Sums<3>>, std::span<const Sums<3>>);

std::vector<std::int64_t> root_weights(const Binned& binned, RowWeights weight, int n_threads) {
  std::vector<std::int64_t> weights(binned.total_bins, 0);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < binned.n_rows; ++i) total += weight[i];
  parallel_for(binned.n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    std::visit(
        [&](const auto& columns) {
          std::int64_t* bins = weights.data() + binned.column_bin[c];
          for (std::size_t i = 0; i < binned.n_rows; ++i) bins[columns[c][i]] += weight[i];
        },
        binned.columns);
  });
  parallel_for(binned.sparse.size(), n_threads, [&](std::size_t s, std::size_t) {
    const Feature& feature = binned.features[binned.sparse[s]];
    if (feature.is_listed()) {
      const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
      for (std::size_t i = 0; i < column.row.size(); ++i) {
        weights[feature.offset + column.code[i]] += weight[column.row[i]];
      }
    }
    set_common_bin(feature, total, weights.data());
  });
  return weights;
}

void fill_roots(const Binned& binned, RowWeights weight, std::size_t n_trees,
                const RowValues& values, int n_threads, RootHistograms& roots) {
  const std::size_t n_groups = (n_trees + kLane - 1) / kLane;
  roots.total_bins = binned.total_bins;
  roots.lines.resize(n_groups * roots.total_bins);
  // A task owns a range of blocks, so nothing has to be merged; every one reads all rows, so there
  // are no more of them than it takes to give each thread one.
  const std::size_t n_wanted = (static_cast<std::size_t>(n_threads) + n_groups - 1) / n_groups;
  const std::vector<Block> blocks = blocks_of(binned, n_wanted);
  const std::size_t n_ranges = std::min(blocks.size(), n_wanted);
  parallel_for(n_groups * n_ranges, n_threads, [&](std::size_t i, std::size_t) {
    const std::size_t group = i / n_ranges;
    const std::size_t first = i % n_ranges * blocks.size() / n_ranges;
    const std::size_t last = (i % n_ranges + 1) * blocks.size() / n_ranges;
    const RootTask task{.first_tree = group * kLane,
                        .n_trees = std::min(kLane, n_trees - group * kLane),
                        .blocks = std::span(blocks).subspan(first, last - first),
                        .bins = roots.lines.data() + group * roots.total_bins};
    fill_group(binned, weight, values, task);
  });
}

}  // namespace abcgbm
