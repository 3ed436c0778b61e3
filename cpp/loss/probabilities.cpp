#include "loss/probabilities.hpp"

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "loss/softmax_pass.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kRowsAtOnce = 256;  // between two checks for an interrupt
constexpr std::size_t kRowsPerTask = kRowsAtOnce * 4;

/// Row-major scores.
struct ClassesByRow {
  std::size_t n_rows;
  std::size_t n_classes;
  double* raw;
  double* tile;  // buffer of [n_classes][kChains * kWidest]
  bool logarithm;
};

/// Converts a few rows of class-major scores to probabilities or their logarithms.
template <std::size_t N, std::size_t Registers>
[[gnu::always_inline]] inline void finish(double* scores, const ScoreRows& rows, bool logarithm) {
  using Doubles = typename Wide<N>::Doubles;
  const auto at = [&](int k, std::size_t c) {
    return scores + static_cast<std::size_t>(k) * rows.stride + c * N;
  };
  const auto group = pass_over_classes<Pass::unlabelled, N, Registers>(
      rows, 0, [&](const auto& e, int k) __attribute__((always_inline)) {
        if (logarithm) return;
        for (std::size_t c = 0; c < Registers; ++c) store(e[c], at(k, c));
      });
  for (std::size_t c = 0; c < Registers; ++c) {
    const Doubles inverse = group[c].inverse_sum();
    const Doubles log_sum = log1p_nonnegative(group[c].rest);
    for (int k = 0; k < rows.n_classes; ++k) {
      const auto value = load<Doubles>(at(k, c));
      store(logarithm ? (value - group[c].largest) - log_sum : value * inverse, at(k, c));
    }
  }
}

/// A register holds one class of several rows, so rows are transposed to class-major and back.
template <std::size_t N>
struct ProbabilityKernel {
  static constexpr std::size_t kRows = kChains * N;

  [[gnu::always_inline]] static inline void run(const ClassesByRow* given) {
    const ClassesByRow all = *given;
    const std::size_t n_classes = all.n_classes;
    const auto rows_of = [&](double* raw, std::size_t stride) {
      return ScoreRows{
          .n = 1, .stride = stride, .n_classes = static_cast<int>(n_classes), .raw = raw};
    };
    for_row_groups<N>(all.n_rows, [&]<std::size_t M, std::size_t Registers>(
                                      std::size_t i) __attribute__((always_inline)) {
      double* raw = all.raw + i * n_classes;
      if constexpr (M * Registers == 1) {
        finish<1, 1>(raw, rows_of(raw, 1), all.logarithm);
      } else {
        for (std::size_t k = 0; k < n_classes; ++k) {
          for (std::size_t r = 0; r < kRows; ++r) all.tile[k * kRows + r] = raw[r * n_classes + k];
        }
        finish<M, Registers>(all.tile, rows_of(all.tile, kRows), all.logarithm);
        for (std::size_t k = 0; k < n_classes; ++k) {
          for (std::size_t r = 0; r < kRows; ++r) raw[r * n_classes + k] = all.tile[k * kRows + r];
        }
      }
    });
  }
};

}  // namespace

void softmax_rows(std::span<double> raw, std::size_t n_classes, bool logarithm, int n_threads) {
  const std::size_t n_rows = raw.size() / n_classes;
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    std::vector<double> tile(n_classes * kChains * kWidest);
    const std::size_t last = std::min((task + 1) * kRowsPerTask, n_rows);
    for (std::size_t first = task * kRowsPerTask; first < last; first += kRowsAtOnce) {
      const ClassesByRow rows{.n_rows = std::min(kRowsAtOnce, last - first),
                              .n_classes = n_classes,
                              .raw = raw.data() + first * n_classes,
                              .tile = tile.data(),
                              .logarithm = logarithm};
      dispatch_wide<ProbabilityKernel>(&rows);
      check_interrupt();
    }
  });
}

}  // namespace abcgbm
