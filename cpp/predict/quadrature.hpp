// Gauss-Legendre quadrature on [0, 1].
#pragma once

#include <cstddef>
#include <vector>

namespace abcgbm {

/// A point as t and as 1 - t, both to full precision; its weight, and the weight over 1 - t.
struct QuadraturePoint {
  double t = 0.0;
  double rest = 0.0;
  double weight = 0.0;
  double weight_per_rest = 0.0;
};

/// n points integrate polynomials up to degree 2 n - 1 exactly.
using QuadratureRule = std::vector<QuadraturePoint>;

/// Rules by number of points, computed on demand.
class QuadratureRules {
 public:
  const QuadratureRule& of_size(std::size_t n);

 private:
  std::vector<QuadratureRule> rules_;
};

}  // namespace abcgbm
