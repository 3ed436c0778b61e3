// Where values lie among ascending marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// Ascending numbers, at most 65534 of them, to look values up in.
class BinEdges {
 public:
  explicit BinEdges(std::span<const double> edges);

  std::size_t size() const { return n_; }

  /// The number of marks strictly below each value; one more than there are marks for NaN.
  void find_bins(std::span<const double> values, std::span<std::uint16_t> out) const;
  void find_bins(std::span<const double> values, std::span<std::uint8_t> out) const;

  /// Cells of one width between the first mark and the last. What lies in a lower cell is lower,
  /// and so a value need be compared with the marks of its cell alone.
  struct Grid {
    double low = 0.0;
    double cells_per_unit = 0.0;
    double last = 0.0;                 // cell
    std::vector<std::uint16_t> first;  // the number of marks in lower cells; empty: no grid

    std::size_t cell_of(double value) const;
  };

 private:
  void set_grid(std::span<const double> edges);

  std::size_t n_;
  std::size_t n_searched_;      // a power of two: so many marks, less one, may a value lie among
  std::vector<double> padded_;  // with infinities
  Grid grid_;
};

}  // namespace abcgbm
