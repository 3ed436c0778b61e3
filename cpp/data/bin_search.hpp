// Search of values among ascending bin edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// At most 65534 ascending edges. An even grid narrows each search to the edges of one cell, so
/// coding with 8192 edges costs no more than a plain search among 256.
class BinEdges {
 public:
  explicit BinEdges(std::span<const double> edges);

  std::size_t size() const { return n_; }

  /// The number of edges strictly below each value; for NaN one more than there are edges.
  void find_bins(std::span<const double> values, std::span<std::uint16_t> out) const;
  void find_bins(std::span<const double> values, std::span<std::uint8_t> out) const;

  /// Cells of equal width between the first edge and the last. Cell numbers grow with the value, so
  /// only the edges of a value's own cell need to be searched.
  struct Grid {
    double low = 0.0;
    double cells_per_unit = 0.0;
    double last = 0.0;                 // the last cell
    std::vector<std::uint16_t> first;  // number of edges in lower cells; empty: no grid

    std::size_t cell_of(double value) const;
  };

 private:
  void set_grid(std::span<const double> edges);

  std::size_t n_;
  std::size_t n_searched_;      // a power of two, above the number of edges in any cell
  std::vector<double> padded_;  // the edges, and infinities
  Grid grid_;
};

}  // namespace abcgbm
