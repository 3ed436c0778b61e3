// The passes over the classes that every softmax consists of: find the largest score, then sum the
// exponentials relative to it. Kernels choose what they store.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/elementary.hpp"
#include "base/simd.hpp"
#include "loss/softmax.hpp"

namespace abcgbm {

// The operations of an exponential depend on each other; two interleaved chains hide the latency.
inline constexpr std::size_t kChains = 2;

/// Whether a pass also computes what depends on the rows' own classes. Only a pass without them may
/// leave out a class.
enum class Pass { labelled, unlabelled };

/// The state of N rows, one to a lane.
template <std::size_t N, Pass Kind>
struct Softmax {
  using Doubles = typename Wide<N>::Doubles;
  using Integers = typename Wide<N>::Integers;

  Doubles largest;  // score
  Integers top;     // the first class with it
  Doubles rest{};   // sum of the exponentials, without that of `top`
  // Of the rows' own classes:
  Integers y{};
  Doubles score_of_y{};
  Doubles others{};  // sum of the exponentials, without that of y

  [[gnu::always_inline]] inline void start(const ScoreRows& rows, int k, std::size_t i) {
    largest = score_of_y = load<Doubles>(rows.of_class(k) + i);
    top = Integers{} + k;
    if constexpr (Kind == Pass::labelled) {
      y = __builtin_convertvector(load<typename Wide<N>::ShortIntegers>(rows.y + i), Integers);
    }
  }

  [[gnu::always_inline]] inline void see(const Doubles& score, std::int64_t k) {
    const Integers is_larger = score > largest;
    largest = is_larger ? score : largest;
    top = is_larger ? Integers{} + k : top;
    if constexpr (Kind == Pass::labelled) score_of_y = y == k ? score : score_of_y;
  }

  [[gnu::always_inline]] inline void add(const Doubles& exponential, std::int64_t k) {
    rest += top == k ? Doubles{} : exponential;
    if constexpr (Kind == Pass::labelled) others += y == k ? Doubles{} : exponential;
  }

  [[gnu::always_inline]] inline Doubles inverse_sum() const { return 1.0 / (1.0 + rest); }

  [[gnu::always_inline]] inline Doubles loss() const {
    return log1p_nonnegative(rest) + (largest - score_of_y);
  }
};

/// The rows that a kernel processes at a time, N to a register.
template <Pass Kind, std::size_t N, std::size_t Registers>
using RowGroup = std::array<Softmax<N, Kind>, Registers>;

template <Pass Kind>
[[gnu::always_inline]] inline bool counts(const ScoreRows& rows, int k) {
  return Kind == Pass::labelled || !rows.left_out.is(k);
}

/// Finds the largest scores of the rows from i on.
template <Pass Kind, std::size_t N, std::size_t Registers>
[[gnu::always_inline]] inline RowGroup<Kind, N, Registers> find_largest(const ScoreRows& rows,
                                                                        std::size_t i) {
  using Doubles = typename Wide<N>::Doubles;
  RowGroup<Kind, N, Registers> group;
  const int first = counts<Kind>(rows, 0) ? 0 : 1;
  for (std::size_t c = 0; c < Registers; ++c) group[c].start(rows, first, i + c * N);
  for (int k = first + 1; k < rows.n_classes; ++k) {
    if (!counts<Kind>(rows, k)) continue;
    const double* raw = rows.of_class(k) + i;
    for (std::size_t c = 0; c < Registers; ++c) group[c].see(load<Doubles>(raw + c * N), k);
  }
  return group;
}

/// Processes all classes of the rows from i on, and calls keep(e, k) with the exponentials of each.
template <Pass Kind, std::size_t N, std::size_t Registers, class Keep>
[[gnu::always_inline]] inline RowGroup<Kind, N, Registers> pass_over_classes(const ScoreRows& rows,
                                                                             std::size_t i,
                                                                             const Keep& keep) {
  using Doubles = typename Wide<N>::Doubles;
  RowGroup<Kind, N, Registers> group = find_largest<Kind, N, Registers>(rows, i);
  for (int k = 0; k < rows.n_classes; ++k) {
    if (!counts<Kind>(rows, k)) continue;
    const double* raw = rows.of_class(k) + i;
    std::array<Doubles, Registers> e;
    for (std::size_t c = 0; c < Registers; ++c)
      e[c] = load<Doubles>(raw + c * N) - group[c].largest;
    e = exp_nonpositive(e);
    for (std::size_t c = 0; c < Registers; ++c) group[c].add(e[c], k);
    keep(e, k);
  }
  return group;
}

/// Calls each<N, registers>(i) for groups of rows that fill the registers, then for single rows.
template <std::size_t N, class Each>
[[gnu::always_inline]] inline void for_row_groups(std::size_t n_rows, const Each& each) {
  std::size_t i = 0;
  for (; i + kChains * N <= n_rows; i += kChains * N) each.template operator()<N, kChains>(i);
  for (; i < n_rows; ++i) each.template operator()<1, 1>(i);
}

}  // namespace abcgbm
