#include "softmax.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "elementary.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

// An exponential is a chain of operations that wait for each other; two chains take turns.
constexpr std::size_t kChains = 2;
constexpr std::size_t kTogether = kChains * kWidest;  // rows a kernel takes at a time, at most

/// N rows, and what is known of them so far.
template <std::size_t N>
struct Softmax {
  using Doubles = typename Wide<N>::Doubles;
  using Integers = typename Wide<N>::Integers;
  using ShortIntegers = typename Wide<N>::ShortIntegers;

  Integers y;
  Doubles largest;  // score
  Integers top{};   // the first class that has it
  Doubles score_of_y{};
  Doubles rest{};    // sum of exponentials but that of `top`
  Doubles others{};  // sum of exponentials but that of y

  [[gnu::always_inline]] inline void see(const Doubles& score, std::int64_t k) {
    const Integers is_larger = score > largest;
    largest = is_larger ? score : largest;
    top = is_larger ? Integers{} + k : top;
    score_of_y = y == k ? score : score_of_y;
  }

  [[gnu::always_inline]] inline void add(const Doubles& exponential, std::int64_t k) {
    rest += top == k ? Doubles{} : exponential;
    others += y == k ? Doubles{} : exponential;
  }

  [[gnu::always_inline]] inline Doubles loss() const {
    return log1p_nonnegative(rest) + (largest - score_of_y);
  }
};

template <std::size_t N>
using Several = std::array<Softmax<N>, kChains>;

/// The sums of exponentials of the rows from i on; each exponential is kept as it comes.
template <std::size_t N, class Keep>
[[gnu::always_inline]] inline void add_up(const ScoreRows& rows, std::size_t i, Several<N>& several,
                                          const Keep& keep) {
  using Doubles = typename Softmax<N>::Doubles;
  using Integers = typename Softmax<N>::Integers;
  using ShortIntegers = typename Softmax<N>::ShortIntegers;
  for (std::size_t c = 0; c < kChains; ++c) {
    several[c].y = __builtin_convertvector(load<ShortIntegers>(rows.y + i + c * N), Integers);
    several[c].largest = several[c].score_of_y = load<Doubles>(rows.raw + i + c * N);
  }
  for (int k = 1; k < rows.n_classes; ++k) {
    const double* raw = rows.raw + static_cast<std::size_t>(k) * rows.stride + i;
    for (std::size_t c = 0; c < kChains; ++c) several[c].see(load<Doubles>(raw + c * N), k);
  }
  for (int k = 0; k < rows.n_classes; ++k) {
    const double* raw = rows.raw + static_cast<std::size_t>(k) * rows.stride + i;
    std::array<Doubles, kChains> e;
    for (std::size_t c = 0; c < kChains; ++c)
      e[c] = load<Doubles>(raw + c * N) - several[c].largest;
    e = exp_nonpositive(e);
    for (std::size_t c = 0; c < kChains; ++c) several[c].add(e[c], k);
    keep(e, k);
  }
}

template <std::size_t N>
struct ResidualKernel {
  using Doubles = typename Wide<N>::Doubles;

  [[gnu::always_inline]] static inline void run(const ScoreRows* given, double scale,
                                                std::int64_t* residual, double* row_loss,
                                                Largest* largest) {
    const ScoreRows rows = *given;
    Doubles largest_residual = Doubles{} + largest->residual;
    Doubles largest_loss = Doubles{} + largest->loss;
    for (std::size_t i = 0; i < rows.n; i += kChains * N) {
      Several<N> several;
      write_residuals(rows, i, scale, residual + i, several);
      for (std::size_t c = 0; c < kChains; ++c) {
        const Doubles loss = several[c].loss();
        store(loss, row_loss + i + c * N);
        largest_loss = loss > largest_loss ? loss : largest_loss;
        // The residual of its own class is the largest that a row has.
        const Doubles own = several[c].others;
        largest_residual = own > largest_residual ? own : largest_residual;
      }
    }
    for (std::size_t lane = 0; lane < N; ++lane) {
      largest->residual = std::max(largest->residual, largest_residual[lane]);
      largest->loss = std::max(largest->loss, largest_loss[lane]);
    }
  }

  /// Exponentials are kept where the residuals will be. `others` become probabilities.
  [[gnu::always_inline]] static inline void write_residuals(const ScoreRows& rows, std::size_t i,
                                                            double scale, std::int64_t* residual,
                                                            Several<N>& several) {
    const auto at = [&](int k, std::size_t c) {
      return residual + static_cast<std::size_t>(k) * rows.stride + c * N;
    };
    add_up<N>(rows, i, several, [&](const auto& e, int k) __attribute__((always_inline)) {
      for (std::size_t c = 0; c < kChains; ++c) store(e[c], at(k, c));
    });
    std::array<Doubles, kChains> inverse;
    for (std::size_t c = 0; c < kChains; ++c) {
      inverse[c] = 1.0 / (1.0 + several[c].rest);
      several[c].others *= inverse[c];
    }
    for (int k = 0; k < rows.n_classes; ++k) {
      for (std::size_t c = 0; c < kChains; ++c) {
        const Doubles p = load<Doubles>(at(k, c)) * inverse[c];
        const Doubles r = several[c].y == k ? several[c].others : -p;
        store(round_to_int(r * scale), at(k, c));
      }
    }
  }
};

