#include "loss/softmax.hpp"

#include <algorithm>
#include <array>

#include "base/elementary.hpp"
#include "base/simd.hpp"
#include "loss/softmax_pass.hpp"

namespace abcgbm {
namespace {

/// The largest residuals and losses, by lane.
template <std::size_t N>
struct LargestOfLanes {
  using Doubles = typename Wide<N>::Doubles;

  Doubles residual{};
  Doubles loss{};

  [[gnu::always_inline]] inline void see(const Doubles& new_residual, const Doubles& new_loss) {
    residual = new_residual > residual ? new_residual : residual;
    loss = new_loss > loss ? new_loss : loss;
  }

  [[gnu::always_inline]] inline void add_to(Largest& largest) const {
    for (std::size_t lane = 0; lane < N; ++lane) {
      largest.residual = std::max(largest.residual, residual[lane]);
      largest.loss = std::max(largest.loss, loss[lane]);
    }
  }
};

template <std::size_t N>
struct ResidualKernel {
  [[gnu::always_inline]] static inline void run(const ScoreRows* given, double scale,
                                                std::int64_t* residual, double* row_loss,
                                                Largest* largest) {
    const ScoreRows rows = *given;
    LargestOfLanes<N> of_groups;
    LargestOfLanes<1> of_single_rows;
    std::size_t i = 0;  // not for_row_groups: the two loops collect maxima of different widths
    for (; i + kChains * N <= rows.n; i += kChains * N) {
      write_group<N, kChains>(rows, i, scale, residual, row_loss, of_groups);
    }
    for (; i < rows.n; ++i) write_group<1, 1>(rows, i, scale, residual, row_loss, of_single_rows);
    of_groups.add_to(*largest);
    of_single_rows.add_to(*largest);
  }

  /// Writes the fixed-point residuals of a group of rows, r * scale rounded to integers. Until they
  /// are known, their places hold the exponentials. The residual of a row's own class is its
  /// largest in absolute value, as it is minus the sum of the others; so `largest` needs no other.
  template <std::size_t M, std::size_t Registers>
  [[gnu::always_inline]] static inline void write_group(const ScoreRows& rows, std::size_t i,
                                                        double scale, std::int64_t* residual,
                                                        double* row_loss,
                                                        LargestOfLanes<M>& largest) {
    using Doubles = typename Wide<M>::Doubles;
    const auto at = [&](int k, std::size_t c) {
      return residual + static_cast<std::size_t>(k) * rows.stride + i + c * M;
    };
    const auto group = pass_over_classes<Pass::labelled, M, Registers>(
        rows, i, [&](const auto& e, int k) __attribute__((always_inline)) {
          for (std::size_t c = 0; c < Registers; ++c) store(e[c], at(k, c));
        });
    std::array<Doubles, Registers> inverse;
    std::array<Doubles, Registers> own;
    for (std::size_t c = 0; c < Registers; ++c) {
      inverse[c] = group[c].inverse_sum();
      own[c] = group[c].others * inverse[c];
    }
    for (int k = 0; k < rows.n_classes; ++k) {
      for (std::size_t c = 0; c < Registers; ++c) {
        const Doubles p = load<Doubles>(at(k, c)) * inverse[c];
        const Doubles r = group[c].y == k ? own[c] : -p;
        store(round_to_int(r * scale), at(k, c));
      }
    }
    for (std::size_t c = 0; c < Registers; ++c) {
      const Doubles loss = group[c].loss();
      store(loss, row_loss + i + c * M);
      largest.see(own[c], loss);
    }
  }
};

template <std::size_t N>
struct LossKernel {
  [[gnu::always_inline]] static inline void run(const ScoreRows* given, double* row_loss,
                                                std::int32_t* leading) {
    const ScoreRows rows = *given;
    for_row_groups<N>(rows.n, [&]<std::size_t M, std::size_t Registers>(
                                  std::size_t i) __attribute__((always_inline)) {
      const auto group = pass_over_classes<Pass::labelled, M, Registers>(
          rows, i, [](const auto&, int) __attribute__((always_inline)) {});
      for (std::size_t c = 0; c < Registers; ++c) {
        store(group[c].loss(), row_loss + i + c * M);
        if (leading == nullptr) continue;
        store(__builtin_convertvector(group[c].top, typename Wide<M>::ShortIntegers),
              leading + i + c * M);
      }
    });
  }
};

template <std::size_t N>
struct TermsKernel {
  [[gnu::always_inline]] static inline void run(const ScoreRows* given, const SoftmaxTerms* to) {
    const ScoreRows rows = *given;
    const SoftmaxTerms out = *to;
    for_row_groups<N>(rows.n, [&]<std::size_t M, std::size_t Registers>(
                                  std::size_t i) __attribute__((always_inline)) {
      const auto keep = [&](const auto& e, int k) __attribute__((always_inline)) {
        if (out.exponential == nullptr) return;
        double* of_class = out.exponential + static_cast<std::size_t>(k) * out.stride + i;
        for (std::size_t c = 0; c < Registers; ++c) store(e[c], of_class + c * M);
      };
      const auto group = pass_over_classes<Pass::unlabelled, M, Registers>(rows, i, keep);
      for (std::size_t c = 0; c < Registers; ++c) {
        if (out.largest != nullptr) store(group[c].largest, out.largest + i + c * M);
        if (out.rest != nullptr) store(group[c].rest, out.rest + i + c * M);
      }
    });
  }
};

}  // namespace

void residuals_and_losses(const ScoreRows& rows, double scale, std::int64_t* residual,
                          double* row_loss, Largest& largest) {
  dispatch_wide<ResidualKernel>(&rows, scale, residual, row_loss, &largest);
}

void losses_and_leaders(const ScoreRows& rows, double* row_loss, std::int32_t* leading) {
  dispatch_wide<LossKernel>(&rows, row_loss, leading);
}

void softmax_terms(const ScoreRows& rows, const SoftmaxTerms& out) {
  dispatch_wide<TermsKernel>(&rows, &out);
}

}  // namespace abcgbm
