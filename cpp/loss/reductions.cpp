#include "loss/reductions.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/elementary.hpp"
#include "loss/hessians.hpp"
#include "loss/row_chunks.hpp"

namespace abcgbm {

Largest largest_of(std::span<const Largest> parts) {
  Largest all;
  for (const Largest& part : parts) {
    all.residual = std::max(all.residual, part.residual);
    all.loss = std::max(all.loss, part.loss);
  }
  return all;
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
  return sums;
}

double total_loss(const Labels& labels, RowWeights weight, std::span<const double> row_loss) {
  double largest = 0.0;
  for (const double loss : row_loss) largest = std::max(largest, loss);
  const int exponent = loss_exponent(labels, largest);
  const double scale = std::ldexp(1.0, exponent);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < row_loss.size(); ++i) {
    sum += weight[i] * round_to_int(row_loss[i] * scale);
  }
  return static_cast<double>(sum) * std::ldexp(labels.unit, -exponent);
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

}  // namespace abcgbm
