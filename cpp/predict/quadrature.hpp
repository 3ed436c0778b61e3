// Gauss-Legendre quadrature on [0, 1].
#pragma once

#include <cstddef>
#include <vector>

namespace abcgbm {

/// A point t, as t and as 1 - t, both to full precision, and its weight.
struct QuadraturePoint {
  double t = 0.0;
  double rest = 0.0;
  double weight = 0.0;
};

/// n points, with which the integrals of polynomials up to degree 2 n - 1 are exact.
std::vector<QuadraturePoint> quadrature_points(std::size_t n);

}  // namespace abcgbm
