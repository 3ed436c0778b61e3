#include "loss/reductions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/elementary.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "loss/hessians.hpp"
#include "loss/row_chunks.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kLeafRows = 2048;  // rows of a leaf for one task
constexpr std::size_t kAhead = 2;  // prefetch distance, as rows of a leaf are scattered in memory

/// Rows of a leaf, and their sums [2][n_classes].
struct LeafPart {
  const std::uint32_t* rows;
  std::size_t n;
  std::size_t n_classes;
  const std::int32_t* residual;  // of all rows
  RowWeights weight;
  double scale;
  double inverse_scale;
  std::int64_t* sums;
};

template <bool IsWeighted>
struct LeafKernel {
  [[gnu::always_inline]] static inline void run(const LeafPart* given) {
    const LeafPart part = *given;
    const std::size_t n_classes = part.n_classes;
    std::int64_t* __restrict residuals = part.sums;
    std::int64_t* __restrict hessians = part.sums + n_classes;
    for (std::size_t i = 0; i < part.n; ++i) {
      const std::int32_t* residual = part.residual + part.rows[i] * n_classes;
      const std::int64_t weight = IsWeighted ? part.weight[part.rows[i]] : 1;
      prefetch(part, std::min(i + kAhead, part.n - 1));
      for (std::size_t k = 0; k < n_classes; ++k) {
        const double r =
            bits_as<double>(residual[k] + bits_as<std::int64_t>(kRoundingMagic)) - kRoundingMagic;
        const double a = (r < 0.0 ? -r : r) * part.inverse_scale;
        const std::int64_t hessian = round_to_int((a * (1.0 - a)) * part.scale);
        residuals[k] += IsWeighted ? residual[k] * weight : residual[k];
        hessians[k] += IsWeighted ? hessian * weight : hessian;
      }
    }
  }

  [[gnu::always_inline]] static inline void prefetch(const LeafPart& part, std::size_t i) {
    const std::int32_t* residual = part.residual + part.rows[i] * part.n_classes;
    for (std::size_t k = 0; k < part.n_classes; k += 16) __builtin_prefetch(residual + k);
  }
};

/// A part of the rows of a leaf.
struct LeafTask {
  std::size_t leaf;
  LeafRows rows;
  bool has_others;  // the leaf has other tasks
};

std::vector<LeafTask> leaf_tasks(std::span<const LeafRows> leaves) {
  std::vector<LeafTask> tasks;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const std::size_t n_rows = leaves[leaf].size();
    for (std::size_t first = 0; first < n_rows; first += kLeafRows) {
      const std::size_t n = std::min(kLeafRows, n_rows - first);
      tasks.push_back({leaf, leaves[leaf].subspan(first, n), n < n_rows});
    }
  }
  return tasks;
}

/// Adds the rows of a task to the sums [2][n_classes].
void sum_leaf(const TreeRows& rows, LeafRows some, std::int64_t* sums) {
  const LeafPart part{.rows = some.data(),
                      .n = some.size(),
                      .n_classes = static_cast<std::size_t>(rows.labels.n_classes),
                      .residual = rows.scores.row_residual.data(),
                      .weight = rows.weight,
                      .scale = std::ldexp(1.0, rows.scores.exponent),
                      .inverse_scale = std::ldexp(1.0, -rows.scores.exponent),
                      .sums = sums};
  if (rows.weight == RowWeights()) {
    dispatch<LeafKernel<false>>(&part);
  } else {
    dispatch<LeafKernel<true>>(&part);
  }
}

}  // namespace

Largest largest_of(const Labels& labels, std::span<const Largest> parts) {
  Largest all;
  for (const Largest& part : parts) {
    all.residual = std::max(all.residual, part.residual);
    all.loss = std::max(all.loss, part.loss);
  }
  std::array<double, 2> both{all.residual, all.loss};
  labels.communicator().allreduce_max(both);
  return {.residual = both[0], .loss = both[1]};
}

