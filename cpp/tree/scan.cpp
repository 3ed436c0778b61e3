#include "tree/scan.hpp"

#include <algorithm>
#include <cmath>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr double kRounding =
    0x1p-50;  // relative size of a difference of means that is rounding only; without this bound,
              // nodes with equal residuals would be split

/// Converts any 64-bit integer to the nearest double, scalar or vector, with operations that every
/// SIMD level has: the halves become digits of 2^84 and 2^52, whose exact difference is rounded
/// once.
template <class T>
[[gnu::always_inline]] inline T to_double(IntegersOf<T> x) {
  using Unsigned = UnsignedOf<T>;
  const Unsigned u = bits_as<Unsigned>(x) ^ (std::uint64_t{1} << 63);
  const T high = bits_as<T>((u >> 32) | 0x4530000000000000u);
  const T low = bits_as<T>((u & 0xffffffffu) | 0x4330000000000000u);
  return (high - 0x1.00000801p84) + low;  // 2^84 + 2^63 + 2^52
}

/// The same for 0 <= x < 2^52, which holds for every sum of weights.
template <class T>
[[gnu::always_inline]] inline T small_to_double(IntegersOf<T> x) {
  return bits_as<T>(x | 0x4330000000000000) - 0x1p52;
}

/// The parts of a split's score (from_left - from_right)^2 / (a b), which is its gain times the
/// node's weight: of one split, or of one in each lane.
template <int W, class T>
struct ScoreParts {
  using Ints = IntegersOf<T>;

  [[gnu::always_inline]] ScoreParts(const Sums<W>& node, double l2, Ints residual, Ints weight) {
    if constexpr (!kHasHessian<W>) {
      a = small_to_double<T>(weight);
      b = small_to_double<double>(node[kWeight]) - a;  // exact
    } else {
      a = to_double<T>(weight) + l2;
      b = to_double<T>(node[kHessian] - weight) + l2;
    }
    from_left = to_double<T>(residual) * b;
    from_right = to_double<T>(node[kResidual] - residual) * a;
  }

  T a;
  T b;
  T from_left;
  T from_right;
};

/// The left-hand sums of N scans.
template <int W, std::size_t N>
using LaneSums = std::array<typename Wide<N>::Integers, W>;

/// Bin t of N scans, one to a lane.
template <int W, std::size_t N>
[[gnu::always_inline]] inline LaneSums<W, N> lanes(const std::array<const Sums<W>*, kScans>& bins,
                                                   std::size_t first, std::size_t t) {
  using Two = Wide<2>::Integers;
  const auto two = [&](std::size_t lane) { return load<Two>(bins[first + lane][t].data()); };
  LaneSums<W, N> sums;
  if constexpr (N == 2) {
    sums[kResidual] = __builtin_shufflevector(two(0), two(1), 0, 2);
    sums[kWeight] = __builtin_shufflevector(two(0), two(1), 1, 3);
  } else {
    const auto even = __builtin_shufflevector(two(0), two(2), 0, 1, 2, 3);
    const auto odd = __builtin_shufflevector(two(1), two(3), 0, 1, 2, 3);
    sums[kResidual] = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
    sums[kWeight] = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
  }
  if constexpr (kHasHessian<W>) {
    for (std::size_t lane = 0; lane < N; ++lane) {
      sums[kHessian][lane] = bins[first + lane][t][kHessian];
    }
  }
  return sums;
}

/// The largest score along each scan. Fractions are compared by multiplication, without a division,
/// so the result may be too small by the rounding of each comparison. A scan that has ended
/// continues with empty bins, which repeat its last split; a scan without bins has score 0.
template <int W>
struct BestOfScans {
  template <std::size_t N>
  struct Kernel {
    static constexpr std::size_t kLanes = std::min(N, kScans);
    using Doubles = typename Wide<kLanes>::Doubles;
    using Integers = typename Wide<kLanes>::Integers;

    [[gnu::always_inline]] static inline void run(const Scans<W>* scans, const Sums<W>* empty,
                                                  const Sums<W>* of_node, const SplitRules* of_tree,
                                                  double* scores) {
      const Sums<W> node = *of_node;
      const SplitRules rules = *of_tree;
      for (std::size_t first = 0; first < kScans; first += kLanes) {
        store(best_of(*scans, empty, first, node, rules), scores + first);
      }
    }

