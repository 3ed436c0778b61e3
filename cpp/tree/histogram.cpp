#include "tree/histogram.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kPrefetchDistance = 12;  // as rows of a small node are scattered in memory
constexpr std::size_t kChunk =
    2048;  // rows whose residuals are transposed to row order, in the L2 cache
constexpr std::size_t kMaxLines = 512;  // of columns that are built together, in the L1 cache
constexpr std::size_t kAnyBins = std::size_t{1} << 32;

/// N columns that are built together: the sums of a row are read once for all of them, and
/// consecutive rows with the same bin do not wait for each other.
template <std::size_t N, class Code, class Item>
struct ColumnGroup {
  ColumnGroup(const Layout& layout, const Columns<Code>& columns, std::size_t first,
              Item* all_bins) {
    for (std::size_t c = 0; c < N; ++c) {
      code[c] = columns[first + c].data();
      bins[c] = all_bins + layout.column_bin[first + c];
    }
  }
  std::array<const Code*, N> code;
  std::array<Item*, N> bins;
};

/// Calls each() with groups of the columns of a block: four columns, as many as there are registers
/// for, or fewer if together they have more than `max_bins`.
template <class Code, class Item, class Each>
void for_column_groups(const Layout& layout, const Columns<Code>& columns, const Block& block,
                       std::size_t max_bins, Item* bins, const Each& each) {
  const auto fits = [&](std::size_t first, std::size_t n) {
    return first + n <= block.last_column &&
           layout.column_bin[first + n] - layout.column_bin[first] <= max_bins;
  };
  for (std::size_t first = block.first_column; first < block.last_column;) {
    if (fits(first, 4)) {
      each(ColumnGroup<4, Code, Item>(layout, columns, first, bins));
      first += 4;
    } else if (fits(first, 2)) {
      each(ColumnGroup<2, Code, Item>(layout, columns, first, bins));
      first += 2;
    } else {
      each(ColumnGroup<1, Code, Item>(layout, columns, first, bins));
      first += 1;
    }
  }
}

/// Adds rows to N columns.
template <int W, std::size_t N, class Code>
struct AddRowsKernel {
  [[gnu::always_inline]] static inline void run(const RowsToAdd<W>* given,
                                                const ColumnGroup<N, Code, Sums<W>>* group) {
    const RowsToAdd<W> rows = *given;
    const ColumnGroup<N, Code, Sums<W>> columns = *group;
    for (std::size_t j = 0; j < rows.rows.size(); ++j) {
      const std::uint32_t row = rows.rows[j];
      const HeldSums<W> more(rows.sums[j]);
      for (std::size_t c = 0; c < N; ++c) more.add_to(columns.bins[c][columns.code[c][row]]);
    }
  }
};

template <int W>
void add_listed(const ListedCodes& listed, const RowsToAdd<W>& rows, Sums<W>* histogram) {
  const std::size_t n_rows = rows.rows.size();
  const std::uint32_t* row = rows.rows.data();
  for (std::size_t j = 0; j < n_rows; ++j) {
    __builtin_prefetch(listed.row_start.data() + row[std::min(j + kPrefetchDistance, n_rows - 1)]);
    const Sums<W> sums = rows.sums[j];
    for (const std::uint32_t bin : listed.bins_of_row(row[j])) add(histogram[bin], sums);
  }
}

/// The common bin of a sparse feature is the total minus the other bins.
template <class Item>
void set_common_bin(const Feature& feature, const Item& total, Item* bins) {
  Item rest = total;
  Item* first = bins + feature.offset;
  for (std::uint32_t code = 0; code < feature.n_bins; ++code) {
    if (code != feature.common) subtract(rest, first[code]);
  }
  first[feature.common] = rest;
}

template <class Item>
void set_common_bins(const Layout& layout, const Block& block, const Item& total, Item* bins) {
  for (const std::uint32_t f : block.features) {
    if (layout.features[f].is_sparse) set_common_bin(layout.features[f], total, bins);
  }
}

/// A group of trees in some blocks of columns.
struct RootTask {
  std::size_t first_tree;
  std::size_t n_trees;
  std::span<const Block> blocks;
  Line* bins;  // of the group
};

/// Transposes the weighted values of a group of trees to row order; missing trees are 0.
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

/// Adds a chunk of rows, from `start` on, to N columns.
template <std::size_t N, class Code>
struct AddLinesKernel {
  [[gnu::always_inline]] static inline void run(const Line* rows, std::size_t n, std::size_t start,
                                                const ColumnGroup<N, Code, Line>* group) {
    const ColumnGroup<N, Code, Line> columns = *group;
    for (std::size_t i = 0; i < n; ++i) {
      const Line row = rows[i];
      for (std::size_t c = 0; c < N; ++c) {
        add_line(columns.bins[c][columns.code[c][start + i]], row);
      }
    }
  }
};

