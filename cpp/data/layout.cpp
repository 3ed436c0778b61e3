#include "data/layout.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace abcgbm {
namespace {

/// A listed row takes as much memory as this many codes of a dense column.
constexpr std::size_t kCodesPerListedRow = 5;

/// Assigns consecutive bins to features, and starts their columns.
class Placer {
 public:
  explicit Placer(Layout& layout) : layout_(layout) {}

  /// Starts the column of the features that are placed next.
  std::uint32_t begin_column() {
    layout_.column_bin.push_back(static_cast<std::uint32_t>(layout_.total_bins));
    return static_cast<std::uint32_t>(layout_.column_bin.size() - 1);
  }

  void place(std::uint32_t f, std::uint32_t column) {
    Feature& feature = layout_.features[f];
    feature.column = column;
    feature.offset = static_cast<std::uint32_t>(layout_.total_bins);
    layout_.by_bin.push_back(f);
    layout_.total_bins += feature.n_bins;
  }

 private:
  Layout& layout_;
};

Block make_block(const Layout& layout, std::size_t first_column, std::size_t last_column,
                 std::size_t last_bin) {
  const std::size_t first_bin = layout.column_bin[first_column];
  const std::size_t begin = layout.first_feature_from(first_bin);
  const std::size_t end = layout.first_feature_from(last_bin);
  return {.first_column = first_column,
          .last_column = last_column,
          .first_bin = first_bin,
          .last_bin = last_bin,
          .features = std::span(layout.by_bin).subspan(begin, end - begin)};
}

}  // namespace

std::size_t Layout::first_feature_from(std::size_t bin) const {
  const auto offset = [&](std::uint32_t f) { return std::size_t{features[f].offset}; };
  return static_cast<std::size_t>(std::ranges::lower_bound(by_bin, bin, {}, offset) -
                                  by_bin.begin());
}

bool is_sparse(std::size_t n_listed, std::size_t n_rows) {
  return n_listed * kCodesPerListedRow <= n_rows;
}

Layout make_layout(std::vector<Feature> features, std::span<const Bundle> bundles) {
  Layout layout;
  layout.features = std::move(features);
  Placer placer(layout);
  for (std::uint32_t f = 0; f < layout.n_features(); ++f) {
    if (layout.features[f].is_sparse) {
      layout.sparse_features.push_back(f);
    } else {
      placer.place(f, placer.begin_column());
    }
  }
  for (const Bundle& bundle : bundles) {
    const std::uint32_t column = placer.begin_column();
    for (const std::uint32_t f : bundle) {
      placer.place(f, column);
      layout.features[f].is_bundled = true;
    }
  }
  placer.begin_column();  // the end of the last one
  std::uint32_t n_listed = 0;
  for (const std::uint32_t f : layout.sparse_features) {
    if (layout.features[f].is_listed()) placer.place(f, n_listed++);
  }
  if (layout.total_bins > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("too many bins in all: 2^32 or more");
  }
  return layout;
}

std::vector<Block> blocks_of(const Layout& layout, std::size_t n_requested, std::size_t max_bins) {
  const std::vector<std::uint32_t>& bin = layout.column_bin;
  const std::size_t n_columns = layout.n_columns();
  const std::size_t max_columns = std::max<std::size_t>(1, n_columns / n_requested);
  std::vector<Block> blocks;
  for (std::size_t first = 0, last = 0; first < n_columns; first = last) {
    last = first + 1;
    while (last < std::min(n_columns, first + max_columns) &&
           bin[last + 1] - bin[first] <= max_bins) {
      ++last;
    }
    blocks.push_back(make_block(layout, first, last, bin[last]));
  }
  if (bin.back() < layout.total_bins) {
    blocks.push_back(make_block(layout, n_columns, n_columns, layout.total_bins));
  }
  return blocks;
}

}  // namespace abcgbm
