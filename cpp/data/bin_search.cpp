#include "data/bin_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLanes = 16;     // searches that are interleaved, as none depends on another
constexpr std::size_t kFewEdges = 32;  // below this a grid does not pay
constexpr std::size_t kCellsPerEdge = 4;      // at most
constexpr std::size_t kMaxCells = 1 << 14;    // so that the cell starts stay in the cache
constexpr std::size_t kCrowdedFraction = 16;  // no grid if one cell has 1/16 of the edges

/// The cell of a value, as a double; NaN is in the first.
[[gnu::always_inline]] inline double cell_in(double low, double cells_per_unit, double last,
                                             double value) {
  const double cell = (value - low) * cells_per_unit;
  const double above = cell > 0.0 ? cell : 0.0;
  return above < last ? above : last;
}

struct Search {
  const double* edges;
  std::size_t n_searched;
  const BinEdges::Grid* grid;
  std::size_t missing;
};

/// Binary search without branches, for several values at once.
template <class Code, bool HasGrid>
struct FindBinsKernel {
  [[gnu::always_inline]] static void of_lanes(const Search& search, const double* values,
                                              std::uint32_t* bin) {
    const BinEdges::Grid& grid = *search.grid;
    for (std::size_t lane = 0; lane < kLanes; ++lane) bin[lane] = 0;
    for (std::size_t lane = 0; HasGrid && lane < kLanes; ++lane) {
      const double cell = cell_in(grid.low, grid.cells_per_unit, grid.last, values[lane]);
      bin[lane] = grid.first[static_cast<std::uint32_t>(cell)];
    }
    for (auto half = static_cast<std::uint32_t>(search.n_searched / 2); half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        bin[lane] += search.edges[bin[lane] + half - 1] < values[lane] ? half : 0;
      }
    }
  }

  [[gnu::always_inline]] static void run(Search search, std::span<const double> values, Code* out) {
    std::array<double, kLanes> some{};
    std::array<std::uint32_t, kLanes> bin{};
    for (std::size_t i = 0; i < values.size(); i += kLanes) {
      const std::size_t n = std::min(kLanes, values.size() - i);
      const double* from = values.data() + i;
      if (n < kLanes) {
        std::copy_n(from, n, some.begin());
        from = some.data();
      }
      of_lanes(search, from, bin.data());
      for (std::size_t lane = 0; lane < n; ++lane) {
        out[i + lane] = static_cast<Code>(std::isnan(from[lane]) ? search.missing : bin[lane]);
      }
    }
  }
};

template <class Code>
void find(const Search& search, std::span<const double> values, Code* out) {
  if (search.grid->first.empty()) {
    dispatch<FindBinsKernel<Code, false>>(search, values, out);
  } else {
    dispatch<FindBinsKernel<Code, true>>(search, values, out);
  }
}

}  // namespace

std::size_t BinEdges::Grid::cell_of(double value) const {
  return static_cast<std::size_t>(cell_in(low, cells_per_unit, last, value));
}

BinEdges::BinEdges(std::span<const double> edges)
    : n_(edges.size()), n_searched_(std::bit_ceil(edges.size() + 1)) {
  if (n_ > kFewEdges) set_grid(edges);
  padded_.assign(n_ + n_searched_, std::numeric_limits<double>::infinity());
  std::ranges::copy(edges, padded_.begin());
}

/// Builds the grid, unless too many edges are in one cell.
void BinEdges::set_grid(std::span<const double> edges) {
  const auto is_finite = [](double edge) { return std::isfinite(edge); };
  const auto inner = std::ranges::find_if(edges, is_finite);
  const auto outer = std::ranges::find_if(edges.rbegin(), edges.rend(), is_finite);
  if (inner == edges.end()) return;
  const std::size_t n_cells = std::min(std::bit_ceil(kCellsPerEdge * n_), kMaxCells);
  Grid grid{.low = *inner,
            .cells_per_unit = static_cast<double>(n_cells) / (*outer - *inner),
            .last = static_cast<double>(n_cells - 1),
            .first = std::vector<std::uint16_t>(n_cells + 1, 0)};
  if (!std::isnormal(grid.cells_per_unit)) return;
  for (const double edge : edges) ++grid.first[grid.cell_of(edge) + 1];
  const std::size_t n_crowded = *std::ranges::max_element(grid.first);
  if (n_crowded * kCrowdedFraction > n_) return;
  for (std::size_t cell = 1; cell <= n_cells; ++cell) {
    grid.first[cell] = static_cast<std::uint16_t>(grid.first[cell] + grid.first[cell - 1]);
  }
  n_searched_ = std::bit_ceil(n_crowded + 1);
  grid_ = std::move(grid);
}

void BinEdges::find_bins(std::span<const double> values, std::span<std::uint16_t> out) const {
  find({padded_.data(), n_searched_, &grid_, n_ + 1}, values, out.data());
}

void BinEdges::find_bins(std::span<const double> values, std::span<std::uint8_t> out) const {
  find({padded_.data(), n_searched_, &grid_, n_ + 1}, values, out.data());
}

}  // namespace abcgbm