template <std::size_t N>
struct LossKernel {
  [[gnu::always_inline]] static inline void run(const ScoreRows* given, double* row_loss,
                                                std::int32_t* leading) {
    const ScoreRows rows = *given;
    for (std::size_t i = 0; i < rows.n; i += kChains * N) {
      Several<N> several;
      add_up<N>(rows, i, several, [](const auto&, int) __attribute__((always_inline)) {});
      for (std::size_t c = 0; c < kChains; ++c) {
        store(several[c].loss(), row_loss + i + c * N);
        store(__builtin_convertvector(several[c].top, typename Wide<N>::ShortIntegers),
              leading + i + c * N);
      }
    }
  }
};

struct ExponentialKernel {
  [[gnu::always_inline]] static inline void run(const double* raw, const double* largest,
                                                std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = exp_nonpositive(raw[i] - largest[i]);
  }
};

/// The last rows, too few for a kernel: copied to where there is room, the last of them repeated.
class FewRows {
 public:
  FewRows(const ScoreRows& rows, std::size_t first)
      : n_classes_(rows.n_classes), raw_(static_cast<std::size_t>(rows.n_classes) * kTogether) {
    for (std::size_t i = 0; i < kTogether; ++i) {
      const std::size_t from = std::min(first + i, rows.n - 1);
      y_[i] = rows.y[from];
      for (std::size_t k = 0; k < raw_.size() / kTogether; ++k) {
        raw_[k * kTogether + i] = rows.raw[k * rows.stride + from];
      }
    }
  }

  ScoreRows rows() const {
    return {.n = kTogether,
            .stride = kTogether,
            .n_classes = n_classes_,
            .raw = raw_.data(),
            .y = y_.data()};
  }

 private:
  int n_classes_;
  std::vector<double> raw_;
  std::array<std::int32_t, kTogether> y_;
};

/// As many of the first rows as a kernel takes.
ScoreRows whole(ScoreRows rows) {
  rows.n -= rows.n % kTogether;
  return rows;
}

}  // namespace

void softmax(const ScoreRows& rows, double scale, std::int64_t* residual, double* row_loss,
             Largest& largest) {
  const ScoreRows first = whole(rows);
  dispatch_wide<ResidualKernel>(&first, scale, residual, row_loss, &largest);
  const std::size_t n = rows.n - first.n;
  if (n == 0) return;
  const FewRows few(rows, first.n);
  const ScoreRows last = few.rows();
  std::vector<std::int64_t> residual_of_few(static_cast<std::size_t>(rows.n_classes) * kTogether);
  std::array<double, kTogether> loss_of_few;
  dispatch_wide<ResidualKernel>(&last, scale, residual_of_few.data(), loss_of_few.data(), &largest);
  std::copy_n(loss_of_few.data(), n, row_loss + first.n);
  for (std::size_t k = 0; k < static_cast<std::size_t>(rows.n_classes); ++k) {
    std::copy_n(residual_of_few.data() + k * kTogether, n, residual + k * rows.stride + first.n);
  }
}

void losses(const ScoreRows& rows, double* row_loss, std::int32_t* leading) {
  const ScoreRows first = whole(rows);
  dispatch_wide<LossKernel>(&first, row_loss, leading);
  const std::size_t n = rows.n - first.n;
  if (n == 0) return;
  const FewRows few(rows, first.n);
  const ScoreRows last = few.rows();
  std::array<double, kTogether> loss_of_few;
  std::array<std::int32_t, kTogether> leading_of_few;
  dispatch_wide<LossKernel>(&last, loss_of_few.data(), leading_of_few.data());
  std::copy_n(loss_of_few.data(), n, row_loss + first.n);
  std::copy_n(leading_of_few.data(), n, leading + first.n);
}

void exponentials(const ScoreRows& rows, std::size_t stride, double* out, double* below) {
  std::vector<double> largest(rows.raw, rows.raw + rows.n);
  for (std::size_t k = 1; k < static_cast<std::size_t>(rows.n_classes); ++k) {
    const double* raw = rows.raw + k * rows.stride;
    for (std::size_t i = 0; i < rows.n; ++i) largest[i] = std::max(largest[i], raw[i]);
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(rows.n_classes); ++k) {
    dispatch<ExponentialKernel>(rows.raw + k * rows.stride,
                                static_cast<const double*>(largest.data()), rows.n,
                                out + k * stride);
  }
  for (std::size_t i = 0; i < rows.n; ++i) {
    below[i] = largest[i] - rows.raw[static_cast<std::size_t>(rows.y[i]) * rows.stride + i];
  }
}

}  // namespace abcgbm
