#include "data/places.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLanes = 16;  // searches that go on side by side, as none waits for another
constexpr std::size_t kFewMarks = 32;        // for which a grid is not worth while
constexpr std::size_t kCellsOfAMark = 4;     // at most,
constexpr std::size_t kMostCells = 1 << 14;  // so that their numbers stay in the cache
constexpr std::size_t kMostShare = 16;       // a 16th of the marks in one cell: they crowd

/// The cell of a value, as a float; NaN is in the first.
[[gnu::always_inline]] inline double cell_in(double low, double cells_per_unit, double last,
                                             double value) {
  const double cell = (value - low) * cells_per_unit;
  const double above = cell > 0.0 ? cell : 0.0;
  return above < last ? above : last;
}

struct Search {
  const double* marks;
  std::size_t n_searched;
  const Marks::Grid* grid;
  std::size_t missing;
};

/// Halves the part of the marks that a value may lie in, for some values at once.
template <class Code, bool HasGrid>
struct Places {
  [[gnu::always_inline]] static void of_lanes(const Search& search, const double* values,
                                              std::uint32_t* place) {
    const Marks::Grid& grid = *search.grid;
    for (std::size_t lane = 0; lane < kLanes; ++lane) place[lane] = 0;
    for (std::size_t lane = 0; HasGrid && lane < kLanes; ++lane) {
      const double cell = cell_in(grid.low, grid.cells_per_unit, grid.last, values[lane]);
      place[lane] = grid.first[static_cast<std::uint32_t>(cell)];
    }
    for (auto half = static_cast<std::uint32_t>(search.n_searched / 2); half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        place[lane] += search.marks[place[lane] + half - 1] < values[lane] ? half : 0;
      }
    }
  }

  [[gnu::always_inline]] static void run(Search search, std::span<const double> values, Code* out) {
    std::array<double, kLanes> some{};
    std::array<std::uint32_t, kLanes> place{};
    for (std::size_t i = 0; i < values.size(); i += kLanes) {
      const std::size_t n = std::min(kLanes, values.size() - i);
      const double* from = values.data() + i;
      if (n < kLanes) {
        std::copy_n(from, n, some.begin());
        from = some.data();
      }
      of_lanes(search, from, place.data());
      for (std::size_t lane = 0; lane < n; ++lane) {
        out[i + lane] = static_cast<Code>(std::isnan(from[lane]) ? search.missing : place[lane]);
      }
    }
  }
};

template <class Code>
void find(const Search& search, std::span<const double> values, Code* out) {
  if (search.grid->first.empty()) {
    dispatch<Places<Code, false>>(search, values, out);
  } else {
    dispatch<Places<Code, true>>(search, values, out);
  }
}

}  // namespace

std::size_t Marks::Grid::cell_of(double value) const {
  return static_cast<std::size_t>(cell_in(low, cells_per_unit, last, value));
}

Marks::Marks(std::span<const double> marks)
    : n_(marks.size()), n_searched_(std::bit_ceil(marks.size() + 1)) {
  if (n_ > kFewMarks) set_grid(marks);
  padded_.assign(n_ + n_searched_, std::numeric_limits<double>::infinity());
  std::ranges::copy(marks, padded_.begin());
}

/// Makes a grid, if not too many marks lie in one of its cells.
void Marks::set_grid(std::span<const double> marks) {
  const auto is_finite = [](double mark) { return std::isfinite(mark); };
  const auto inner = std::ranges::find_if(marks, is_finite);
  const auto outer = std::ranges::find_if(marks.rbegin(), marks.rend(), is_finite);
  if (inner == marks.end()) return;
  const std::size_t n_cells = std::min(std::bit_ceil(kCellsOfAMark * n_), kMostCells);
  Grid grid{.low = *inner,
            .cells_per_unit = static_cast<double>(n_cells) / (*outer - *inner),
            .last = static_cast<double>(n_cells - 1),
            .first = std::vector<std::uint16_t>(n_cells + 1, 0)};
  if (!std::isnormal(grid.cells_per_unit)) return;
  for (const double mark : marks) ++grid.first[grid.cell_of(mark) + 1];
  const std::size_t most = *std::ranges::max_element(grid.first);
  if (most * kMostShare > n_) return;
  for (std::size_t cell = 1; cell <= n_cells; ++cell) {
    grid.first[cell] = static_cast<std::uint16_t>(grid.first[cell] + grid.first[cell - 1]);
  }
  n_searched_ = std::bit_ceil(most + 1);
  grid_ = std::move(grid);
}

void Marks::places(std::span<const double> values, std::span<std::uint16_t> out) const {
  find({padded_.data(), n_searched_, &grid_, n_ + 1}, values, out.data());
}

void Marks::places(std::span<const double> values, std::span<std::uint8_t> out) const {
  find({padded_.data(), n_searched_, &grid_, n_ + 1}, values, out.data());
}

}  // namespace abcgbm
