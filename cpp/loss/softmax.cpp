#include "loss/softmax.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/elementary.hpp"
#include "base/simd.hpp"

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
template <std::size_t N>
using SeveralDoubles = std::array<typename Wide<N>::Doubles, kChains>;

/// The largest scores of the rows from i on.
template <std::size_t N>
[[gnu::always_inline]] inline void find_largest(const ScoreRows& rows, std::size_t i,
                                                Several<N>& several) {
  using Doubles = typename Wide<N>::Doubles;
  using Integers = typename Wide<N>::Integers;
  using ShortIntegers = typename Wide<N>::ShortIntegers;
  for (std::size_t c = 0; c < kChains; ++c) {
    several[c].y = __builtin_convertvector(load<ShortIntegers>(rows.y + i + c * N), Integers);
    several[c].largest = several[c].score_of_y = load<Doubles>(rows.raw + i + c * N);
  }
  for (int k = 1; k < rows.n_classes; ++k) {
    const double* raw = rows.raw + static_cast<std::size_t>(k) * rows.stride + i;
    for (std::size_t c = 0; c < kChains; ++c) several[c].see(load<Doubles>(raw + c * N), k);
  }
}

/// The sums of exponentials of the rows from i on; each exponential is kept as it comes.
template <std::size_t N, class Keep>
[[gnu::always_inline]] inline void add_up(const ScoreRows& rows, std::size_t i, Several<N>& several,
                                          const Keep& keep) {
  using Doubles = typename Wide<N>::Doubles;
  find_largest<N>(rows, i, several);
  for (int k = 0; k < rows.n_classes; ++k) {
    const double* raw = rows.raw + static_cast<std::size_t>(k) * rows.stride + i;
    SeveralDoubles<N> e;
    for (std::size_t c = 0; c < kChains; ++c) {
      e[c] = load<Doubles>(raw + c * N) - several[c].largest;
    }
    e = exp_nonpositive(e);
    for (std::size_t c = 0; c < kChains; ++c) several[c].add(e[c], k);
    keep(e, k);
  }
}

/// What a kernel writes: pointers to the first row, or nullptr.
struct Written {
  double scale = 1.0;
  std::int64_t* residual = nullptr;
  double* row_loss = nullptr;
  std::int32_t* leading = nullptr;
};

template <std::size_t N>
struct ResidualKernel {
  using Doubles = typename Wide<N>::Doubles;

  [[gnu::always_inline]] static inline void run(const ScoreRows* given, const Written* to,
                                                Largest* largest) {
    const ScoreRows rows = *given;
    const Written out = *to;
    Doubles largest_residual = Doubles{} + largest->residual;
    Doubles largest_loss = Doubles{} + largest->loss;
    for (std::size_t i = 0; i < rows.n; i += kChains * N) {
      Several<N> several;
      const SeveralDoubles<N> own = write_residuals(rows, i, out.scale, out.residual + i, several);
      for (std::size_t c = 0; c < kChains; ++c) {
        const Doubles loss = several[c].loss();
        store(loss, out.row_loss + i + c * N);
        largest_loss = loss > largest_loss ? loss : largest_loss;
        largest_residual = own[c] > largest_residual ? own[c] : largest_residual;
      }
    }
    for (std::size_t lane = 0; lane < N; ++lane) {
      largest->residual = std::max(largest->residual, largest_residual[lane]);
      largest->loss = std::max(largest->loss, largest_loss[lane]);
    }
  }

  /// Returns the residuals of the rows' own classes, the largest that they have. Exponentials are
  /// kept where the residuals will be.
  [[gnu::always_inline]] static inline SeveralDoubles<N> write_residuals(const ScoreRows& rows,
                                                                         std::size_t i,
                                                                         double scale,
                                                                         std::int64_t* residual,
                                                                         Several<N>& several) {
    const auto at = [&](int k, std::size_t c) {
      return residual + static_cast<std::size_t>(k) * rows.stride + c * N;
    };
    add_up<N>(rows, i, several, [&](const auto& e, int k) __attribute__((always_inline)) {
      for (std::size_t c = 0; c < kChains; ++c) store(e[c], at(k, c));
    });
    SeveralDoubles<N> inverse;
    SeveralDoubles<N> own;
    for (std::size_t c = 0; c < kChains; ++c) {
      inverse[c] = 1.0 / (1.0 + several[c].rest);
      own[c] = several[c].others * inverse[c];
    }
    for (int k = 0; k < rows.n_classes; ++k) {
      for (std::size_t c = 0; c < kChains; ++c) {
        const Doubles p = load<Doubles>(at(k, c)) * inverse[c];
        const Doubles r = several[c].y == k ? own[c] : -p;
        store(round_to_int(r * scale), at(k, c));
      }
    }
    return own;
  }
};

