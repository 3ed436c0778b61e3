#include "tree/multi_output_scan.hpp"

#include <algorithm>
#include <numeric>

#include "base/simd.hpp"

namespace abcgbm {
namespace {

using Position = MultiOutputScanner::Position;
using Node = MultiOutputScanner::Node;
using FourTerms = MultiOutputScanner::FourTerms;

constexpr double kRounding =
    0x1p-20;  // relative size of a difference of means that is rounding only
constexpr std::size_t kFour = 4;
using Four = Wide<kFour>::Doubles;
using FourInts = Wide<kFour>::ShortIntegers;

/// Four sums of a bin. Lanes beyond the last projection hold other sums, which are multiplied by 0.
[[gnu::always_inline]] inline Four four(const std::int32_t* sums) {
  return __builtin_convertvector(load<FourInts>(sums), Four);
}

[[gnu::always_inline]] inline Four size_of(const Four& x) { return x < 0.0 ? -x : x; }

/// The difference of the sides' means, times both weights; 0 if it is rounding only.
[[gnu::always_inline]] inline Four difference_of(const Four& from_left, const Four& from_right) {
  const Four e = from_left - from_right;
  const Four noise = kRounding * (size_of(from_left) + size_of(from_right));
  return size_of(e) <= noise ? Four{} : e;
}

/// The score terms of N times four projections, from `first` on, for all splits; rows count as 1.
template <std::size_t N>
struct WeightTerms {
  [[gnu::always_inline]] static inline void run(const Position* positions, std::size_t n,
                                                const Node* node, std::size_t first, std::size_t,
                                                FourTerms* terms) {
    std::array<Four, N> left{};
    std::array<Four, N> total;
    std::array<Four, N> counts;
    for (std::size_t i = 0; i < N; ++i) {
      total[i] = load<Four>(&node->residuals[first + i * kFour]);
      counts[i] = load<Four>(&node->inverse[first + i * kFour]);
    }
    for (std::size_t t = 0; t < n; ++t) {
      const std::int32_t* bin = positions[t].bin + first;
      for (std::size_t i = 0; i < N; ++i) left[i] += four(bin + i * kFour);
      if (!positions[t].is_allowed) continue;
      const Four a = Four{} + positions[t].left_weight;
      const Four b = node->weight - a;
      Four sum = load<Four>(terms[t].data());
      for (std::size_t i = 0; i < N; ++i) {
        const Four e = difference_of(left[i] * b, (total[i] - left[i]) * a);
        sum += (e * e) * counts[i];
      }
      store(sum, terms[t].data());
    }
  }
};

/// The same with rows that count as their hessians, which are `hessians_at` after the residuals.
template <std::size_t N>
struct HessianTerms {
  struct Side {
    Four residual{};
    Four hessian{};
  };

  [[gnu::always_inline]] static inline void run(const Position* positions, std::size_t n,
                                                const Node* node, std::size_t first,
                                                std::size_t hessians_at, FourTerms* terms) {
    std::array<Side, N> left{};
    std::array<Side, N> total;
    std::array<Four, N> inverse;
    for (std::size_t i = 0; i < N; ++i) {
      total[i].residual = load<Four>(&node->residuals[first + i * kFour]);
      total[i].hessian = load<Four>(&node->hessians[first + i * kFour]);
      inverse[i] = load<Four>(&node->inverse[first + i * kFour]);
    }
    const double l2 = node->l2;
    for (std::size_t t = 0; t < n; ++t) {
      const std::int32_t* bin = positions[t].bin + first;
      for (std::size_t i = 0; i < N; ++i) {
        left[i].residual += four(bin + i * kFour);
        left[i].hessian += four(bin + hessians_at + i * kFour);
      }
      if (!positions[t].is_allowed) continue;
      Four sum = load<Four>(terms[t].data());
      for (std::size_t i = 0; i < N; ++i) sum += term(left[i], total[i], inverse[i], l2);
      store(sum, terms[t].data());
    }
  }

