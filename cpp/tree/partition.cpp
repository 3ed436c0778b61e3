#include "tree/partition.hpp"

#include <algorithm>
#include <numeric>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kSearchFrom =
    8;  // a sparse column that lists this many times a node's rows is searched, not scanned

/// Moves rows that go left to the front, and the others to `scratch`; returns how many go left.
/// Sides are 0 and 1 to avoid branches.
template <class IsLeft>
std::size_t move_left(std::span<std::uint32_t> rows, std::uint32_t* scratch, IsLeft is_left) {
  std::size_t n_left = 0;
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const std::uint32_t row = rows[j];
    rows[n_left] = row;
    scratch[j - n_left] = row;
    n_left += is_left(row);
  }
  return n_left;
}

/// Codes of a sparse column for ascending rows: gallops on from the row before.
class SparseReader {
 public:
  SparseReader(const SparseColumn& column, std::uint32_t common)
      : column_(column), common_(common) {}

  std::uint32_t operator()(std::uint32_t row) {
    const auto& rows = column_.row;
    std::size_t stride = 1;
    while (at_ + stride < rows.size() && rows[at_ + stride] < row) {
      at_ += stride;
      stride *= 2;
    }
    const std::size_t end = std::min(at_ + stride + 1, rows.size());
    const auto found = std::lower_bound(rows.begin() + static_cast<std::ptrdiff_t>(at_),
                                        rows.begin() + static_cast<std::ptrdiff_t>(end), row);
    at_ = static_cast<std::size_t>(found - rows.begin());
    return at_ < rows.size() && rows[at_] == row ? column_.code[at_] : common_;
  }

 private:
  const SparseColumn& column_;
  std::uint32_t common_;
  std::size_t at_ = 0;
};

/// The side of each code of a feature: 1 is left.
std::vector<std::uint8_t> side_of_codes(const Feature& feature, const TreeNode& split) {
  std::vector<std::uint8_t> side(feature.n_bins, split.missing_left ? 1 : 0);
  for (std::uint32_t code = 0; code < feature.missing_code(); ++code) {
    const bool is_left =
        feature.is_categorical ? contains(split.left_set, code) : code <= split.bin;
    side[code] = is_left ? 1 : 0;
  }
  return side;
}

std::size_t split_dense(RowSets& sets, std::span<std::uint32_t> rows, const Binned& binned,
                        const Feature& feature, const TreeNode& split) {
  return std::visit(
      [&](const auto& columns) {
        const auto* column = columns[feature.column].data();
        if (feature.is_bundled || feature.is_categorical) {
          const std::vector<std::uint8_t> side = side_of_codes(feature, split);
          const std::uint32_t begin = binned.layout.begin_in_column(feature);
          return move_left(rows, sets.scratch.data(),
                           [column, begin, n_bins = feature.n_bins, common = feature.common,
                            side_of = side.data()](std::uint32_t row) {
                             const std::uint32_t code = column[row] - begin;
                             return std::size_t{side_of[code < n_bins ? code : common]};
                           });
        }
        constexpr std::uint32_t kNoCode = 1u << 31;
        const std::uint32_t bin = split.bin;
        const std::uint32_t missing = split.missing_left ? feature.missing_code() : kNoCode;
        return move_left(rows, sets.scratch.data(), [column, bin, missing](std::uint32_t row) {
          const std::uint32_t code = column[row];
          return std::size_t{code <= bin} | std::size_t{code == missing};
        });
      },
      binned.columns);
}

/// Marks the listed rows that leave the common side, and clears the marks afterwards. For a small
/// node, its rows are searched in the list instead.
std::size_t split_sparse(RowSets& sets, std::span<std::uint32_t> rows, const SparseColumn& column,
                         std::uint32_t common, std::span<const std::uint8_t> side) {
  if (column.row.size() > kSearchFrom * rows.size()) {
    return move_left(rows, sets.scratch.data(),
                     [&side, reader = SparseReader(column, common)](std::uint32_t row) mutable {
                       return std::size_t{side[reader(row)]};
                     });
  }
  const std::uint8_t common_side = side[common];
  sets.marks.resize(sets.rows.size(), 0);
  for (std::size_t i = 0; i < column.row.size(); ++i) {
    sets.marks[column.row[i]] = side[column.code[i]] ^ common_side;
  }
  const std::size_t n_left = move_left(
      rows, sets.scratch.data(), [marks = sets.marks.data(), common_side](std::uint32_t row) {
        return std::size_t{static_cast<std::uint8_t>(marks[row] ^ common_side)};
      });
  for (const std::uint32_t row : column.row) sets.marks[row] = 0;
  return n_left;
}

}  // namespace

void reset(RowSets& sets, std::size_t n_rows) {
  sets.rows.resize(n_rows);
  sets.scratch.resize(n_rows);
  std::iota(sets.rows.begin(), sets.rows.end(), std::uint32_t{0});
  sets.nodes.assign(1, {0, n_rows});
}

void split_rows(RowSets& sets, std::size_t node, const Binned& binned, const TreeNode& split) {
  check_interrupt();
  const RowSets::Range range = sets.nodes[node];
  const std::span<std::uint32_t> rows(sets.rows.data() + range.begin, range.end - range.begin);
  const Feature& feature = binned.layout.features[static_cast<std::size_t>(split.feature)];
  const std::size_t n_left = feature.is_listed()
                                 ? split_sparse(sets, rows, binned.listed.by_column[feature.column],
                                                feature.common, side_of_codes(feature, split))
                                 : split_dense(sets, rows, binned, feature, split);
  std::copy_n(sets.scratch.begin(), rows.size() - n_left,
              rows.begin() + static_cast<std::ptrdiff_t>(n_left));
  sets.nodes.push_back({range.begin, range.begin + n_left});
  sets.nodes.push_back({range.begin + n_left, range.end});
}

void write_leaves(const RowSets& sets, std::span<const TreeNode> nodes,
                  std::span<std::uint16_t> node_of_row) {
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].is_leaf()) continue;
    for (const std::uint32_t row : sets.in_node(node)) {
      node_of_row[row] = static_cast<std::uint16_t>(node);
    }
  }
}

void apply_tree(const Binned& binned, std::span<const TreeNode> nodes, RowSets& sets,
                std::span<std::uint16_t> node_of_row) {
  std::vector<std::size_t> parent_of(nodes.size());  // of a left child
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].is_leaf()) parent_of[static_cast<std::size_t>(nodes[node].left)] = node;
  }
  reset(sets, binned.n_rows);
  // Children are numbered in the order of the splits.
  for (std::size_t left = 1; left < nodes.size(); left += 2) {
    split_rows(sets, parent_of[left], binned, nodes[parent_of[left]]);
  }
  write_leaves(sets, nodes, node_of_row);
}

}  // namespace abcgbm
