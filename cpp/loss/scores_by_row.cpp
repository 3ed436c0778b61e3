#include "loss/scores_by_row.hpp"

#include <algorithm>
#include <cmath>

#include "base/aligned.hpp"
#include "base/simd.hpp"
#include "loss/row_chunks.hpp"
#include "loss/transpose.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kScratchScores = std::size_t{1} << 11;  // 16 kB

/// The number of rows that are transposed to class order at a time: at least one vector of the
/// softmax kernels.
std::size_t rows_at_a_time(std::size_t n_classes) {
  const std::size_t tile = simd_level() == SimdLevel::avx512 ? 16 : 8;
  return std::clamp(kScratchScores / n_classes / tile * tile, tile, kRowsPerChunk);
}

/// The rows [start, start + n) of row-major scores.
RowsToMove rows_to_move(double* raw, const Labels& labels, const LeafMove& move, std::size_t start,
                        std::size_t n) {
  return {.n_rows = n,
          .n_classes = static_cast<std::size_t>(labels.n_classes),
          .raw = raw,
          .value = move.value.data(),
          .leaf = move.leaf_of_row.empty() ? nullptr : move.leaf_of_row.data() + start};
}

ScoreRows by_class(const Labels& labels, const double* raw, std::size_t stride, std::size_t start,
                   std::size_t n) {
  return {.n = n,
          .stride = stride,
          .n_classes = labels.n_classes,
          .raw = raw,
          .y = labels.y.data() + start};
}

}  // namespace

LeafMove leaf_move(std::span<const TreeMove> moves) {
  if (moves.empty()) return {};
  const std::size_t n_leaves = moves.front().value.size();
  LeafMove move{.leaf_of_row = moves.front().node_of_row,
                .value = std::vector<double>(n_leaves * moves.size())};
  for (std::size_t k = 0; k < moves.size(); ++k) {
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
      move.value[leaf * moves.size() + k] = moves[k].value[leaf];
    }
  }
  return move;
}

Largest move_rows(Scores& scores, const Labels& labels, const LeafMove& move, std::size_t first,
                  std::size_t last) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const std::size_t stride = rows_at_a_time(n_classes);
  const double scale = std::ldexp(1.0, scores.exponent);
  AlignedVector<double> raw(n_classes * stride);
  auto* residual = reinterpret_cast<std::int64_t*>(raw.data());  // in the place of the scores
  Largest largest;
  for (std::size_t start = first; start < last; start += stride) {
    const std::size_t n = std::min(stride, last - start);
    const std::size_t at = start * n_classes;
    move_to_classes(rows_to_move(scores.raw.data() + at, labels, move, start, n), raw.data(),
                    stride);
    residuals_and_losses(by_class(labels, raw.data(), stride, start, n), scale, residual,
                         scores.row_loss.data() + start, largest);
    to_rows(residual, stride, n, n_classes, scores.row_residual.data() + at);
  }
  return largest;
}

void losses_of_rows(const Scores& scores, const Labels& labels, const LeafMove& move,
                    std::size_t first, std::size_t last, std::span<double> row_loss) {
  const auto n_classes = static_cast<std::size_t>(labels.n_classes);
  const std::size_t stride = rows_at_a_time(n_classes);
  AlignedVector<double> raw(n_classes * stride);
  std::vector<double> moved(n_classes * stride);
  for (std::size_t start = first; start < last; start += stride) {
    const std::size_t n = std::min(stride, last - start);
    std::copy_n(scores.raw.data() + start * n_classes, n * n_classes, moved.data());
    move_to_classes(rows_to_move(moved.data(), labels, move, start, n), raw.data(), stride);
    losses_and_leaders(by_class(labels, raw.data(), stride, start, n), row_loss.data() + start,
                       nullptr);
  }
}

}  // namespace abcgbm
