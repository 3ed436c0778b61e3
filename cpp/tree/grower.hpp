// Best-first growth of one tree, as a state machine: it says which node to split and which
// children's rows are to be counted, and is handed those histograms. Who holds the rows is not its
// business.
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
  int max_depth = 0;  // 0: no bound
  double min_gain = 0.0;
  FeatureRules features;
};

/// What a tree starts from.
template <class Traits>
struct RootNode {
  typename Traits::Sums sums{};
  SplitRules rules;
  double gain_unit = 1.0;  // the gain of one unit of the sums
  std::uint64_t key = 0;   // of the draws of features
};

template <class Traits>
class Grower {
 public:
  using Sums = typename Traits::Sums;
  using Bins = typename Traits::Bins;

  /// Keeps at most `most_histograms`, at least 3, at a time.
  Grower(const Traits& traits, const Layout& layout, std::size_t max_histograms,
         std::size_t n_threads);

  /// Starts a tree, whose root is to be counted. The parameters are kept by reference.
  void start(const GrowParams& params, const RootNode<Traits>& root);

  /// The leaves that can be split, the best last; at most as many as there are splits left.
  std::span<const std::size_t> open_leaves() const { return open_; }
  std::size_t splits_left() const { return splits_left_; }

  /// What is known of the children of an open leaf before it is split.
  struct SplitPreview {
    TreeNode split;          // where its rows go
    bool counts_left;        // whether it is the left child whose rows will be counted
    bool is_worth_counting;  // whether a child could be split again, by way of its histogram
  };
  SplitPreview preview(std::size_t leaf) const;

  /// Splits the open leaf of largest gain, and returns it: its rows go to two new nodes. None when
  /// the tree is finished.
  std::optional<std::size_t> split_next();

  /// The nodes whose rows are to be counted now: the root; after a split the lighter child, both if
  /// their parent's histogram is not there any more, or none if they cannot be split again.
  std::span<const std::size_t> to_count() const { return to_count_; }

  /// Whether a node to be counted needs no histogram: it cannot be split again, and its rows are
  /// to be taken out of its parent's, which so becomes the sibling's.
  bool is_subtracted(std::size_t node) const { return grown_[node].slot == kNoSlot; }

  /// The node whose histogram is made by counting a node: itself, or its sibling.
  std::size_t made_by(std::size_t node) const {
    return sibling_ && is_subtracted(node) ? *sibling_ : node;
  }

  /// Whether cuts are found by how large the residuals in a node are: where there are categories,
  /// and no hessians.
  bool needs_residual_size() const {
    return has_categories_ && !traits_.has_hessian() && root_.rules.category_penalty > 0.0;
  }
  void set_residual_size(std::size_t node, const typename Traits::ResidualSize& size) {
    grown_[node].residual_size = size;
  }
  const typename Traits::ResidualSize& residual_size(std::size_t node) const {
    return grown_[node].residual_size;
  }

  Bins histogram(std::size_t node) { return slots_[grown_[node].slot]; }

  /// A block of columns has been counted in all of them. Blocks come in any order, from threads
  /// that have a slot each.
  void counted(const Block& block, std::size_t slot);

  /// All blocks have been counted.
  void all_counted() { set_splits(best_splits()); }

  /// That in two: the best cuts in the blocks that have been counted, and with the best of all.
  std::vector<typename Traits::Split> best_splits();
  void set_splits(std::vector<typename Traits::Split> splits);

  std::vector<TreeNode>& nodes() { return nodes_; }
  const std::vector<TreeNode>& nodes() const { return nodes_; }
  const Sums& sums(std::size_t node) const { return grown_[node].sums; }

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  struct Grown {
    Sums sums{};
    typename Traits::ResidualSize residual_size{};
    typename Traits::Split split;
    Path path;
    int depth = 0;
    std::size_t slot = kNoSlot;
    std::vector<std::uint8_t> may_split;  // by feature; none: all
  };

  static void write_split(const typename Traits::Split& split, TreeNode& node);
  bool can_split(std::size_t node) const;
  void add_child(const Sums& sums, int depth, const Path& path);
  void choose_to_count(std::size_t parent, std::size_t left);
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
  std::vector<std::size_t> open_;  // leaves that can be split, best last
  std::vector<typename Traits::Histogram> slots_;
  std::vector<std::size_t> free_slots_;
  /// What one thread has found in its blocks.
  struct Found {
    typename Traits::Search search;
    std::vector<typename Traits::Split> best;  // of the nodes of to_split_
  };

  std::vector<Found> found_;  // by slot
  std::vector<std::size_t> to_count_;
  std::optional<std::size_t> sibling_;  // of the counted node: has its parent's histogram
  std::vector<std::size_t> to_split_;   // the nodes whose cuts are looked for
};

}  // namespace abcgbm
