// Best-first growth of one tree, as a state machine: it says which node to split and which child's
// rows are to be counted, and is handed that histogram. Who holds the rows is not its business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "binned.hpp"
#include "histogram.hpp"
#include "split.hpp"
#include "tree.hpp"

namespace abcgbm {

struct GrowParams {
  int max_leaf_nodes = 20;
  int max_depth = 0;  // 0: no bound
  double min_gain = 0.0;
  SplitRules rules;
};

/// The split just made: the rows of `node` go to the new nodes `left` and `left + 1`.
struct Split {
  std::size_t node = 0;
  std::size_t feature = 0;
  std::uint32_t bin = 0;
  bool missing_left = false;
  /// The lighter child, whose histogram is to be given next; none if no child can be split again.
  std::optional<std::size_t> to_count;
};

template <int W>
class Grower {
 public:
  explicit Grower(const Binned& binned) : binned_(&binned) {}

  /// Starts a tree. Fill `root_histogram()` before. `gain_unit` is the gain of one unit of the
  /// sums.
  void start(const GrowParams& params, const Sums<W>& root, double gain_unit);
  std::span<Sums<W>> root_histogram();

  /// Splits the open leaf of largest gain; none when the tree is finished.
  std::optional<Split> split_next();

  /// Where to add the rows of `Split::to_count` (all zero at first), and the word that it is done.
  std::span<Sums<W>> count_here();
  void counted();

  std::vector<TreeNode>& nodes() { return nodes_; }
  const Sums<W>& sums(std::size_t node) const { return grown_[node].sums; }

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  struct Grown {
    Sums<W> sums{};
    Cut<W> cut;
    int depth = 0;
    std::size_t slot = kNoSlot;
  };

  bool can_split(std::size_t node) const;
  void add_child(const Sums<W>& sums, int depth);
  void evaluate(std::size_t node);
  void open(std::size_t node);
  void release(std::size_t node);
  std::size_t take_slot();

  const Binned* binned_;
  GrowParams params_;
  double gain_unit_ = 1.0;
  std::size_t splits_left_ = 0;
  std::vector<TreeNode> nodes_;
  std::vector<Grown> grown_;
  std::vector<std::size_t> open_;  // leaves that can be split, best last
  std::vector<Histogram<W>> slots_;
  std::vector<std::size_t> free_slots_;
  CutList cuts_;
  std::size_t parent_ = 0;    // of the split whose child is being counted
  std::size_t counting_ = 0;  // the child being counted
};

}  // namespace abcgbm