    [[gnu::always_inline]] static inline Doubles best_of(const Scans<W>& scans,
                                                         const Sums<W>* empty, std::size_t first,
                                                         const Sums<W>& node,
                                                         const SplitRules& rules) {
      std::array<const Sums<W>*, kScans> bins;
      for (std::size_t i = 0; i < kScans; ++i) bins[i] = &scans[i].start;
      LaneSums<W, kLanes> left = lanes<W, kLanes>(bins, first, 0);
      for (std::size_t i = 0; i < kScans; ++i) bins[i] = scans[i].n > 0 ? scans[i].bins : empty;
      Doubles numerator{};
      Doubles denominator = Doubles{} + 1.0;
      for (std::size_t t = 0, end = next_end(scans, first, t); t < end;
           end = next_end(scans, first, t)) {
        for (; t < end; ++t) {
          const LaneSums<W, kLanes> more = lanes<W, kLanes>(bins, first, t);
          for (std::size_t w = 0; w < W; ++w) left[w] += more[w];
          take_better(left, node, rules, numerator, denominator);
        }
        for (std::size_t i = first; i < first + kLanes; ++i) {
          if (scans[i].n <= t) bins[i] = empty;
        }
      }
      return numerator / denominator;
    }

    /// Where the next scan ends; t if all have ended.
    static std::size_t next_end(const Scans<W>& scans, std::size_t first, std::size_t t) {
      std::size_t end = t;
      for (std::size_t i = first; i < first + kLanes; ++i) {
        if (scans[i].n > t && (end == t || scans[i].n < end)) end = scans[i].n;
      }
      return end;
    }

    /// Whether both sides have enough, with two comparisons.
    [[gnu::always_inline]] static inline Integers leaves_enough(Integers left, std::int64_t node,
                                                                std::int64_t min_sum) {
      return (left > min_sum - 1) & (left < node - min_sum + 1);
    }

    [[gnu::always_inline]] static inline void take_better(const LaneSums<W, kLanes>& left,
                                                          const Sums<W>& node,
                                                          const SplitRules& rules,
                                                          Doubles& numerator,
                                                          Doubles& denominator) {
      const ScoreParts<W, Doubles> parts(node, rules.l2, left[kResidual], left[kSplitWeight<W>]);
      const Doubles d = parts.from_left - parts.from_right;
      const Doubles over = d * d;
      const Doubles under = parts.a * parts.b;
      Integers is_better = over * denominator > numerator * under;
      is_better &= leaves_enough(left[kWeight], node[kWeight], rules.min_weight);
      if constexpr (kHasHessian<W>) {
        is_better &= leaves_enough(left[kHessian], node[kHessian], rules.min_hessian);
      }
      numerator = is_better ? over : numerator;
      denominator = is_better ? under : denominator;
    }
  };
};

template <int W>
struct ScoreKernel {
  [[gnu::always_inline]] static inline void run(const SplitCandidates<W>* given, double* score) {
    const SplitCandidates<W> splits = *given;
    for (std::size_t i = 0; i < splits.n; ++i) {
      const Sums<W>& left = splits.left[i];
      const ScoreParts<W, double> parts(splits.node, splits.l2, left[kResidual],
                                        left[kSplitWeight<W>]);
      const double d = parts.from_left - parts.from_right;
      const double noise = kRounding * (std::abs(parts.from_left) + std::abs(parts.from_right));
      score[i] = std::abs(d) <= noise ? 0.0 : (d * d) / (parts.a * parts.b);
    }
  }
};

}  // namespace

template <int W>
void score_splits(const SplitCandidates<W>& splits, std::span<double> scores) {
  dispatch<ScoreKernel<W>>(&splits, scores.data());
}

template <int W>
std::array<double, kScans> best_scores(const Scans<W>& scans, std::span<const Sums<W>> empty,
                                       const Sums<W>& node, const SplitRules& rules) {
  std::array<double, kScans> scores;
  dispatch_wide<BestOfScans<W>::template Kernel>(&scans, empty.data(), &node, &rules,
                                                 scores.data());
  return scores;
}

template void score_splits<2>(const SplitCandidates<2>&, std::span<double>);
template void score_splits<3>(const SplitCandidates<3>&, std::span<double>);
template std::array<double, kScans> best_scores<2>(const Scans<2>&, std::span<const Sums<2>>,
                                                   const Sums<2>&, const SplitRules&);
template std::array<double, kScans> best_scores<3>(const Scans<3>&, std::span<const Sums<3>>,
                                                   const Sums<3>&, const SplitRules&);

}  // namespace abcgbm