template <std::size_t N>
struct LossKernel {
  [[gnu::always_inline]] static inline void run(const ScoreRows* given, const Written* to) {
    const ScoreRows rows = *given;
    const Written out = *to;
    for (std::size_t i = 0; i < rows.n; i += kChains * N) {
      Several<N> several;
      add_up<N>(rows, i, several, [](const auto&, int) __attribute__((always_inline)) {});
      for (std::size_t c = 0; c < kChains; ++c) {
        store(several[c].loss(), out.row_loss + i + c * N);
        if (out.leading == nullptr) continue;
        store(__builtin_convertvector(several[c].top, typename Wide<N>::ShortIntegers),
              out.leading + i + c * N);
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
      : n_(rows.n - first),
        n_classes_(static_cast<std::size_t>(rows.n_classes)),
        raw_(n_classes_ * kTogether),
        residual_(n_classes_ * kTogether) {
    for (std::size_t i = 0; i < kTogether; ++i) {
      const std::size_t from = std::min(first + i, rows.n - 1);
      y_[i] = rows.y[from];
      for (std::size_t k = 0; k < n_classes_; ++k) {
        raw_[k * kTogether + i] = rows.raw[k * rows.stride + from];
      }
    }
  }

  ScoreRows rows() const {
    return {.n = kTogether,
            .stride = kTogether,
            .n_classes = static_cast<int>(n_classes_),
            .raw = raw_.data(),
            .y = y_.data()};
  }

  Written written(double scale) {
    return {.scale = scale,
            .residual = residual_.data(),
            .row_loss = row_loss_.data(),
            .leading = leading_.data()};
  }

  /// Puts what has been written where it belongs.
  void copy_to(const Written& out, std::size_t first, std::size_t stride) const {
    std::copy_n(row_loss_.data(), n_, out.row_loss + first);
    if (out.leading != nullptr) std::copy_n(leading_.data(), n_, out.leading + first);
    if (out.residual == nullptr) return;
    for (std::size_t k = 0; k < n_classes_; ++k) {
      std::copy_n(residual_.data() + k * kTogether, n_, out.residual + k * stride + first);
    }
  }

 private:
  std::size_t n_;
  std::size_t n_classes_;
  std::vector<double> raw_;
  std::vector<std::int64_t> residual_;
  std::array<std::int32_t, kTogether> y_;
  std::array<double, kTogether> row_loss_{};
  std::array<std::int32_t, kTogether> leading_{};
};

/// Runs a kernel for all rows: those that it takes, then the last few.
template <template <std::size_t> class Kernel, class... Others>
void run_for_all(const ScoreRows& rows, const Written& out, Others... others) {
  ScoreRows whole = rows;
  whole.n -= rows.n % kTogether;
  dispatch_wide<Kernel>(static_cast<const ScoreRows*>(&whole), &out, others...);
  if (whole.n == rows.n) return;
  FewRows few(rows, whole.n);
  const ScoreRows last = few.rows();
  const Written to = few.written(out.scale);
  dispatch_wide<Kernel>(&last, &to, others...);
  few.copy_to(out, whole.n, rows.stride);
}

}  // namespace

void residuals_and_losses(const ScoreRows& rows, double scale, std::int64_t* residual,
                          double* row_loss, Largest& largest) {
  run_for_all<ResidualKernel>(rows, {.scale = scale, .residual = residual, .row_loss = row_loss},
                              &largest);
}

void losses_and_leaders(const ScoreRows& rows, double* row_loss, std::int32_t* leading) {
  run_for_all<LossKernel>(rows, {.row_loss = row_loss, .leading = leading});
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
