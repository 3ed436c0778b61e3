// Feature sampling and interaction constraints: which features a node may be split on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace abcgbm {

/// The features of the splits above a node, each once, in the order of their first split.
using Path = std::vector<std::uint32_t>;

struct FeatureRules {
  std::size_t max_features = 0;       // sampled for every node; 0: all
  std::size_t max_path_features = 0;  // that may interact on a path; 0: no bound
  /// Interaction constraints: one group must contain all features of a path. Empty: no constraint.
  std::vector<std::vector<std::uint32_t>> groups;

  bool any() const { return max_features > 0 || max_path_features > 0 || !groups.empty(); }
};

Path path_with(Path path, std::uint32_t feature);

/// The features that a node may be split on, ascending. Sampling depends on the node's key only.
std::vector<std::uint32_t> features_of(const FeatureRules& rules, std::size_t n_features,
                                       const Path& path, std::uint64_t key);

}  // namespace abcgbm
