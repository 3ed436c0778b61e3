#include "loss/probabilities.hpp"

#include <algorithm>
#include <vector>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kBlock = 256;  // rows whose scores are worked on together, in L1
constexpr std::size_t kRowsPerTask = kBlock * 4;

/// A row's softmax from F - largest, which is 0 at `top`, and its exponentials. The first largest
/// counts as 1.
void finish_softmax(std::span<double> row, std::span<const double> e, std::size_t top,
                    bool logarithm) {
  double rest = 0.0;
  for (std::size_t k = 0; k < row.size(); ++k) rest += k == top ? 0.0 : e[k];
  const double inverse = 1.0 / (1.0 + rest);
  const double log_sum = logarithm ? log1p_nonnegative(rest) : 0.0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    row[k] = logarithm ? row[k] - log_sum : e[k] * inverse;
  }
}

struct RowExponentialKernel {
  [[gnu::always_inline]] static void run(const double* x, std::size_t n, double* e) {
    for (std::size_t i = 0; i < n; ++i) e[i] = exp_nonpositive(x[i]);
  }
};

/// Some rows at a time, because exponentials are fastest in a long row.
void softmax_block(std::span<double> rows, std::size_t n_classes, bool logarithm,
                   std::span<double> e, std::span<std::size_t> tops) {
  const std::size_t n_rows = rows.size() / n_classes;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const auto row = rows.subspan(i * n_classes, n_classes);
    const auto top = std::max_element(row.begin(), row.end());
    const double largest = *top;
    tops[i] = static_cast<std::size_t>(top - row.begin());
    for (double& score : row) score -= largest;
  }
  dispatch<RowExponentialKernel>(static_cast<const double*>(rows.data()), rows.size(), e.data());
  for (std::size_t i = 0; i < n_rows; ++i) {
    const auto row = rows.subspan(i * n_classes, n_classes);
    finish_softmax(row, e.subspan(i * n_classes, n_classes), tops[i], logarithm);
  }
}

}  // namespace

void softmax_rows(std::span<double> raw, std::size_t n_classes, bool logarithm, int n_threads) {
  const std::size_t n_rows = raw.size() / n_classes;
  const std::size_t n_tasks = (n_rows + kRowsPerTask - 1) / kRowsPerTask;
  const std::size_t n_together = std::min(kBlock, n_rows);
  parallel_for(n_tasks, n_threads, [&](std::size_t task, std::size_t) {
    std::vector<double> e(n_together * n_classes);
    std::vector<std::size_t> tops(n_together);
    const std::size_t last = std::min((task + 1) * kRowsPerTask, n_rows);
    for (std::size_t row = task * kRowsPerTask; row < last; row += n_together) {
      const std::size_t n = std::min(n_together, last - row);
      softmax_block(raw.subspan(row * n_classes, n * n_classes), n_classes, logarithm, e, tops);
    }
  });
}

}  // namespace abcgbm
