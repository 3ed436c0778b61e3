#include "scores.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "elementary.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 256;  // rows whose scores are worked on together, in L1
constexpr std::size_t kRowsPerTask = kBlock * 4;

/// Rows of the class-major arrays, a multiple of kWidest; pointers are to the first row.
struct SoftmaxRows {
  std::size_t n;
  std::size_t stride;
  int n_classes;
  const double* raw;
  const std::int32_t* y;
  std::int64_t* residual;  // written as the bits of doubles; rounded to the grid afterwards
  double* row_loss;
};

/// Residuals and losses, N rows at a time: what is kept of a row stays in registers.
template <std::size_t N>
struct SoftmaxKernel {
  using Doubles = typename Wide<N>::Doubles;
  using Integers = typename Wide<N>::Integers;

  [[gnu::always_inline]] static inline void run(const SoftmaxRows* given, double* largest_residual,
                                                double* largest_loss) {
    const SoftmaxRows rows = *given;
    Doubles residual_bound = Doubles{} + *largest_residual;
    Doubles loss_bound = Doubles{} + *largest_loss;
    for (std::size_t i = 0; i < rows.n; i += N) {
      const Doubles largest_here = add_rows(rows, i, loss_bound);
      residual_bound = largest_here > residual_bound ? largest_here : residual_bound;
    }
    for (std::size_t lane = 0; lane < N; ++lane) {
      *largest_residual = std::max(*largest_residual, residual_bound[lane]);
      *largest_loss = std::max(*largest_loss, loss_bound[lane]);
    }
  }

  /// Returns the residuals of the rows' own classes, the largest that they have.
  [[gnu::always_inline]] static inline Doubles add_rows(const SoftmaxRows& rows, std::size_t i,
                                                        Doubles& loss_bound) {
    const auto at = [&](int k) { return static_cast<std::size_t>(k) * rows.stride + i; };
    Doubles largest = load<Doubles>(rows.raw + i);
    Integers top{};
    for (int k = 1; k < rows.n_classes; ++k) {
      const Doubles score = load<Doubles>(rows.raw + at(k));
      const Integers is_larger = score > largest;
      largest = is_larger ? score : largest;
      top = is_larger ? Integers{} + k : top;
    }
    const Integers y =
        __builtin_convertvector(load<typename Wide<N>::ShortIntegers>(rows.y + i), Integers);
    Doubles rest{};    // sum of exponentials but the first largest
    Doubles others{};  // sum of exponentials but that of y
    Doubles score_of_y{};
    for (int k = 0; k < rows.n_classes; ++k) {
      const Doubles score = load<Doubles>(rows.raw + at(k));
      const Doubles e = exp_nonpositive(score - largest);
      store(e, rows.residual + at(k));  // kept where the residuals will be
      rest += top == k ? Doubles{} : e;
      others += y == k ? Doubles{} : e;
      score_of_y = y == k ? score : score_of_y;
    }
    const Doubles inverse = 1.0 / (1.0 + rest);
    others *= inverse;
    const Doubles loss = log1p_nonnegative(rest) + (largest - score_of_y);
    store(loss, rows.row_loss + i);
    loss_bound = loss > loss_bound ? loss : loss_bound;
    for (int k = 0; k < rows.n_classes; ++k) {
      const Doubles p = load<Doubles>(rows.residual + at(k)) * inverse;
      store(y == k ? others : -p, rows.residual + at(k));
    }
    return others;
  }
};

struct RoundKernel {
  [[gnu::always_inline]] static inline void run(std::int64_t* values, std::size_t n, double scale) {
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = round_to_int(std::bit_cast<double>(values[i]) * scale);
    }
  }
};

/// The residuals of one class, or of a class and its base, for consecutive rows.
struct HessianBlock {
  std::size_t n;
  const std::int64_t* residual;
  const std::int64_t* base_residual;
  const std::int32_t* y;
  int k;
  int base;
  double scale;
  double inverse_scale;
  std::int64_t* out;
};

/// |r - p| as a double; sizes stay below 2^51, where the magic number converts exactly.
[[gnu::always_inline]] inline double size_of(std::int64_t residual, double inverse_scale) {
  const double value =
      std::bit_cast<double>(residual + std::bit_cast<std::int64_t>(kRoundingMagic)) -
      kRoundingMagic;
  return (value < 0.0 ? -value : value) * inverse_scale;
}

struct PlainHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianBlock* given) {
    const HessianBlock block = *given;
    for (std::size_t i = 0; i < block.n; ++i) {
      const double a = size_of(block.residual[i], block.inverse_scale);
      block.out[i] = round_to_int((a * (1.0 - a)) * block.scale);
    }
  }
};

