// Growth of several trees in rounds, when the rows are sharded over ranks: the histograms that a
// round needs, for all trees, are reduced in one collective operation.
//
//   start               all rows are in the roots
//   advance             split each tree as long as the histograms of the next children are known
//   request_children    request the missing ones
//   build_requested     build histograms locally, and sum them over all ranks
//
// A tree also requests the children of leaves that will probably be split soon, which saves rounds
// (a tree of 64 leaves takes about 20 instead of 63). A histogram that was built early is used
// when its leaf is split, so the trees stay the same.
//
// If histograms are large, they are reduce-scattered: each rank gets the sums of some columns only,
// which halves the bytes, searches splits in these, and the ranks exchange their best splits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/communicator.hpp"
#include "data/binned.hpp"
#include "grow/growth.hpp"
#include "grow/tree_growth.hpp"

namespace abcgbm {

/// How many histograms a tree may keep or build ahead, if `n_trees` grow together. It must be the
/// same on all ranks, so it does not depend on their numbers of threads.
std::size_t max_in_lock_step(std::size_t histogram_bytes, std::size_t n_trees);

/// The number of trees that grow together, the threads for each of them, and all threads.
struct TreesTogether {
  std::size_t n;
  TreeThreads threads;
  int n_threads;
};

template <class Job>
class LockStep {
 public:
  using Traits = typename Job::Traits;

  /// Keeps references to the table and the communicator.
  LockStep(const Traits& traits, const Binned& binned, const Communicator& communicator,
           TreesTogether together, const Storage& storage);

  /// Grows a tree for each job; there may be at most as many as trees that grow together.
  void grow(std::span<const Job> jobs);

  /// A grown tree, and the rows of its nodes.
  TreeState<Job>& state(std::size_t tree) { return trees_[tree].state; }

 private:
  using Bins = typename Traits::Bins;
  using Histogram = typename Traits::Histogram;
  using AbsResiduals = typename Traits::AbsResiduals;
  using Split = typename Traits::Split;
  using Number = typename Traits::Number;

  /// The root is the left child of a leaf with this number: its row set and its histogram are those
  /// of side 0 of `children[kRoot]`.
  static constexpr std::size_t kRoot = static_cast<std::size_t>(-1);
  static constexpr std::size_t kNone = static_cast<std::size_t>(-2);

  /// What is known of the children of a leaf.
  struct Children {
    std::size_t left = 0;  // row set of the left child; the right one's is the next
    std::array<Histogram, 2> histograms{};  // empty: not yet built
    AbsResiduals left_abs_residuals{};      // of the left child
    bool has_abs_residuals = false;
  };

  struct GrowingTree {
    TreeState<Job> state;
    std::vector<std::size_t> row_set_of_node{};  // row set of each node
    std::map<std::size_t, Children> children{};  // by leaf
    std::size_t split_leaf = kNone;              // its children's splits are not known yet
    std::vector<Split> found{};  // best splits in this rank's columns, until they are exchanged
    bool is_grown = false;
  };

  /// A child whose histogram is to be built.
  struct Request {
    std::size_t tree;
    std::size_t leaf;  // its parent
    std::size_t side;  // 0: left
  };

  void start(std::span<const Job> jobs);
  void set_root_abs_residuals(std::span<const Job> jobs);
  void advance(const Job& job, GrowingTree& tree);
  bool knows_children(const GrowingTree& tree) const;
  void take_children(const Job& job, GrowingTree& tree);
  void set_splits(std::vector<Split> splits, GrowingTree& tree);
  bool exchange_splits(std::size_t n_trees);
  void take_abs_residuals(const Children& children, GrowingTree& tree);
  Children& split(std::size_t leaf, const TreeNode& how, GrowingTree& tree);
  std::vector<Request> request_children(std::size_t number);
  void request_ahead(std::size_t number, std::vector<Request>& requests);
  void build_requested(std::span<const Job> jobs, std::span<const Request> requests);
  void build_locally(std::span<const Job> jobs, std::span<const Request> requests, Histogram& sums);
  void allreduce_histograms(std::span<const Request> requests, Histogram& sums);
  void reduce_scatter_histograms(std::span<const Request> requests, Histogram& sums);
  void sum_abs_residuals(std::span<const Job> jobs, std::span<const Request> requests);
  Histogram& new_histogram(const Request& request);
  std::span<const std::uint32_t> rows_of(const Request& request) const;
  static std::size_t side_of(const GrowingTree& tree, std::size_t node);
  template <class Each>
  void for_trees(std::size_t n, const Each& each);

  Traits traits_;
  const Binned* binned_;
  const Communicator* communicator_;
  bool is_scattered_;
  std::vector<std::size_t> bin_end_;  // end of each rank's columns, for reduce-scatter
  std::vector<Block> own_;            // the columns that this rank searches
  std::size_t max_histograms_;
  TreeThreads threads_;
  int n_threads_;
  std::vector<GrowingTree> trees_;
  std::vector<typename Job::RowSums> row_sums_;  // by thread
};

}  // namespace abcgbm
