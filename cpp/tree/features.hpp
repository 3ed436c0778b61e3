// Which features a node may be cut on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace abcgbm {

/// The features that are cut on the way to a node, each once, in order of their first cut.
using Path = std::vector<std::uint32_t>;

struct FeatureRules {
  std::size_t max_features = 0;       // drawn anew for every node; 0: all
  std::size_t max_path_features = 0;  // that may meet on a path; 0: no bound
  /// All features of a path must be in one of these groups; none: no such rule.
  std::vector<std::vector<std::uint32_t>> groups;

  bool any() const { return max_features > 0 || max_path_features > 0 || !groups.empty(); }
};

Path path_with(Path path, std::uint32_t feature);

/// Ascending features that a node may be cut on; draws depend on nothing but the node's key.
std::vector<std::uint32_t> features_of(const FeatureRules& rules, std::size_t n_features,
                                       const Path& path, std::uint64_t key);

}  // namespace abcgbm