struct BaseHessianKernel {
  [[gnu::always_inline]] static inline void run(const HessianBlock* given) {
    const HessianBlock block = *given;
    for (std::size_t i = 0; i < block.n; ++i) {
      const double a = size_of(block.residual[i], block.inverse_scale);
      const double a_base = size_of(block.base_residual[i], block.inverse_scale);
      const double p = block.y[i] == block.k ? 1.0 - a : a;
      const double p_base = block.y[i] == block.base ? 1.0 - a_base : a_base;
      const double h = (a_base * (1.0 - a_base) + a * (1.0 - a)) + 2.0 * (p_base * p);
      block.out[i] = round_to_int(h * block.scale);
    }
  }
};

struct ExponentialKernel {
  [[gnu::always_inline]] static inline void run(const double* raw, const double* largest,
                                                std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = exp_nonpositive(raw[i] - largest[i]);
  }
};

/// Takes class k where its score is larger than those of the classes before.
struct LeadKernel {
  [[gnu::always_inline]] static inline void run(const double* raw, std::size_t n, std::int64_t k,
                                                double* largest, std::int64_t* leading) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool is_larger = raw[i] > largest[i];
      largest[i] = is_larger ? raw[i] : largest[i];
      leading[i] = is_larger ? k : leading[i];
    }
  }
};

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

/// The power of two by which losses up to `largest` are scaled to integers.
int loss_exponent_of(const Labels& labels, double largest) {
  return largest > 0.0 ? std::min(50, 62 - labels.total_bits) - exponent_of(largest) : 0;
}

/// Moves the raw scores of the rows [first, first + n), which are class-major with `stride`.
void move_block(double* raw, std::size_t stride, std::span<const TreeMove> moves, std::size_t first,
                std::size_t n) {
  for (const TreeMove& move : moves) {
    double* of_class = raw + static_cast<std::size_t>(move.tree_class) * stride;
    const std::uint16_t* node = move.node_of_row.data() + first;
    const double* value = move.value.data();
    if (move.base < 0) {
      for (std::size_t i = 0; i < n; ++i) of_class[i] += value[node[i]];
      continue;
    }
    double* of_base = raw + static_cast<std::size_t>(move.base) * stride;
    const double* base_value = move.base_value.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint16_t leaf = node[i];
      of_class[i] += value[leaf];
      of_base[i] -= base_value[leaf];
    }
  }
}

struct Largest {
  double residual = 0.0;
  double loss = 0.0;
};

/// The rows of a block that are too few to be worked on together are first copied to where there is
/// room, the last of them more than once.
void softmax_few(const SoftmaxRows& rows, Largest& largest) {
  const auto n_classes = static_cast<std::size_t>(rows.n_classes);
  std::vector<double> raw(n_classes * kWidest);
  std::vector<std::int64_t> residual(n_classes * kWidest);
  std::array<std::int32_t, kWidest> y;
  std::array<double, kWidest> row_loss;
  for (std::size_t i = 0; i < kWidest; ++i) {
    const std::size_t from = std::min(i, rows.n - 1);
    y[i] = rows.y[from];
    for (std::size_t k = 0; k < n_classes; ++k) {
      raw[k * kWidest + i] = rows.raw[k * rows.stride + from];
    }
  }
  const SoftmaxRows copied{.n = kWidest,
                           .stride = kWidest,
                           .n_classes = rows.n_classes,
                           .raw = raw.data(),
                           .y = y.data(),
                           .residual = residual.data(),
                           .row_loss = row_loss.data()};
  dispatch_wide<SoftmaxKernel>(&copied, &largest.residual, &largest.loss);
  for (std::size_t i = 0; i < rows.n; ++i) {
    rows.row_loss[i] = row_loss[i];
    for (std::size_t k = 0; k < n_classes; ++k) {
      rows.residual[k * rows.stride + i] = residual[k * kWidest + i];
    }
  }
}

void softmax(SoftmaxRows rows, Largest& largest) {
  const std::size_t n = rows.n;
  rows.n = n / kWidest * kWidest;
  dispatch_wide<SoftmaxKernel>(&rows, &largest.residual, &largest.loss);
  if (rows.n == n) return;
  rows.raw += rows.n;
  rows.y += rows.n;
  rows.residual += rows.n;
  rows.row_loss += rows.n;
  rows.n = n - rows.n;
  softmax_few(rows, largest);
}

