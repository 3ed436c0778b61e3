// Trees that grow together on rows of which other ranks have some, in rounds: what a round counts,
// for all trees, is summed over the ranks at once.
//
//   start           all rows are in the roots
//   advance           each tree is split as long as the sums of the next children are known
//   request_children             then it asks for theirs
//   count           rows are counted here, and summed over all ranks
//
// A tree asks for the children of leaves that will be split soon, too: so there are fewer rounds.
// The trees are the same: what is known early is used when its time has come.
//
// Where histograms are large, each rank gets the sums of some columns alone, which is half of the
// bytes; it looks for cuts in these, and the best cuts are exchanged (exchange_splits).
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

/// How many histograms each of some trees that grow together may keep, and count ahead: the same
/// on all ranks, however many threads they have.
std::size_t max_in_lock_step(std::size_t histogram_bytes, std::size_t n_trees);

/// How many trees grow at a time, by how many threads, each of them by some.
struct TreesTogether {
  std::size_t n;
  TreeThreads threads;
  int n_threads;
};

template <class Job>
class LockStep {
 public:
  using Traits = typename Job::Traits;

  /// The table and the ranks are kept by reference.
  LockStep(const Traits& traits, const Binned& binned, const Communicator& communicator,
           TreesTogether together, const Storage& storage);

  /// Grows a tree for each job, of which there are no more than trees at a time.
  void grow(std::span<const Job> jobs);

  /// A tree when it is grown, and the rows of its nodes.
  TreeState<Job>& state(std::size_t tree) { return trees_[tree].state; }

 private:
  using Bins = typename Traits::Bins;
  using Histogram = typename Traits::Histogram;
  using Size = typename Traits::ResidualSize;
  using Split = typename Traits::Split;
  using Number = typename Traits::Number;

  static constexpr std::size_t kRoot = static_cast<std::size_t>(-1);  // as if it were a child
  static constexpr std::size_t kNone = static_cast<std::size_t>(-2);

  /// What is known of the two children of a leaf, or of the root as if it were a left child.
  struct Children {
    std::size_t left = 0;  // the rows of the left one among the sets; those of the right come next
    std::array<Histogram, 2> counted{};  // empty: not yet
    Size left_size{};                    // of its residuals
    bool has_size = false;
  };

  struct GrowingTree {
    TreeState<Job> state;
    std::vector<std::size_t> set_of{};           // of a node's rows
    std::map<std::size_t, Children> children{};  // by leaf
    std::size_t waiting = kNone;  // the leaf that was split, until its children are known
    std::vector<Split>
        found{};  // the best cuts of these in our columns, until those of all are known
    bool is_grown = false;
  };

  /// A child whose rows are to be counted.
  struct Request {
    std::size_t tree;
    std::size_t leaf;  // its parent
    std::size_t side;  // 0: left
  };

  void start(std::span<const Job> jobs);
  void set_sizes_of_roots(std::span<const Job> jobs);
  void advance(const Job& job, GrowingTree& tree);
  bool knows_children(const GrowingTree& tree) const;
  void take_children(const Job& job, GrowingTree& tree);
  void set_splits(std::vector<Split> splits, GrowingTree& tree);
  bool exchange_splits(std::size_t n_trees);
  void take_sizes(const Children& children, GrowingTree& tree);
  Children& split(std::size_t leaf, const TreeNode& how, GrowingTree& tree);
  std::vector<Request> request_children(std::size_t number);
  void request_ahead(std::size_t number, std::vector<Request>& requests);
  void count(std::span<const Job> jobs, std::span<const Request> requests);
  void count_locally(std::span<const Job> jobs, std::span<const Request> requests, Histogram& sums);
  void allreduce_histograms(std::span<const Request> requests, Histogram& sums);
  void reduce_scatter_histograms(std::span<const Request> requests, Histogram& sums);
  void count_sizes(std::span<const Job> jobs, std::span<const Request> requests);
  Histogram& counted(const Request& request);
  std::span<const std::uint32_t> rows_of(const Request& request) const;
  static std::size_t side_of(const GrowingTree& tree, std::size_t node);
  template <class Each>
  void for_trees(std::size_t n, const Each& each);

  Traits traits_;
  const Binned* binned_;
  const Communicator* communicator_;
  bool is_scattered_;
  std::vector<std::size_t> bin_end_;  // of the columns of each rank, where sums are scattered
  std::vector<Block> own_;            // the columns in which cuts are looked for here
  std::size_t max_histograms_;
  TreeThreads threads_;
  int n_threads_;
  std::vector<GrowingTree> trees_;
  std::vector<typename Job::RowSums> row_sums_;  // by thread
};

}  // namespace abcgbm
