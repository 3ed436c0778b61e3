#include "predict/quadrature.hpp"

#include <numbers>

namespace abcgbm {
namespace {

constexpr int kNewtonSteps = 8;  // from a guess with error 1e-3; each step doubles the digits

/// The Legendre polynomial of degree n at x, and its derivative; |x| < 1.
struct Legendre {
  double value;
  double slope;
};

Legendre legendre(std::size_t n, double x) {
  double before = 0.0;
  double value = 1.0;
  for (std::size_t k = 1; k <= n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * before) / degree;
    before = value;
    value = next;
  }
  return {.value = value,
          .slope = static_cast<double>(n) * (before - x * value) / ((1.0 - x) * (1.0 + x))};
}

/// Error 1e-8 for 0 <= x <= pi / 2. Not std::cos, so that every machine has the same points.
double rough_cosine(double x) {
  double sum = 0.0;
  double term = 1.0;
  for (int k = 0; k < 8; ++k) {
    sum += term;
    term *= -x * x / ((2.0 * k + 1.0) * (2.0 * k + 2.0));
  }
  return sum;
}

QuadratureRule make_rule(std::size_t n) {
  QuadratureRule points(n);
  for (std::size_t i = 0; i < (n + 1) / 2;
       ++i) {  // the larger half of the roots; the others follow by symmetry
    const double place = (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5);
    double x = 2 * i + 1 == n ? 0.0 : rough_cosine(std::numbers::pi * place);
    for (int step = 0; step < kNewtonSteps; ++step) {
      const Legendre at = legendre(n, x);
      x -= at.value / at.slope;
    }
    const double slope = legendre(n, x).slope;
    const double weight = 1.0 / ((1.0 - x) * (1.0 + x) * slope * slope);
    const double low = 0.5 * (1.0 - x);
    const double high = 0.5 * (1.0 + x);
    points[i] = {low, high, weight, weight / high};
    points[n - 1 - i] = {high, low, weight, weight / low};
  }
  return points;
}

}  // namespace

const QuadratureRule& QuadratureRules::of_size(std::size_t n) {
  if (rules_.size() <= n) rules_.resize(n + 1);
  if (rules_[n].empty()) rules_[n] = make_rule(n);
  return rules_[n];
}

}  // namespace abcgbm
