// Which features a node may be cut on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abcgbm {

struct FeatureRules {
  std::size_t max_features = 0;  // drawn anew for every node; 0: all
  /// Features that may meet on a path from the root to a leaf; none: all may.
  std::vector<std::vector<std::uint32_t>> groups;
};

/// The groups that a node's path still allows, by number; of no meaning without groups.
using OpenGroups = std::vector<std::uint32_t>;

OpenGroups all_groups(const FeatureRules& rules);

/// The groups that are left below a cut on a feature.
OpenGroups groups_with(const FeatureRules& rules, const OpenGroups& open, std::uint32_t feature);

/// Ascending features that a node may be cut on; draws depend on nothing but the node's key.
std::vector<std::uint32_t> features_of(const FeatureRules& rules, std::size_t n_features,
                                       const OpenGroups& open, std::uint64_t key);

}  // namespace abcgbm
