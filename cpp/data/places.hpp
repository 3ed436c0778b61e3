// Where values lie among ascending marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

/// Ascending numbers, at most 65534 of them, to look values up in.
class Marks {
 public:
  explicit Marks(std::span<const double> marks);

  std::size_t size() const { return n_; }

  /// The number of marks strictly below each value; one more than there are marks for NaN.
  void places(std::span<const double> values, std::span<std::uint16_t> out) const;
  void places(std::span<const double> values, std::span<std::uint8_t> out) const;

 private:
  std::size_t n_;
  std::vector<double> padded_;  // with infinities, to a power of two
};

}  // namespace abcgbm
