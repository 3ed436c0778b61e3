#include "bench/limit.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>

#include "base/draw.hpp"
#include "base/simd.hpp"
#include "tree/histogram.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kColumns = 4;      // counted together, as in training
constexpr std::size_t kBins = 64;        // of each column: 16 kB with eight sums
constexpr std::size_t kRowBytes = 4096;  // for the sums of all rows; 21 kB in total with eight sums
constexpr std::size_t kAddsPerRun = 1 << 18;

/// The sums of a row or a bin.
template <std::size_t N>
struct alignas(N == 8 ? 64 : 8) Item {
  std::array<std::int64_t, N> sum{};
};

template <std::size_t N>
struct Table {
  static constexpr std::size_t kRows = kRowBytes / sizeof(Item<N>);
  std::array<std::uint32_t, kRows> row{};  // a node lists its rows by number
  std::array<std::uint8_t, kColumns * kRows> code{};
  std::array<Item<N>, kRows> item{};
  std::array<Item<N>, kColumns * kBins> bins{};
};

template <std::size_t N>
void fill(Table<N>& table) {
  for (std::size_t i = 0; i < table.kRows; ++i) {
    table.row[i] = static_cast<std::uint32_t>(i);
    table.item[i].sum.fill(static_cast<std::int64_t>(i));
    for (std::size_t c = 0; c < kColumns; ++c) {
      table.code[c * table.kRows + i] = static_cast<std::uint8_t>(mix(i * kColumns + c) % kBins);
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void add_to(Item<N>& bin, const Item<N>& item) {
  for (std::size_t n = 0; n < N; ++n) bin.sum[n] += item.sum[n];
}

template <std::size_t N, int W>
[[gnu::always_inline]] inline void add_to(Item<N>& bin, const HeldSums<W>& sums) {
  sums.add_to(bin.sum);
}

/// Holds a row while it is added to the columns, as training does; the eight sums of root
/// histograms stay in memory.
template <std::size_t N>
[[gnu::always_inline]] inline auto held(const Item<N>& item) {
  if constexpr (N == kLane) {
    return item;
  } else {
    return HeldSums<static_cast<int>(N)>(item.sum);
  }
}

/// Adds all rows to all columns, with the loops of training.
template <std::size_t N>
struct AddKernel {
  [[gnu::always_inline]] static inline void run(std::uint32_t* rows, Item<N>* items,
                                                std::uint8_t* codes, Item<N>* bins) {
    constexpr std::size_t kRows = Table<N>::kRows;
    for (std::size_t j = 0; j < kRows; ++j) {
      const std::size_t row = rows[j];
      const auto item = held(items[j]);
      for (std::size_t c = 0; c < kColumns; ++c) {
        add_to(bins[c * kBins + codes[c * kRows + row]], item);
      }
    }
  }
};

/// Compiler barrier: memory may be read and written here, so earlier stores cannot be dropped or
/// reordered.
[[gnu::noinline]] void done_with(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

/// Each pass adds the sums of all rows to every column.
template <std::size_t N>
bool has_sums_of(const Table<N>& table, std::size_t n_passes) {
  Item<N> rows;
  Item<N> bins;
  for (const Item<N>& item : table.item) add_to(rows, item);
  for (const Item<N>& bin : table.bins) add_to(bins, bin);
  const auto n_times = static_cast<std::int64_t>(n_passes * kColumns);
  for (std::size_t n = 0; n < N; ++n) rows.sum[n] *= n_times;
  return bins.sum == rows.sum;
}

template <std::size_t N>
double best_seconds(int n_repeats) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kAddsPerPass = Table<N>::kRows * kColumns;
  constexpr std::size_t kPasses = kAddsPerRun / kAddsPerPass;
  const auto table = std::make_unique<Table<N>>();
  fill(*table);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n_repeats; ++i) {
    const auto start = Clock::now();
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      dispatch<AddKernel<N>>(table->row.data(), table->item.data(), table->code.data(),
                             table->bins.data());
      done_with(table.get());
    }
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  if (!has_sums_of(*table, kPasses * static_cast<std::size_t>(n_repeats))) {
    throw std::logic_error("the compiler left out a part of the loop");
  }
  return best / static_cast<double>(kPasses * kAddsPerPass);
}

}  // namespace

double seconds_per_add(int n_sums, int n_repeats) {
  assert((n_sums == 2 || n_sums == 3 || n_sums == 8) && n_repeats >= 1);
  if (n_sums == 2) return best_seconds<2>(n_repeats);
  return n_sums == 3 ? best_seconds<3>(n_repeats) : best_seconds<8>(n_repeats);
}

}  // namespace abcgbm
