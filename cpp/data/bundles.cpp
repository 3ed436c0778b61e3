#include "data/bundles.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/parallel.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

constexpr std::size_t kMaxOpen = 4;        // bundles that a column is tried with
constexpr std::size_t kRowsPerListed = 4;  // a good bundle lists at least one row in 4
/// The row-wise pass over the features that stay listed costs as much as this many bundles.
constexpr std::size_t kListedPass = 2;

/// A bundle that may still grow.
struct OpenBundle {
  Bundle features;
  std::vector<bool> has_row;  // whether a feature lists the row
  std::size_t n_listed = 0;
  std::size_t n_bins = 0;

  bool fits(const Feature& feature, const SparseColumn& column, std::size_t max_bins) const {
    return n_bins + feature.n_bins <= max_bins && !lists_any(column, has_row);
  }

  void add(std::uint32_t f, const Feature& feature, const SparseColumn& column) {
    features.push_back(f);
    for (const std::uint32_t row : column.row) has_row[row] = true;
    n_listed += column.row.size();
    n_bins += feature.n_bins;
  }
};

/// Closed bundles; those that list few rows are kept apart.
struct Closed {
  std::vector<Bundle> good;
  std::vector<Bundle> others;

  void add(OpenBundle bundle) {
    const bool is_good = bundle.n_listed * kRowsPerListed >= bundle.has_row.size();
    (is_good ? good : others).push_back(std::move(bundle.features));
  }
};

}  // namespace

/// Each column joins the first open bundle that it fits; if too many are open, the oldest is
/// closed. Bundles that list few rows pay only if they leave no feature listed.
std::vector<Bundle> find_bundles(std::span<const Feature> features,
                                 std::span<const SparseColumn> sparse, std::size_t n_rows,
                                 std::size_t max_bins) {
  std::vector<OpenBundle> open;
  Closed closed;
  for (std::uint32_t f = 0; f < features.size(); ++f) {
    if (!features[f].is_sparse) continue;
    check_interrupt();
    auto place = std::ranges::find_if(
        open, [&](const OpenBundle& b) { return b.fits(features[f], sparse[f], max_bins); });
    if (place == open.end()) {
      if (open.size() == kMaxOpen) {
        closed.add(std::move(open.front()));
        open.erase(open.begin());
      }
      open.push_back({.features = {}, .has_row = std::vector<bool>(n_rows)});
      place = open.end() - 1;
    }
    place->add(f, features[f], sparse[f]);
  }
  for (OpenBundle& bundle : open) closed.add(std::move(bundle));
  if (closed.others.size() <= kListedPass) {
    std::ranges::move(closed.others, std::back_inserter(closed.good));
  }
  return std::move(closed.good);
}

}  // namespace abcgbm