/// Moves the rows of one task and computes their softmax; residuals are left as doubles.
Largest softmax_task(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                     std::size_t first, std::size_t last) {
  Largest largest;
  const std::size_t n_rows = labels.n_rows();
  for (std::size_t start = first; start < last; start += kBlock) {
    const std::size_t n = std::min(kBlock, last - start);
    move_block(scores.raw.data() + start, n_rows, moves, start, n);
    softmax({.n = n,
             .stride = n_rows,
             .n_classes = labels.n_classes,
             .raw = scores.raw.data() + start,
             .y = labels.y.data() + start,
             .residual = scores.residual.data() + start,
             .row_loss = scores.row_loss.data() + start},
            largest);
  }
  return largest;
}

/// The losses of the rows of one task after the moves, which are not made.
void loss_task(std::span<const double> from, const Labels& labels, std::span<const TreeMove> moves,
               std::size_t first, std::size_t last, std::span<double> row_loss) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  std::vector<double> raw(n_classes * kBlock);
  std::vector<std::int64_t> residual(n_classes * kBlock);
  Largest largest;
  for (std::size_t start = first; start < last; start += kBlock) {
    const std::size_t n = std::min(kBlock, last - start);
    for (std::size_t k = 0; k < n_classes; ++k) {
      std::copy_n(from.data() + k * labels.n_rows() + start, n, raw.data() + k * kBlock);
    }
    move_block(raw.data(), kBlock, moves, start, n);
    softmax({.n = n,
             .stride = kBlock,
             .n_classes = labels.n_classes,
             .raw = raw.data(),
             .y = labels.y.data() + start,
             .residual = residual.data(),
             .row_loss = row_loss.data() + start},
            largest);
  }
}

/// Calls each(first, last) for some rows at a time.
template <class Each>
void for_rows(std::size_t n_rows, int n_threads, const Each& each) {
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    each(task * kRowsPerTask, std::min((task + 1) * kRowsPerTask, n_rows));
  });
}

/// Rounds the residuals of rows [first, last) to their grid.
void round_task(Scores& scores, const Labels& labels, std::size_t first, std::size_t last) {
  const double scale = std::ldexp(1.0, scores.exponent);
  for (int k = 0; k < labels.n_classes; ++k) {
    std::int64_t* values =
        scores.residual.data() + static_cast<std::size_t>(k) * labels.n_rows() + first;
    dispatch<RoundKernel>(values, last - first, scale);
  }
}

void sum_losses(const Scores& scores, const Labels& labels, double scale, std::size_t first,
                std::size_t last, std::int64_t* sums) {
  const RowWeights weight = labels.weights();
  for (std::size_t i = first; i < last; ++i) {
    sums[labels.y[i]] += weight[i] * round_to_int(scores.row_loss[i] * scale);
  }
}

void set_losses(Scores& scores, const Labels& labels, int exponent,
                std::span<const std::int64_t> partial_sums) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const double unit = std::ldexp(labels.unit, -exponent);
  std::vector<std::int64_t> sums(n_classes, 0);
  for (std::size_t i = 0; i < partial_sums.size(); ++i) sums[i % n_classes] += partial_sums[i];
  std::int64_t total = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    scores.class_losses[k] = static_cast<double>(sums[k]) * unit;
    total += sums[k];
  }
  scores.loss = static_cast<double>(total) * unit;
}

}  // namespace

Scores make_scores(const Labels& labels, std::vector<double> raw, int n_threads) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  Scores scores;
  scores.raw = std::move(raw);
  scores.residual.resize(n_classes * labels.n_rows());
  scores.row_loss.resize(labels.n_rows());
  scores.class_losses.resize(n_classes);
  move_scores(scores, labels, {}, n_threads);
  return scores;
}

void move_scores(Scores& scores, const Labels& labels, std::span<const TreeMove> moves,
                 int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<Largest> largest(n_tasks);
  for_rows(n_rows, n_threads, [&](std::size_t first, std::size_t last) {
    largest[first / kRowsPerTask] = softmax_task(scores, labels, moves, first, last);
  });
  Largest all;
  for (const Largest& part : largest) {
    all.residual = std::max(all.residual, part.residual);
    all.loss = std::max(all.loss, part.loss);
  }
  const int residual_bits = std::min(48, 60 - labels.total_bits);
  scores.exponent = all.residual > 0.0 ? residual_bits - exponent_of(all.residual) : 0;
  const int loss_exponent = loss_exponent_of(labels, all.loss);

  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const double loss_scale = std::ldexp(1.0, loss_exponent);
  std::vector<std::int64_t> sums(n_tasks * n_classes, 0);
  for_rows(n_rows, n_threads, [&](std::size_t first, std::size_t last) {
    round_task(scores, labels, first, last);
    sum_losses(scores, labels, loss_scale, first, last,
               sums.data() + first / kRowsPerTask * n_classes);
  });
  set_losses(scores, labels, loss_exponent, sums);
}

