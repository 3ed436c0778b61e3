#include "partition.hpp"

#include <algorithm>
#include <numeric>

#include "parallel.hpp"

namespace abcgbm {
namespace {

/// Rows that go left move to the front, the others to `scratch`; returns how many go left.
template <class CodeOf, class IsLeft>
std::size_t move_left(std::span<std::uint32_t> rows, std::uint32_t* scratch, CodeOf code_of,
                      const IsLeft& goes_left) {
  std::size_t n_left = 0;
  std::size_t n_right = 0;
  for (const std::uint32_t row : rows) {
    const bool is_left = goes_left(code_of(row));
    rows[n_left] = row;
    scratch[n_right] = row;
    n_left += is_left ? 1 : 0;
    n_right += is_left ? 0 : 1;
  }
  return n_left;
}

/// Codes of a sparse column for ascending rows: searches on from the row before, in growing
/// strides.
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

/// Calls use(code_of), with the reader of whichever form the feature's column has.
template <class Use>
std::size_t with_codes(const Binned& binned, const Feature& feature, const Use& use) {
  if (feature.is_sparse) {
    return use(SparseReader(binned.sparse_codes.by_column[feature.column], feature.common));
  }
  return std::visit(
      [&](const auto& codes) {
        const auto* column = codes.by_column[feature.column].data();
        return use([column](std::uint32_t row) -> std::uint32_t { return column[row]; });
      },
      binned.dense_codes);
}

/// Whether each code of a categorical feature goes left.
std::vector<std::uint8_t> side_of_codes(const Feature& feature, const TreeNode& split) {
  std::vector<std::uint8_t> is_left(feature.n_bins, split.missing_left ? 1 : 0);
  for (std::uint32_t code = 0; code < feature.missing_code(); ++code) {
    is_left[code] = contains(split.left_set, code) ? 1 : 0;
  }
  return is_left;
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
  const Feature& feature = binned.features[static_cast<std::size_t>(split.feature)];
  const std::size_t n_left = with_codes(binned, feature, [&](auto code_of) {
    if (feature.is_categorical) {
      const std::vector<std::uint8_t> is_left = side_of_codes(feature, split);
      return move_left(rows, sets.scratch.data(), code_of,
                       [&](std::uint32_t code) { return is_left[code] != 0; });
    }
    constexpr std::uint32_t kNoCode = 1u << 31;
    const std::uint32_t left_missing = split.missing_left ? feature.missing_code() : kNoCode;
    const std::uint32_t bin = split.bin;
    return move_left(rows, sets.scratch.data(), code_of, [bin, left_missing](std::uint32_t code) {
      return (code <= bin) | (code == left_missing);
    });
  });
  std::copy_n(sets.scratch.begin(), rows.size() - n_left,
              rows.begin() + static_cast<std::ptrdiff_t>(n_left));
  sets.nodes.push_back({range.begin, range.begin + n_left});
  sets.nodes.push_back({range.begin + n_left, range.end});
}

void write_leaves(const RowSets& sets, std::span<const TreeNode> nodes,
                  std::span<std::uint16_t> node_of_row) {
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].is_leaf()) continue;
    for (const std::uint32_t row : sets.of(node)) {
      node_of_row[row] = static_cast<std::uint16_t>(node);
    }
  }
}

void follow(const Binned& binned, std::span<const TreeNode> nodes, RowSets& sets,
            std::span<std::uint16_t> node_of_row) {
  std::vector<std::size_t> parent_of(nodes.size());  // of a left child
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].is_leaf()) parent_of[static_cast<std::size_t>(nodes[node].left)] = node;
  }
  reset(sets, binned.n_rows);
  // Children have been numbered in the order of the splits.
  for (std::size_t left = 1; left < nodes.size(); left += 2) {
    split_rows(sets, parent_of[left], binned, nodes[parent_of[left]]);
  }
  write_leaves(sets, nodes, node_of_row);
}

}  // namespace abcgbm
