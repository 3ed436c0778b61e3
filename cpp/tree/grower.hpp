// Best-first growth of one tree, as a state machine. It chooses the node to split and the nodes
// whose histograms to build, and receives these block by block, in any order. It knows the layout
// but no rows, so every rank grows the same tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/layout.hpp"
#include "tree/features.hpp"
#include "tree/output_traits.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

struct GrowParams {
  int max_leaf_nodes = 20;
  int max_depth = 0;  // 0: no limit
  double min_gain = 0.0;
  FeatureRules features;
};

/// The state a tree starts from.
template <class Traits>
struct RootNode {
  typename Traits::Sums sums{};
  SplitRules rules;
  double gain_unit = 1.0;  // gain of one unit of the sums
  std::uint64_t key = 0;   // of feature sampling
};

template <class Traits>
class Grower {
 public:
  using Sums = typename Traits::Sums;
  using Bins = typename Traits::Bins;

  /// Keeps at most `max_histograms` histograms, at least 3. If the histogram of a leaf was
  /// released, those of both its children are built; fewer histograms mean more work, never another
  /// tree.
  Grower(const Traits& traits, const Layout& layout, std::size_t max_histograms,
         std::size_t n_threads);

  /// Starts a tree; the histogram of its root is to be built. Keeps a reference to the parameters.
  void start(const GrowParams& params, const RootNode<Traits>& root);

  /// The leaves that can be split, the best last; at most as many as there are splits left.
  std::span<const std::size_t> open_leaves() const { return open_; }
  std::size_t splits_left() const { return splits_left_; }

  /// What is known about the children of an open leaf before it is split.
  struct SplitPreview {
    TreeNode split;          // how its rows will be divided
    bool builds_left;        // whether the left child's histogram will be built
    bool is_worth_building;  // whether a child could be split again, using its histogram
  };
  SplitPreview preview(std::size_t leaf) const;

  /// Splits the open leaf with the largest gain into two new nodes, and returns it; nothing if the
  /// tree is finished.
  std::optional<std::size_t> split_next();

  /// The nodes whose histograms to build now: the root; after a split the lighter child, both if
  /// the parent's histogram was released, or none if neither can be split again.
  std::span<const std::size_t> to_build() const { return to_build_; }

  /// Whether a node to build needs no histogram, as it cannot be split again: its rows are
  /// subtracted from the parent's histogram, which becomes the sibling's. (On Isolet this is every
  /// second split, with 16 rows in the median, while a histogram has 130,000 bins.)
  bool is_subtracted(std::size_t node) const { return grown_[node].slot == kNoSlot; }

  /// The node whose histogram results from the rows of a node to build: itself or, if they are
  /// subtracted from the parent's histogram, its sibling.
  std::size_t histogram_target(std::size_t node) const {
    return sibling_ && is_subtracted(node) ? *sibling_ : node;
  }

  /// Whether the split search needs the sums of absolute residuals: the penalty on categorical
  /// splits without hessians.
  bool needs_abs_residuals() const {
    return has_categories_ && !traits_.has_hessian() && root_.rules.category_penalty > 0.0;
  }
  void set_abs_residuals(std::size_t node, const typename Traits::AbsResiduals& sums) {
    grown_[node].abs_residuals = sums;
  }
  const typename Traits::AbsResiduals& abs_residuals(std::size_t node) const {
    return grown_[node].abs_residuals;
  }

  Bins histogram(std::size_t node) { return slots_[grown_[node].slot]; }

  /// Searches the splits in a block that is complete for all nodes to build. Blocks may come in any
  /// order, from threads with a slot each.
  void search_block(const Block& block, std::size_t slot);

  /// Ends the search after the last block.
  void finish_search() { set_splits(best_splits()); }

  /// The same in two steps, so that ranks can exchange splits: the best splits in the blocks
  /// searched here, and the best ones of all.
  std::vector<typename Traits::Split> best_splits();
  void set_splits(std::vector<typename Traits::Split> splits);

  std::vector<TreeNode>& nodes() { return nodes_; }
  const std::vector<TreeNode>& nodes() const { return nodes_; }
  const Sums& sums(std::size_t node) const { return grown_[node].sums; }

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  struct Grown {
    Sums sums{};
    typename Traits::AbsResiduals abs_residuals{};
    typename Traits::Split split;
    Path path;
    int depth = 0;
    std::size_t slot = kNoSlot;
    std::vector<std::uint8_t> may_split;  // by feature; empty: all
  };

  static void write_split(const typename Traits::Split& split, TreeNode& node);
  bool can_split(std::size_t node) const;
  void add_child(const Sums& sums, int depth, const Path& path);
  void choose_to_build(std::size_t parent, std::size_t left);
  void prepare(std::size_t node);
  typename Traits::NodeToSplit node_to_split(std::size_t node) const;
  void decide(std::size_t node);
  void open(std::size_t node);
  void release(std::size_t node);
  std::size_t take_slot();

  Traits traits_;
  const Layout* layout_;
  bool has_categories_;
  std::size_t max_histograms_;
  const GrowParams* params_ = nullptr;
  RootNode<Traits> root_;
  std::size_t splits_left_ = 0;
  std::vector<TreeNode> nodes_;
  std::vector<Grown> grown_;
  std::vector<std::size_t> open_;  // leaves that can be split, the best last
  std::vector<typename Traits::Histogram> slots_;
  std::vector<std::size_t> free_slots_;
  /// The search of one thread, and the best splits in its blocks.
  struct Found {
    typename Traits::Search search;
    std::vector<typename Traits::Split> best;  // of the nodes of to_split_
  };

  std::vector<Found> found_;  // by slot
  std::vector<std::size_t> to_build_;
  std::optional<std::size_t> sibling_;  // of the node to build: has the parent's histogram
  std::vector<std::size_t> to_split_;   // nodes whose splits are searched
};

}  // namespace abcgbm
