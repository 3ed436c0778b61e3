// Chunks of rows whose scores fit into the L1 cache, and tasks of several chunks.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/parallel.hpp"

namespace abcgbm {

inline constexpr std::size_t kRowsPerChunk = 256;
inline constexpr std::size_t kRowsPerTask = kRowsPerChunk * 4;

/// Calls each(start, n) for the chunks of the rows [first, last).
template <class Each>
void for_chunks(std::size_t first, std::size_t last, const Each& each) {
  for (std::size_t start = first; start < last; start += kRowsPerChunk) {
    each(start, std::min(kRowsPerChunk, last - start));
  }
}

inline std::size_t n_row_tasks(std::size_t n_rows) {
  return (n_rows + kRowsPerTask - 1) / kRowsPerTask;
}

/// Calls each(first, last) for ranges of rows, in parallel.
template <class Each>
void for_row_tasks(std::size_t n_rows, int n_threads, const Each& each) {
  parallel_for(n_row_tasks(n_rows), n_threads, [&](std::size_t task, std::size_t) {
    each(task * kRowsPerTask, std::min((task + 1) * kRowsPerTask, n_rows));
  });
}

}  // namespace abcgbm