/// Adds a chunk of rows to the bins that they list.
struct AddListedLinesKernel {
  [[gnu::always_inline]] static inline void run(const Line* rows, std::size_t n,
                                                const std::size_t* row_start,
                                                const std::uint32_t* bin, Line* bins) {
    for (std::size_t i = 0; i < n; ++i) {
      const Line row = rows[i];
      for (std::size_t e = row_start[i]; e < row_start[i + 1]; ++e) add_line(bins[bin[e]], row);
    }
  }
};

/// Adds a chunk of rows, from `start` on, to one block of columns.
template <class Code>
void add_lines(const Binned& binned, const Columns<Code>& columns, const Block& block,
               std::size_t start, std::span<const Line> rows, Line* bins) {
  if (block.is_listed()) {
    const ListedCodes& listed = binned.listed;
    dispatch<AddListedLinesKernel>(rows.data(), rows.size(), listed.row_start.data() + start,
                                   listed.bin.data(), bins);
  }
  const auto add = [&]<std::size_t N>(const ColumnGroup<N, Code, Line>& group) {
    dispatch<AddLinesKernel<N, Code>>(rows.data(), rows.size(), start, &group);
  };
  for_column_groups(binned.layout, columns, block, kMaxLines, bins, add);
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
    if (!binned.layout.sparse_features.empty()) {
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
  for (const Block& block : task.blocks) set_common_bins(binned.layout, block, total, task.bins);
}

}  // namespace

template <int W>
void add_to_block(const Binned& binned, const Block& block, const RowsToAdd<W>& rows,
                  std::span<Sums<W>> histogram) {
  if (block.is_listed()) return add_listed<W>(binned.listed, rows, histogram.data());
  std::visit(
      [&](const auto& columns) {
        using Code = typename std::decay_t<decltype(columns)>::value_type::value_type;
        const auto add = [&]<std::size_t N>(const ColumnGroup<N, Code, Sums<W>>& group) {
          dispatch<AddRowsKernel<W, N, Code>>(&rows, &group);
        };
        for_column_groups(binned.layout, columns, block, kAnyBins, histogram.data(), add);
      },
      binned.columns);
}

template <int W>
void finish_block(const Layout& layout, const Block& block, const Sums<W>& node,
                  std::span<Sums<W>> histogram) {
  set_common_bins(layout, block, node, histogram.data());
}

template <int W>
void subtract_block(const Block& block, std::span<Sums<W>> parent, std::span<const Sums<W>> child) {
  Sums<W>* from = parent.data();
  const Sums<W>* part = child.data();
  for (std::size_t i = block.first_bin; i < block.last_bin; ++i) subtract(from[i], part[i]);
}

template void add_to_block<2>(const Binned&, const Block&, const RowsToAdd<2>&, std::span<Sums<2>>);
template void add_to_block<3>(const Binned&, const Block&, const RowsToAdd<3>&, std::span<Sums<3>>);
template void finish_block<2>(const Layout&, const Block&, const Sums<2>&, std::span<Sums<2>>);
template void finish_block<3>(const Layout&, const Block&, const Sums<3>&, std::span<Sums<3>>);
template void subtract_block<2>(const Block&, std::span<Sums<2>>, std::span<const Sums<2>>);
template void subtract_block<3>(const Block&, std::span<Sums<3>>, std::span<const Sums<3>>);

std::vector<std::int64_t> root_weights(const Binned& binned, RowWeights weight, int n_threads) {
  const Layout& layout = binned.layout;
  std::vector<std::int64_t> weights(layout.total_bins, 0);
  const std::int64_t total = total_weight(weight, binned.n_rows);
  parallel_for(layout.n_columns(), n_threads, [&](std::size_t c, std::size_t) {
    std::visit(
        [&](const auto& columns) {
          std::int64_t* bins = weights.data() + layout.column_bin[c];
          for (std::size_t i = 0; i < binned.n_rows; ++i) bins[columns[c][i]] += weight[i];
        },
        binned.columns);
  });
  parallel_for(layout.sparse_features.size(), n_threads, [&](std::size_t s, std::size_t) {
    const Feature& feature = layout.features[layout.sparse_features[s]];
    if (feature.is_listed()) {
      const SparseColumn& column = binned.listed.by_column[feature.column];
      for (std::size_t i = 0; i < column.row.size(); ++i) {
        weights[feature.offset + column.code[i]] += weight[column.row[i]];
      }
    }
    set_common_bin(feature, total, weights.data());
  });
  return weights;
}

void fill_roots(const Binned& binned, RowWeights weight, std::size_t n_trees,
                const RowValues& values, int n_threads, HistogramGroups& roots) {
  const std::size_t n_groups = (n_trees + kLane - 1) / kLane;
  roots.total_bins = binned.layout.total_bins;
  roots.lines.resize(n_groups * roots.total_bins);
  // A task owns a range of blocks, so nothing needs to be merged. As every task reads all rows,
  // there are only as many as it takes to give each thread one.
  const std::size_t n_requested = (static_cast<std::size_t>(n_threads) + n_groups - 1) / n_groups;
  const std::vector<Block> blocks = blocks_of(binned.layout, n_requested);
  const std::size_t n_ranges = std::min(blocks.size(), n_requested);
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