double move_raw(std::vector<double>& raw, const Labels& labels, std::span<const TreeMove> moves,
                int n_threads) {
  std::vector<double> row_loss(labels.n_rows());
  for_rows(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    move_block(raw.data() + first, labels.n_rows(), moves, first, last - first);
    loss_task(raw, labels, {}, first, last, row_loss);
  });
  return total_loss(labels, labels.weights(), row_loss);
}

std::vector<std::int32_t> leading_classes(std::span<const double> raw, const Labels& labels,
                                          int n_threads) {
  std::vector<std::int32_t> classes(labels.n_rows());
  for_rows(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    const double* scores = raw.data() + first;
    std::vector<double> largest(scores, scores + (last - first));
    std::vector<std::int64_t> leading(last - first, 0);
    for (std::int64_t k = 1; k < labels.n_classes; ++k) {
      dispatch<LeadKernel>(scores + static_cast<std::size_t>(k) * labels.n_rows(), last - first, k,
                           largest.data(), leading.data());
    }
    std::ranges::copy(leading, classes.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return classes;
}

double loss_of(const Scores& scores, const Labels& labels, RowWeights weight) {
  if (weight == labels.weights()) return scores.loss;
  return total_loss(labels, weight, scores.row_loss);
}

double loss_after(const Scores& scores, const Labels& labels, RowWeights weight,
                  std::span<const TreeMove> moves, int n_threads) {
  std::vector<double> row_loss(labels.n_rows());
  for_rows(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    loss_task(scores.raw, labels, moves, first, last, row_loss);
  });
  return total_loss(labels, weight, row_loss);
}

void hessian(const Scores& scores, const Labels& labels, int k, int base, std::size_t first,
             std::span<std::int64_t> out) {
  const std::size_t n = out.size();
  const auto of = [&](int of_class) {
    return std::span(scores.residual)
        .subspan(static_cast<std::size_t>(of_class) * labels.n_rows() + first, n);
  };
  hessian(scores,
          {.of_class = of(k),
           .of_base = of(std::max(base, 0)),
           .y = std::span(labels.y).subspan(first, n)},
          k, base, out);
}

void hessian(const Scores& scores, const Residuals& rows, int k, int base,
             std::span<std::int64_t> out) {
  const HessianBlock block{.n = out.size(),
                           .residual = rows.of_class.data(),
                           .base_residual = rows.of_base.data(),
                           .y = rows.y.data(),
                           .k = k,
                           .base = base,
                           .scale = std::ldexp(1.0, scores.exponent),
                           .inverse_scale = std::ldexp(1.0, -scores.exponent),
                           .out = out.data()};
  if (base < 0) {
    dispatch<PlainHessianKernel>(&block);
  } else {
    dispatch<BaseHessianKernel>(&block);
  }
}

void exponentials(const Scores& scores, const Labels& labels, std::size_t first, std::size_t n,
                  std::size_t stride, std::span<double> out, std::span<double> below) {
  const std::size_t n_rows = labels.n_rows();
  const double* raw = scores.raw.data() + first;
  std::vector<double> largest(raw, raw + n);
  for (std::size_t k = 1; k < static_cast<std::size_t>(labels.n_classes); ++k) {
    for (std::size_t i = 0; i < n; ++i) largest[i] = std::max(largest[i], raw[k * n_rows + i]);
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(labels.n_classes); ++k) {
    dispatch<ExponentialKernel>(raw + k * n_rows, static_cast<const double*>(largest.data()), n,
                                out.data() + k * stride);
  }
  for (std::size_t i = 0; i < n; ++i) {
    below[i] = largest[i] - raw[static_cast<std::size_t>(labels.y[first + i]) * n_rows + i];
  }
}

double loss_unit(const Labels& labels, double largest) {
  return std::ldexp(1.0, -loss_exponent_of(labels, largest));
}

double total_loss(const Labels& labels, RowWeights weight, std::span<const double> row_loss) {
  double largest = 0.0;
  for (const double loss : row_loss) largest = std::max(largest, loss);
  const int exponent = loss_exponent_of(labels, largest);
  const double scale = std::ldexp(1.0, exponent);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < row_loss.size(); ++i) {
    sum += weight[i] * round_to_int(row_loss[i] * scale);
  }
  return static_cast<double>(sum) * std::ldexp(labels.unit, -exponent);
}

}  // namespace abcgbm