  [[gnu::always_inline]] static inline Four term(const Side& left, const Side& total,
                                                 const Four& inverse, double l2) {
    const Four a = left.hessian + l2;
    const Four b = (total.hessian - left.hessian) + l2;
    const Four e = difference_of(left.residual * b, (total.residual - left.residual) * a);
    const Four both = a * b;
    return both > 0.0 ? ((e * e) * inverse) / both : Four{};
  }
};

/// Calls the kernel for all projections: eight at a time, then four.
template <template <std::size_t> class Kernel>
void add_all_terms(std::span<const Position> positions, const Node& node,
                   const SumLayout& sum_layout, FourTerms* terms) {
  const std::size_t n_padded = node.residuals.size();
  std::size_t first = 0;
  for (; first + 2 * kFour <= n_padded; first += 2 * kFour) {
    dispatch<Kernel<2>>(positions.data(), positions.size(), &node, first, sum_layout.hessians_at(),
                        terms);
  }
  if (first < n_padded) {
    dispatch<Kernel<1>>(positions.data(), positions.size(), &node, first, sum_layout.hessians_at(),
                        terms);
  }
}

}  // namespace

void MultiOutputScanner::use_node(std::span<const std::int32_t> sums, const SplitRules& rules) {
  const std::size_t n = sum_layout_.n_projections;
  const std::size_t n_padded = (n + kFour - 1) / kFour * kFour;
  rules_ = rules;
  weight_ = sums[sum_layout_.weight_at()];
  node_.weight = static_cast<double>(weight_);
  node_.l2 = rules.l2;
  for (auto* values : {&node_.residuals, &node_.hessians, &node_.inverse}) {
    values->assign(n_padded, 0.0);
  }
  for (std::size_t d = 0; d < n; ++d) {
    node_.residuals[d] = static_cast<double>(sums[d]);
    node_.inverse[d] = 1.0;
  }
  hessian_ = 0;
  if (!sum_layout_.has_hessian) return;
  for (std::size_t d = 0; d < n; ++d) {
    const std::int32_t hessian = sums[sum_layout_.hessians_at() + d];
    hessian_ += hessian;
    node_.hessians[d] = static_cast<double>(hessian);
    const double both = node_.hessians[d] + 2.0 * rules.l2;
    node_.inverse[d] = both > 0.0 ? 1.0 / both : 0.0;
  }
}

void MultiOutputScanner::add_position(const std::int32_t* bin, std::uint32_t after,
                                      bool may_split) {
  left_weight_ += bin[sum_layout_.weight_at()];
  positions_.push_back({.bin = bin,
                        .left_weight = static_cast<double>(left_weight_),
                        .after = after,
                        .is_allowed = may_split && left_weight_ >= rules_.min_weight});
}

/// Skips empty bins: the split after one repeats the split before, and is never the first with its
/// score. Weights only grow, so the search ends at the first split with too little weight on its
/// right.
void MultiOutputScanner::find_positions(const MultiOutputScan& scan) {
  positions_.clear();
  left_weight_ = 0;
  if (scan.start != nullptr) add_position(scan.start, 0, false);
  for (std::uint32_t t = 0; t < scan.n; ++t) {
    const std::int32_t* bin =
        scan.sorted.empty() ? scan.bins + t * sum_layout_.stride() : scan.sorted[t];
    const std::int32_t weight = bin[sum_layout_.weight_at()];
    if (weight == 0) continue;
    if (weight_ - (left_weight_ + weight) < rules_.min_weight) break;
    add_position(bin, t, true);
  }
}

/// Excludes splits that leave too little hessian on a side.
void MultiOutputScanner::check_hessians() {
  std::int64_t left = 0;
  for (Position& position : positions_) {
    const std::int32_t* hessians = position.bin + sum_layout_.hessians_at();
    left = std::accumulate(hessians, hessians + sum_layout_.n_projections, left);
    position.is_allowed &= left >= rules_.min_hessian && hessian_ - left >= rules_.min_hessian;
  }
}

void MultiOutputScanner::add_terms() {
  terms_.assign(positions_.size(), FourTerms{});
  if (sum_layout_.has_hessian) {
    add_all_terms<HessianTerms>(positions_, node_, sum_layout_, terms_.data());
  } else {
    add_all_terms<WeightTerms>(positions_, node_, sum_layout_, terms_.data());
  }
}

double MultiOutputScanner::score_of(std::size_t position) const {
  const FourTerms& s = terms_[position];
  const double sum = (s[0] + s[2]) + (s[1] + s[3]);
  if (sum_layout_.has_hessian) return sum;
  const double a = positions_[position].left_weight;
  return sum / (a * (node_.weight - a));
}

BestOfScan MultiOutputScanner::best_split(const MultiOutputScan& scan) {
  find_positions(scan);
  if (sum_layout_.has_hessian && rules_.min_hessian > 0) check_hessians();
  BestOfScan best;
  if (std::ranges::none_of(positions_, &Position::is_allowed)) return best;
  add_terms();
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    if (!positions_[i].is_allowed) continue;
    const std::uint32_t after = positions_[i].after;
    const double score = score_of(i) - (scan.penalties.empty() ? 0.0 : scan.penalties[after]);
    if (score > best.score) best = {.score = score, .after = after};
  }
  return best;
}

}  // namespace abcgbm
