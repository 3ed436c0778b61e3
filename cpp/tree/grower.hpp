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
#include "tree/measure.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

struct GrowParams {
  int max_leaf_nodes = 20;
  int max_depth = 0;  // 0: no bound
  double min_gain = 0.0;
  FeatureRules features;
};

/// What a tree starts from.
template <class Measure>
struct RootNode {
  typename Measure::Sums sums{};
  SplitRules rules;
  double gain_unit = 1.0;  // the gain of one unit of the sums
  std::uint64_t key = 0;   // of the draws of features
};

template <class Measure>
class Grower {
 public:
  using Sums = typename Measure::Sums;
  using Bins = typename Measure::Bins;

  /// Keeps at most `most_histograms`, at least 3, at a time.
  Grower(const Measure& measure, const Layout& layout, std::size_t most_histograms,
         std::size_t n_threads);

  /// Starts a tree, whose root is to be counted. The parameters are kept by reference.
  void start(const GrowParams& params, const RootNode<Measure>& root);

  /// The leaves that can be split, the best last; at most as many as there are splits left.
  std::span<const std::size_t> open_leaves() const { return open_; }
  std::size_t splits_left() const { return splits_left_; }

  /// What is known of the children of an open leaf before it is split.
  struct Outlook {
    TreeNode split;          // where its rows go
    bool counts_left;        // whether it is the left child whose rows will be counted
    bool is_worth_counting;  // whether a child could be split again, by way of its histogram
  };
  Outlook outlook(std::size_t leaf) const;

  /// Splits the open leaf of largest gain, and returns it: its rows go to two new nodes. None when
  /// the tree is finished.
  std::optional<std::size_t> split_next();

  /// The nodes whose rows are to be counted now: the root; after a split the lighter child, both if
  /// their parent's histogram is not there any more, or none if they cannot be split again.
  std::span<const std::size_t> to_count() const { return to_count_; }

  /// Whether a node to be counted needs no histogram: it cannot be split again, and its rows are
  /// to be taken out of its parent's, which so becomes the sibling's.
  bool is_taken_out(std::size_t node) const { return grown_[node].slot == kNoSlot; }

  /// The node whose histogram is made by counting a node: itself, or its sibling.
  std::size_t made_by(std::size_t node) const {
    return sibling_ && is_taken_out(node) ? *sibling_ : node;
  }

  /// Whether cuts are found by how large the residuals in a node are: where there are categories,
  /// and no hessians.
  bool needs_residual_size() const {
    return has_categories_ && !measure_.has_hessian() && root_.rules.level_price > 0.0;
  }
  void set_residual_size(std::size_t node, const typename Measure::ResidualSize& size) {
    grown_[node].residual_size = size;
  }
  const typename Measure::ResidualSize& residual_size(std::size_t node) const {
    return grown_[node].residual_size;
  }

  Bins histogram(std::size_t node) { return slots_[grown_[node].slot]; }

  /// A block of columns has been counted in all of them. Blocks come in any order, from threads
  /// that have a slot each.
  void counted(const Block& block, std::size_t slot);

  /// All blocks have been counted.
  void all_counted() { take_cuts(best_cuts()); }

  /// That in two: the best cuts in the blocks that have been counted, and with the best of all.
  std::vector<typename Measure::Cut> best_cuts();
  void take_cuts(std::vector<typename Measure::Cut> cuts);

  std::vector<TreeNode>& nodes() { return nodes_; }
  const std::vector<TreeNode>& nodes() const { return nodes_; }
  const Sums& sums(std::size_t node) const { return grown_[node].sums; }

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  struct Grown {
    Sums sums{};
    typename Measure::ResidualSize residual_size{};
    typename Measure::Cut cut;
    Path path;
    int depth = 0;
    std::size_t slot = kNoSlot;
    std::vector<std::uint8_t> may_cut;  // by feature; none: all
  };

  static void write_split(const typename Measure::Cut& cut, TreeNode& node);
  bool can_split(std::size_t node) const;
  void add_child(const Sums& sums, int depth, const Path& path);
  void choose_to_count(std::size_t parent, std::size_t left);
  void prepare(std::size_t node);
  typename Measure::NodeToCut to_cut(std::size_t node) const;
  void decide(std::size_t node);
  void open(std::size_t node);
  void release(std::size_t node);
  std::size_t take_slot();

  Measure measure_;
  const Layout* layout_;
  bool has_categories_;
  std::size_t most_histograms_;
  const GrowParams* params_ = nullptr;
  RootNode<Measure> root_;
  std::size_t splits_left_ = 0;
  std::vector<TreeNode> nodes_;
  std::vector<Grown> grown_;
  std::vector<std::size_t> open_;  // leaves that can be split, best last
  std::vector<typename Measure::Histogram> slots_;
  std::vector<std::size_t> free_slots_;
  /// What one thread has found in its blocks.
  struct Found {
    typename Measure::Search search;
    std::vector<typename Measure::Cut> best;  // of the nodes of to_cut_
  };

  std::vector<Found> found_;  // by slot
  std::vector<std::size_t> to_count_;
  std::optional<std::size_t> sibling_;  // of the counted node: has its parent's histogram
  std::vector<std::size_t> to_cut_;     // the nodes whose cuts are looked for
};

}  // namespace abcgbm
