#include "features.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "draw.hpp"

namespace abcgbm {
namespace {

bool has(const std::vector<std::uint32_t>& group, std::uint32_t feature) {
  return std::ranges::find(group, feature) != group.end();
}

std::vector<std::uint32_t> numbers(std::size_t n) {
  std::vector<std::uint32_t> out(n);
  std::iota(out.begin(), out.end(), std::uint32_t{0});
  return out;
}

/// The features of all open groups.
std::vector<std::uint32_t> allowed(const FeatureRules& rules, std::size_t n_features,
                                   const OpenGroups& open) {
  if (rules.groups.empty()) return numbers(n_features);
  std::vector<std::uint32_t> features;
  for (const std::uint32_t group : open) {
    features.insert(features.end(), rules.groups[group].begin(), rules.groups[group].end());
  }
  std::ranges::sort(features);
  const auto repeated = std::ranges::unique(features);
  features.erase(repeated.begin(), repeated.end());
  return features;
}

}  // namespace

OpenGroups all_groups(const FeatureRules& rules) { return numbers(rules.groups.size()); }

OpenGroups groups_with(const FeatureRules& rules, const OpenGroups& open, std::uint32_t feature) {
  OpenGroups left = open;
  std::erase_if(left, [&](std::uint32_t group) { return !has(rules.groups[group], feature); });
  return left;
}

std::vector<std::uint32_t> features_of(const FeatureRules& rules, std::size_t n_features,
                                       const OpenGroups& open, std::uint64_t key) {
  std::vector<std::uint32_t> features = allowed(rules, n_features, open);
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
