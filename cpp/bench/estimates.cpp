#include "bench/estimates.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "base/fill.hpp"
#include "bindings/arrays.hpp"
#include "boost/base_losses.hpp"

namespace abcgbm {
namespace {

constexpr int kMaxHalvings = 10;

/// The loss, the bound of its error, and whether it falls when the step is halved again.
using Estimates = std::vector<std::tuple<double, double, std::optional<bool>>>;

Labels make_labels(const Vector<std::int32_t>& y, const Vector<std::int64_t>& weight, double unit,
                   int n_classes) {
  Labels labels{.y = copied(span_of(y)),
                .weight = copied(span_of(weight)),
                .unit = unit,
                .n_classes = n_classes,
                .total_bits = 0,
                .shard = {}};
  const auto total = std::accumulate(labels.weight.begin(), labels.weight.end(), std::int64_t{0});
  labels.total_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total)));
  return labels;
}

/// `move` is added to the scores of each class and subtracted from that of the base class; each row
/// is a leaf of its own.
Estimates base_losses_py(const Matrix<double>& raw, const Matrix<double>& move, int base,
                         const Vector<std::int32_t>& y, const Vector<std::int64_t>& weight,
                         double unit) {
  const std::size_t n_rows = raw.shape(1);
  require(n_rows <= std::numeric_limits<std::uint16_t>::max(), "raw: fewer rows");
  const Labels labels = make_labels(y, weight, unit, static_cast<int>(raw.shape(0)));
  std::vector<std::uint16_t> leaf(n_rows);
  std::iota(leaf.begin(), leaf.end(), std::uint16_t{0});
  std::vector<TreeMove> moves;
  for (int k = 0; k < labels.n_classes; ++k) {
    if (k == base) continue;
    const std::span value(move.data() + static_cast<std::size_t>(k) * n_rows, n_rows);
    moves.push_back({.tree_class = k,
                     .base = BaseClass(base),
                     .node_of_row = leaf,
                     .value = value,
                     .base_value = value});
  }
  BaseLosses losses(std::span(raw.data(), raw.size()), labels, labels.weights(), {moves, moves}, 1,
                    {});
  Estimates out;
  for (int n = 0; n <= kMaxHalvings; ++n) {
    const auto [loss, error] = losses.loss_at(n);
    std::optional<bool> falls;
    if (n < kMaxHalvings) falls = losses.falls_if_halved_again(n);
    out.emplace_back(loss, error, falls);
  }
  return out;
}

}  // namespace

void bind_estimates(nb::module_& m) {
  using namespace nb::literals;
  m.def("base_losses", &base_losses_py, "raw"_a.noconvert(), "move"_a.noconvert(), "base"_a,
        "y"_a.noconvert(), "weight"_a.noconvert(), "unit"_a,
        "After 0 to 10 halvings of the base class's move: the estimated loss, the bound of its "
        "error, and whether another halving lowers it (None: unknown).");
}

}  // namespace abcgbm