std::vector<std::int64_t> class_loss_sums(const Labels& labels, std::span<const double> row_loss,
                                          double scale, int n_threads) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const RowWeights weight = labels.weights();
  std::vector<std::int64_t> parts(n_row_tasks(labels.n_rows()) * n_classes, 0);
  for_row_tasks(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    std::int64_t* const part = parts.data() + first / kRowsPerTask * n_classes;
    for (std::size_t i = first; i < last; ++i) {
      part[labels.y[i]] += weight[i] * round_to_int(row_loss[i] * scale);
    }
  });
  std::vector<std::int64_t> sums(n_classes, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % n_classes] += parts[i];
  labels.communicator().allreduce_sum(sums);
  return sums;
}

std::vector<double> total_losses(const Labels& labels, RowWeights weight,
                                 std::span<const RowLosses> trials, int n_threads) {
  std::vector<double> largest(trials.size(), 0.0);
  parallel_for(trials.size(), n_threads, [&](std::size_t t, std::size_t) {
    for (const double loss : trials[t]) largest[t] = std::max(largest[t], loss);
  });
  labels.communicator().allreduce_max(largest);
  std::vector<std::int64_t> sums(trials.size(), 0);
  parallel_for(trials.size(), n_threads, [&](std::size_t t, std::size_t) {
    const double scale = std::ldexp(1.0, loss_exponent(labels, largest[t]));
    for (std::size_t i = 0; i < trials[t].size(); ++i) {
      sums[t] += weight[i] * round_to_int(trials[t][i] * scale);
    }
  });
  labels.communicator().allreduce_sum(sums);
  std::vector<double> losses(trials.size());
  for (std::size_t t = 0; t < trials.size(); ++t) {
    const int exponent = loss_exponent(labels, largest[t]);
    losses[t] = static_cast<double>(sums[t]) * std::ldexp(labels.unit, -exponent);
  }
  return losses;
}

double total_loss(const Labels& labels, RowWeights weight, RowLosses row_loss) {
  return total_losses(labels, weight, std::span(&row_loss, 1), 1).front();
}

std::vector<std::int64_t> hessian_sums(const TreeRows& rows, const ClassPair& pair,
                                       std::span<const std::uint16_t> node_of_row,
                                       std::size_t n_nodes) {
  std::vector<std::int64_t> sums(n_nodes, 0);
  std::array<std::int64_t, kRowsPerChunk> chunk;
  for_chunks(0, node_of_row.size(), [&](std::size_t first, std::size_t n) {
    hessian(rows.scores, rows.labels, pair, first, std::span(chunk).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      sums[node_of_row[first + i]] += chunk[i] * rows.weight[first + i];
    }
  });
  return sums;
}

std::int64_t own_residual_sum(const TreeRows& rows, int n_threads) {
  const Labels& labels = rows.labels;
  std::vector<std::int64_t> parts(n_row_tasks(labels.n_rows()), 0);
  for_row_tasks(labels.n_rows(), n_threads, [&](std::size_t first, std::size_t last) {
    std::int64_t& part = parts[first / kRowsPerTask];
    for (std::size_t i = first; i < last; ++i) {
      part += rows.weight[i] * residuals_of_row(rows.scores, labels, i)[labels.y[i]];
    }
  });
  std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  labels.communicator().allreduce_sum(sum);
  return sum;
}

/// Splits large leaves into several tasks.
std::vector<std::int64_t> leaf_sums(const TreeRows& rows, std::span<const LeafRows> leaves,
                                    int n_threads) {
  const std::size_t n_sums = 2 * static_cast<std::size_t>(rows.labels.n_classes);
  const std::vector<LeafTask> tasks = leaf_tasks(leaves);
  std::vector<std::int64_t> sums(leaves.size() * n_sums, 0);
  std::vector<std::vector<std::int64_t>> parts(tasks.size());
  parallel_for(tasks.size(), n_threads, [&](std::size_t i, std::size_t) {
    check_interrupt();
    const LeafTask& task = tasks[i];
    if (task.has_others) parts[i].assign(n_sums, 0);
    sum_leaf(rows, task.rows, task.has_others ? parts[i].data() : sums.data() + task.leaf * n_sums);
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (std::size_t j = 0; j < parts[i].size(); ++j)
      sums[tasks[i].leaf * n_sums + j] += parts[i][j];
  }
  rows.labels.communicator().allreduce_sum(sums);
  return sums;
}

}  // namespace abcgbm
