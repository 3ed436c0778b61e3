#include "data/places.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLanes = 16;  // searches that go on side by side, as none waits for another

/// Halves the part of the marks that a value may lie in, for some values at once.
template <class Code>
struct Places {
  [[gnu::always_inline]] static void of_lanes(const double* marks, std::size_t size,
                                              const double* values, std::uint32_t* place) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) place[lane] = 0;
    for (auto half = static_cast<std::uint32_t>(size / 2); half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        place[lane] += marks[place[lane] + half - 1] < values[lane] ? half : 0;
      }
    }
  }

  [[gnu::always_inline]] static void run(const double* marks, std::size_t size, std::size_t missing,
                                         std::span<const double> values, Code* out) {
    std::array<double, kLanes> some{};
    std::array<std::uint32_t, kLanes> place{};
    for (std::size_t i = 0; i < values.size(); i += kLanes) {
      const std::size_t n = std::min(kLanes, values.size() - i);
      const double* from = values.data() + i;
      if (n < kLanes) {
        std::copy_n(from, n, some.begin());
        from = some.data();
      }
      of_lanes(marks, size, from, place.data());
      for (std::size_t lane = 0; lane < n; ++lane) {
        out[i + lane] = static_cast<Code>(std::isnan(from[lane]) ? missing : place[lane]);
      }
    }
  }
};

}  // namespace

Marks::Marks(std::span<const double> marks)
    : n_(marks.size()),
      padded_(std::bit_ceil(marks.size() + 1), std::numeric_limits<double>::infinity()) {
  std::ranges::copy(marks, padded_.begin());
}

void Marks::places(std::span<const double> values, std::span<std::uint16_t> out) const {
  dispatch<Places<std::uint16_t>>(padded_.data(), padded_.size(), n_ + 1, values, out.data());
}

void Marks::places(std::span<const double> values, std::span<std::uint8_t> out) const {
  dispatch<Places<std::uint8_t>>(padded_.data(), padded_.size(), n_ + 1, values, out.data());
}

}  // namespace abcgbm
