#include "tree/features.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/draw.hpp"

namespace abcgbm {
namespace {

bool has(const std::vector<std::uint32_t>& features, std::uint32_t feature) {
  return std::ranges::find(features, feature) != features.end();
}

bool has_all(const std::vector<std::uint32_t>& group, const Path& path) {
  return std::ranges::all_of(path, [&](std::uint32_t f) { return has(group, f); });
}

std::vector<std::uint32_t> all_features(std::size_t n_features) {
  std::vector<std::uint32_t> out(n_features);
  std::iota(out.begin(), out.end(), std::uint32_t{0});
  return out;
}

/// Sorted, without duplicates.
std::vector<std::uint32_t> as_set(std::vector<std::uint32_t> features) {
  std::ranges::sort(features);
  const auto repeated = std::ranges::unique(features);
  features.erase(repeated.begin(), repeated.end());
  return features;
}

/// The features that may follow on a path.
std::vector<std::uint32_t> allowed(const FeatureRules& rules, std::size_t n_features,
                                   const Path& path) {
  if (rules.max_path_features > 0 && path.size() >= rules.max_path_features) return as_set(path);
  if (rules.groups.empty()) return all_features(n_features);
  std::vector<std::uint32_t> features;
  for (const auto& group : rules.groups) {
    if (has_all(group, path)) features.insert(features.end(), group.begin(), group.end());
  }
  return as_set(std::move(features));
}

}  // namespace

Path path_with(Path path, std::uint32_t feature) {
  if (!has(path, feature)) path.push_back(feature);
  return path;
}

std::vector<std::uint32_t> features_of(const FeatureRules& rules, std::size_t n_features,
                                       const Path& path, std::uint64_t key) {
  std::vector<std::uint32_t> features = allowed(rules, n_features, path);
  if (rules.max_features == 0 || rules.max_features >= features.size()) return features;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
  drawn.reserve(features.size());
  for (const std::uint32_t f : features) drawn.emplace_back(mix(key ^ f), f);
  const auto end = drawn.begin() + static_cast<std::ptrdiff_t>(rules.max_features);
  std::nth_element(drawn.begin(), end, drawn.end());
  features.clear();
  for (auto item = drawn.begin(); item != end; ++item) features.push_back(item->second);
  std::ranges::sort(features);
  return features;
}

}  // namespace abcgbm
