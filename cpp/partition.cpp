#include "partition.hpp"

#include <algorithm>
#include <numeric>

#include "parallel.hpp"

namespace abcgbm {
namespace {

/// Rows that go left move to the front, the others to `scratch`; returns how many go left.
template <class Code>
std::size_t move_left(std::span<std::uint32_t> rows, std::uint32_t* scratch, const Code* column,
                      std::uint32_t bin, std::uint32_t left_missing_code) {
  std::size_t n_left = 0;
  std::size_t n_right = 0;
  for (const std::uint32_t row : rows) {
    const std::uint32_t code = column[row];
    const bool is_left = (code <= bin) | (code == left_missing_code);
    rows[n_left] = row;
    scratch[n_right] = row;
    n_left += is_left ? 1 : 0;
    n_right += is_left ? 0 : 1;
  }
  return n_left;
}

}  // namespace

void reset(RowSets& sets, std::size_t n_rows) {
  sets.rows.resize(n_rows);
  sets.scratch.resize(n_rows);
  std::iota(sets.rows.begin(), sets.rows.end(), std::uint32_t{0});
  sets.nodes.assign(1, {0, n_rows});
}

void split_rows(RowSets& sets, std::size_t node, const Binned& binned, std::size_t feature,
                std::uint32_t bin, bool missing_left) {
  check_interrupt();
  const RowSets::Range range = sets.nodes[node];
  const std::span<std::uint32_t> rows(sets.rows.data() + range.begin, range.end - range.begin);
  constexpr std::uint32_t kNoCode = 1u << 31;
  const std::uint32_t left_missing = missing_left ? binned.missing_code(feature) : kNoCode;
  const std::size_t n_left = std::visit(
      [&](const auto& codes) {
        return move_left(rows, sets.scratch.data(),
                         codes.by_column.data() + feature * binned.n_rows, bin, left_missing);
      },
      binned.codes);
  std::copy_n(sets.scratch.begin(), rows.size() - n_left,
              rows.begin() + static_cast<std::ptrdiff_t>(n_left));
  sets.nodes.push_back({range.begin, range.begin + n_left});
  sets.nodes.push_back({range.begin + n_left, range.end});
}

}  // namespace abcgbm
