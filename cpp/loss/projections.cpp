#include "loss/projections.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/draw.hpp"
#include "base/elementary.hpp"
#include "base/simd.hpp"
#include "loss/row_chunks.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLanes = 8;  // projections that are summed together
constexpr int kMaxBits = 30;       // of the sums over all rows
constexpr int kFewBits = 24;       // of weights that can be multiplied after rounding
constexpr std::int64_t kLift = std::int64_t{1} << 62;

/// One half in units of the last bit that remains after a right shift.
[[gnu::always_inline]] inline std::int64_t half(int shift) {
  return (std::int64_t{1} << shift) / 2;
}

/// Divides integers of magnitude below 2^62 by a power of two, rounding half up. The argument is
/// made non-negative first, as SIMD has no arithmetic 64-bit right shift below AVX-512.
class RoundingShift {
 public:
  explicit RoundingShift(int shift)
      : shift_(shift),
        lift_(static_cast<std::uint64_t>(kLift) + (std::uint64_t{1} << shift) / 2),
        lowered_(static_cast<std::int64_t>(kLift) >> shift) {}

  [[gnu::always_inline]] inline std::int32_t operator()(std::int64_t x) const {
    const std::uint64_t lifted = static_cast<std::uint64_t>(x) + lift_;
    return static_cast<std::int32_t>(static_cast<std::int64_t>(lifted >> shift_) - lowered_);
  }

 private:
  int shift_;
  std::uint64_t lift_;
  std::int64_t lowered_;
};

/// The weight of a row as a factor before rounding and one after.
struct SplitWeight {
  [[gnu::always_inline]] inline SplitWeight(std::int64_t weight, const SearchGrid& grid)
      : before(grid.rounds_first ? 1 : weight),
        after(static_cast<std::int32_t>(grid.rounds_first ? weight : 1)) {}
  std::int64_t before;
  std::int32_t after;
};

/// Arguments of the kernels: consecutive rows of the residuals and of the sums.
struct RowsToSum {
  std::size_t n;
  std::size_t n_classes;
  const std::int32_t* residual;
  const std::int32_t* y;
  RowWeights weight;
  std::size_t first;  // number of the first row, for its weight
  const Projections* projections;
  SearchGrid grid;
  SumLayout sum_layout;
  double scale;
  double inverse_scale;
  std::int32_t* out;
};

[[gnu::always_inline]] inline std::int32_t rounded_weight(std::int64_t weight, int shift) {
  const std::int64_t up = (std::int64_t{1} << shift) - 1;
  return static_cast<std::int32_t>((weight + up) >> shift);
}

/// Sums by class, without projections.
struct ClassKernel {
  [[gnu::always_inline]] static inline void run(const RowsToSum* given) {
    const RowsToSum rows = *given;
    const RoundingShift round_off(rows.grid.shift);
    const std::size_t n = rows.n_classes;
    for (std::size_t i = 0; i < rows.n; ++i) {
      const std::int32_t* residual = rows.residual + i * n;
      const std::int64_t weight = rows.weight[rows.first + i];
      std::int32_t* out = rows.out + i * rows.sum_layout.stride();
      const SplitWeight by(weight, rows.grid);
      for (std::size_t d = 0; d < n; ++d) out[d] = round_off(residual[d] * by.before) * by.after;
      if (rows.sum_layout.has_hessian) {
        std::int32_t* hessians = out + rows.sum_layout.hessians_at();
        for (std::size_t d = 0; d < n; ++d) {
          const auto p = static_cast<double>(residual[d]);
          const double a = (p < 0.0 ? -p : p) * rows.inverse_scale;
          const std::int64_t hessian = round_to_int((a * (1.0 - a)) * rows.scale);
          hessians[d] = round_off(hessian * by.before) * by.after;
        }
      }
      out[rows.sum_layout.weight_at()] = rounded_weight(weight, rows.grid.weight_shift);
    }
  }
};

/// Sums by projection, eight at a time: the residuals of the classes with sign -1 and, in one lane,
/// those of all classes. Up to rounding, neither is larger than the largest residual.
struct DrawnKernel {
  using Eight [[gnu::vector_size(kLanes * sizeof(std::int32_t))]] = std::int32_t;
  using Sums = std::array<std::int32_t, kLanes>;
  static constexpr std::size_t kFour = 4;
  using Four = Wide<kFour>::Integers;
  using FourUnsigned = UnsignedOf<Wide<kFour>::Doubles>;
  using FourDoubles = Wide<kFour>::Doubles;
  using FourShort = Wide<kFour>::ShortIntegers;

