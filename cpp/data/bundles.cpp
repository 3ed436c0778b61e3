#include "data/bundles.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/parallel.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kMostOpen = 4;       // bundles that a column is tried in
constexpr std::size_t kRowsPerListed = 4;  // a good bundle lists at least one in so many rows
/// A walk by row over the columns that are left sparse costs as much as so many bundles.
constexpr std::size_t kWalk = 2;

/// A bundle that may still grow.
struct OpenBundle {
  Bundle features;
  std::vector<bool> is_listed;  // by row
  std::size_t n_listed = 0;
  std::size_t n_bins = 0;

  bool fits(const Feature& feature, const SparseColumn& column, std::size_t most_bins) const {
    return n_bins + feature.n_bins <= most_bins &&
           std::ranges::none_of(column.row, [&](std::uint32_t row) { return is_listed[row]; });
  }

  void add(std::uint32_t f, const Feature& feature, const SparseColumn& column) {
    features.push_back(f);
    for (const std::uint32_t row : column.row) is_listed[row] = true;
    n_listed += column.row.size();
    n_bins += feature.n_bins;
  }
};

}  // namespace

/// Each column joins the first open bundle that it fits; when there are too many, the oldest is
/// closed. Bundles that list few rows are worth having only where no column is left sparse then.
std::vector<Bundle> find_bundles(const Binned& binned, std::size_t most_bins) {
  std::vector<OpenBundle> open;
  std::vector<Bundle> bundles;
  std::vector<Bundle> others;
  const auto close_oldest = [&] {
    const bool is_good = open.front().n_listed * kRowsPerListed >= binned.n_rows;
    (is_good ? bundles : others).push_back(std::move(open.front().features));
    open.erase(open.begin());
  };
  for (const std::uint32_t f : binned.sparse) {
    check_interrupt();
    const Feature& feature = binned.features[f];
    const SparseColumn& column = binned.sparse_codes.by_column[feature.column];
    auto place = std::ranges::find_if(
        open, [&](const OpenBundle& b) { return b.fits(feature, column, most_bins); });
    if (place == open.end()) {
      if (open.size() == kMostOpen) close_oldest();
      open.push_back({.features = {}, .is_listed = std::vector<bool>(binned.n_rows)});
      place = open.end() - 1;
    }
    place->add(f, feature, column);
  }
  while (!open.empty()) close_oldest();
  if (others.size() <= kWalk) std::ranges::move(others, std::back_inserter(bundles));
  return bundles;
}

}  // namespace abcgbm
