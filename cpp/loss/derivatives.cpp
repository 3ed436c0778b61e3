#include "loss/derivatives.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "loss/hessians.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kChunk = 512;  // rows; fits into the L1 cache
constexpr std::size_t kAhead =
    16;  // prefetch distance, as rows of a small node are scattered in memory

/// The residuals of a chunk of rows, and what follows from them.
struct Chunk {
  std::array<std::int64_t, kChunk> residual;
  std::array<std::int64_t, kChunk> base_residual;  // 0 without a base class
  std::array<std::int32_t, kChunk> y;
  std::array<std::int64_t, kChunk> hessian;
};

/// Reads the residuals of the rows [first, first + n) of a list.
void read_residuals(const TreeRows& rows, const ClassPair& pair,
                    std::span<const std::uint32_t> list, std::size_t first, Chunk& chunk) {
  const std::int64_t* of_class = residuals_of(rows.scores, rows.labels, pair.tree_class);
  const std::int64_t* of_base =
      residuals_of(rows.scores, rows.labels, pair.base.number_or(pair.tree_class));
  const bool has_base = pair.base.exists();
  const std::size_t n = std::min(kChunk, list.size() - first);
  for (std::size_t j = 0; j < n; ++j) {
    const std::uint32_t row = list[first + j];
    const std::uint32_t ahead = list[std::min(first + j + kAhead, list.size() - 1)];
    __builtin_prefetch(of_class + ahead);
    __builtin_prefetch(of_base + ahead);
    rows.weight.prefetch(ahead);
    chunk.residual[j] = of_class[row];
    chunk.base_residual[j] = has_base ? of_base[row] : 0;
  }
}

void set_hessians(const TreeRows& rows, const ClassPair& pair, std::span<const std::uint32_t> some,
                  Chunk& chunk) {
  for (std::size_t j = 0; j < some.size(); ++j) chunk.y[j] = rows.labels.y[some[j]];
  hessian(rows.scores, {.of_class = chunk.residual, .of_base = chunk.base_residual, .y = chunk.y},
          pair, std::span(chunk.hessian).first(some.size()));
}

}  // namespace

template <int W>
void row_sums(const TreeRows& rows, const ClassPair& pair, std::span<const std::uint32_t> list,
              std::span<Sums<W>> out) {
  Chunk chunk;
  for (std::size_t first = 0; first < list.size(); first += kChunk) {
    const auto some = list.subspan(first, std::min(kChunk, list.size() - first));
    read_residuals(rows, pair, list, first, chunk);
    if constexpr (kHasHessian<W>) set_hessians(rows, pair, some, chunk);
    for (std::size_t j = 0; j < some.size(); ++j) {
      const std::int64_t weight = rows.weight[some[j]];
      Sums<W>& sums = out[first + j];
      sums[kResidual] = (chunk.residual[j] - chunk.base_residual[j]) * weight;
      sums[kWeight] = weight;
      if constexpr (kHasHessian<W>) sums[kHessian] = chunk.hessian[j] * weight;
    }
  }
}

template void row_sums<2>(const TreeRows&, const ClassPair&, std::span<const std::uint32_t>,
                          std::span<Sums<2>>);
template void row_sums<3>(const TreeRows&, const ClassPair&, std::span<const std::uint32_t>,
                          std::span<Sums<3>>);

}  // namespace abcgbm