  [[gnu::always_inline]] static inline void run(const RowsToSum* given) {
    const RowsToSum rows = *given;
    for (std::size_t i = 0; i < rows.n; ++i) sum_row(rows, i);
  }

  /// Sums eight lanes over all classes of a row.
  [[gnu::always_inline]] static inline Sums add_up(const std::int32_t* residual,
                                                   std::size_t n_classes, const std::int32_t* mask,
                                                   std::size_t n_lanes) {
    std::array<Eight, 2> sum{};
    std::size_t k = 0;
    for (; k + 2 <= n_classes; k += 2) {
      sum[0] += (Eight{} + residual[k]) & load<Eight>(mask + k * n_lanes);
      sum[1] += (Eight{} + residual[k + 1]) & load<Eight>(mask + (k + 1) * n_lanes);
    }
    if (k < n_classes) sum[0] += (Eight{} + residual[k]) & load<Eight>(mask + k * n_lanes);
    Sums sums;
    store(sum[0] + sum[1], sums.data());
    return sums;
  }

  [[gnu::always_inline]] static inline void sum_row(const RowsToSum& rows, std::size_t i) {
    const Projections& projections = *rows.projections;
    const std::int32_t* residual = rows.residual + i * rows.n_classes;
    const std::int32_t* mask = projections.is_minus.data();
    const std::size_t n_lanes = projections.n_lanes;
    // The total is in the last group of lanes, which therefore comes first.
    const std::size_t last = n_lanes - kLanes;
    Sums sums = add_up(residual, rows.n_classes, mask + last, n_lanes);
    const std::int64_t total = sums[projections.n - last];
    write(rows, i, last, total, sums);
    for (std::size_t lane = 0; lane < last; lane += kLanes) {
      sums = add_up(residual, rows.n_classes, mask + lane, n_lanes);
      write(rows, i, lane, total, sums);
    }
    rows.out[i * rows.sum_layout.stride() + rows.sum_layout.weight_at()] =
        rounded_weight(rows.weight[rows.first + i], rows.grid.weight_shift);
  }

  /// Writes residuals and hessians of a row for the projections from `lane` on.
  [[gnu::always_inline]] static inline void write(const RowsToSum& rows, std::size_t i,
                                                  std::size_t lane, std::int64_t total,
                                                  const Sums& sums) {
    const Projections& projections = *rows.projections;
    const SplitWeight by(rows.weight[rows.first + i], rows.grid);
    const std::int32_t* own_mask = projections.is_minus.data() +
                                   static_cast<std::size_t>(rows.y[i]) * projections.n_lanes + lane;
    std::array<std::int32_t, kLanes> residuals;
    std::array<std::int32_t, kLanes> hessians;
    for (std::size_t d = 0; d < kLanes; d += kFour) {
      const Four residual = total - 2 * widened(sums.data() + d);
      const Four hessian = hessians_of(residual, widened(own_mask + d), rows);
      store(rounded(residual, rows.grid.shift, by), residuals.data() + d);
      store(rounded(hessian, rows.grid.shift, by), hessians.data() + d);
    }
    const std::size_t n = std::min(kLanes, projections.n - lane);
    std::int32_t* out = rows.out + i * rows.sum_layout.stride() + lane;
    std::copy_n(residuals.begin(), n, out);
    if (rows.sum_layout.has_hessian)
      std::copy_n(hessians.begin(), n, out + rows.sum_layout.hessians_at());
  }

  [[gnu::always_inline]] static inline Four widened(const std::int32_t* from) {
    return __builtin_convertvector(load<FourShort>(from), Four);
  }

  /// `residual` is below 2^51; `is_minus` has all bits set where the row's own class has sign -1.
  [[gnu::always_inline]] static inline Four hessians_of(const Four& residual, const Four& is_minus,
                                                        const RowsToSum& rows) {
    const Four own = (residual ^ is_minus) - is_minus;
    FourDoubles a = bits_as<FourDoubles>(own + bits_as<std::int64_t>(kRoundingMagic));
    a = (a - kRoundingMagic) * rows.inverse_scale;
    a = a > 0.0 ? a : FourDoubles{};
    a = a < 2.0 ? a : FourDoubles{} + 2.0;
    return round_to_int((a * (2.0 - a)) * rows.scale);
  }

  /// Rounds four integers to the grid of the split search, times the row's weight.
  [[gnu::always_inline]] static inline FourShort rounded(const Four& x, int shift,
                                                         const SplitWeight& by) {
    const Four weighted = by.before == 1 ? x : x * by.before;
    const FourUnsigned lifted = bits_as<FourUnsigned>(weighted + (kLift + half(shift)));
    const Four quotient =
        bits_as<Four>(lifted >> static_cast<std::uint64_t>(shift)) - (kLift >> shift);
    return __builtin_convertvector(quotient, FourShort) * by.after;
  }
};

}  // namespace

std::size_t n_projections_of(std::size_t n_requested, int n_classes) {
  const auto n = static_cast<std::size_t>(n_classes);
  return n_requested == 0 ? n : std::min(n_requested, n);
}

Projections projections_of(std::size_t n_requested, int n_classes, std::uint64_t seed,
                           std::uint64_t iteration) {
  const auto n = static_cast<std::size_t>(n_classes);
  if (n_projections_of(n_requested, n_classes) == n) return {.n = n};
  Projections projections{.n = n_requested, .n_lanes = (n_requested / kLanes + 1) * kLanes};
  projections.is_minus.assign(n * projections.n_lanes, 0);
  for (std::size_t k = 0; k < n; ++k) {
    check_interrupt();
    std::int32_t* of_class = projections.is_minus.data() + k * projections.n_lanes;
    for (std::size_t d = 0; d < n_requested; ++d) {
      const std::uint64_t drawn = draw(seed, Draw::projections, iteration, d * n + k);
      of_class[d] = (drawn >> 63) != 0 ? -1 : 0;
    }
    of_class[n_requested] = -1;
  }
  return projections;
}

SearchGrid search_grid(const Projections& projections, std::int64_t own_sum, int total_bits) {
  const auto largest = static_cast<std::uint64_t>(own_sum) * (projections.are_drawn() ? 4 : 1);
  const int n_bits = static_cast<int>(std::bit_width(largest));
  return {.shift = std::max(0, n_bits - kMaxBits),
          .weight_shift = std::max(0, total_bits - kMaxBits),
          .rounds_first = total_bits <= kFewBits};
}

void fill_row_sums(const TreeRows& rows, const Projections& projections, const SearchGrid& grid,
                   const SumLayout& sum_layout, int n_threads, std::span<std::int32_t> out) {
  const std::size_t n_rows = rows.labels.n_rows();
  for_row_tasks(n_rows, n_threads, [&](std::size_t first, std::size_t last) {
    const RowsToSum to_sum{.n = last - first,
                           .n_classes = static_cast<std::size_t>(rows.labels.n_classes),
                           .residual = residuals_of_row(rows.scores, rows.labels, first),
                           .y = rows.labels.y.data() + first,
                           .weight = rows.weight,
                           .first = first,
                           .projections = &projections,
                           .grid = grid,
                           .sum_layout = sum_layout,
                           .scale = std::ldexp(1.0, rows.scores.exponent),
                           .inverse_scale = std::ldexp(1.0, -rows.scores.exponent),
                           .out = out.data() + first * sum_layout.stride()};
    if (projections.are_drawn()) {
      dispatch<DrawnKernel>(&to_sum);
    } else {
      dispatch<ClassKernel>(&to_sum);
    }
  });
}

MultiOutputSums total_row_sums(const Labels& labels, std::span<const std::int32_t> row_sums,
                               std::size_t stride, int n_threads) {
  const std::size_t n_rows = row_sums.size() / stride;
  std::vector<MultiOutputSums> parts(n_row_tasks(n_rows), MultiOutputSums(stride, 0));
  for_row_tasks(n_rows, n_threads, [&](std::size_t first, std::size_t last) {
    MultiOutputSums& part = parts[first / kRowsPerTask];
    for (std::size_t i = first; i < last; ++i) add(part, row_sums.data() + i * stride);
  });
  MultiOutputSums total(stride, 0);
  for (const MultiOutputSums& part : parts) add(total, part.data());
  labels.communicator().allreduce_sum(std::span(total));
  return total;
}

}  // namespace abcgbm
