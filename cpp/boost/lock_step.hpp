// Trees that grow together on rows of which other ranks have some, in rounds: what a round counts,
// for all trees, is summed over the ranks at once.
//
//   start           all rows are in the roots
//   go_on           each tree is split as long as the sums of the next children are known
//   ask             then it asks for theirs
//   count           rows are counted here, and summed over all ranks
//
// A tree asks for the children of leaves that will be split soon, too: so there are fewer rounds.
// The trees are the same: what is known early is used when its time has come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/reducer.hpp"
#include "boost/growth.hpp"
#include "boost/tree_growth.hpp"
#include "data/binned.hpp"

namespace abcgbm {

/// How many histograms each of some trees that grow together may keep, and count ahead: the same
/// on all ranks, however many threads they have.
std::size_t most_in_lock_step(std::size_t histogram_bytes, std::size_t n_trees);

template <class Job>
class LockStep {
 public:
  using Measure = typename Job::Measure;

  /// For at most so many trees at a time, each of which some threads grow.
  LockStep(const Measure& measure, const Binned& binned, std::size_t n_trees, TreeThreads threads,
           int n_threads, const Storage& storage);

  /// Grows a tree for each job.
  void grow(std::span<const Job> jobs, const Reducer& ranks);

  /// A tree when it is grown, and the rows of its nodes.
  TreeState<Job>& state(std::size_t tree) { return trees_[tree].state; }

 private:
  using Bins = typename Measure::Bins;
  using Histogram = typename Measure::Histogram;
  using Size = typename Measure::ResidualSize;

  /// What is known of the two children of a leaf, or of the root as if it were a left child.
  struct Children {
    std::size_t left = 0;  // the rows of the left one among the sets; those of the right come next
    std::array<std::optional<Histogram>, 2> counted{};
    std::optional<Size> left_size{};  // of its residuals
  };

  struct GrowingTree {
    TreeState<Job> state;
    std::vector<std::size_t> set_of{};           // of a node's rows
    std::map<std::size_t, Children> children{};  // by leaf
    std::optional<std::size_t> waiting{};  // the leaf that was split, until its children are known
    bool is_grown = false;
  };

  /// A child whose rows are to be counted.
  struct Wanted {
    std::size_t tree;
    std::size_t leaf;  // its parent
    std::size_t side;  // 0: left
  };

  static constexpr std::size_t kRoot = static_cast<std::size_t>(-1);

  void start(std::span<const Job> jobs, const Reducer& ranks);
  void set_sizes_of_roots(std::span<const Job> jobs, const Reducer& ranks);
  void go_on(const Job& job, GrowingTree& tree);
  bool knows_children(const GrowingTree& tree) const;
  void take_children(const Job& job, GrowingTree& tree);
  void take_sizes(const Children& children, GrowingTree& tree);
  Children& split(const Job& job, std::size_t leaf, const TreeNode& how, GrowingTree& tree);
  std::vector<Wanted> ask(const Job& job, std::size_t number);
  void ask_ahead(const Job& job, std::size_t number, std::vector<Wanted>& wanted);
  void count(std::span<const Job> jobs, std::span<const Wanted> wanted, const Reducer& ranks);
  void count_here(std::span<const Job> jobs, std::span<const Wanted> wanted, Histogram& sums);
  void count_sizes(std::span<const Job> jobs, std::span<const Wanted> wanted, const Reducer& ranks);
  std::span<const std::uint32_t> rows_of(const Wanted& wanted) const;
  static std::size_t side_of(const GrowingTree& tree, std::size_t node);
  template <class Each>
  void for_trees(std::size_t n, const Each& each);

  Measure measure_;
  const Binned* binned_;
  std::size_t most_;
  TreeThreads threads_;
  int n_threads_;
  std::vector<GrowingTree> trees_;
  std::vector<typename Job::RowSums> row_sums_;  // by thread
};

}  // namespace abcgbm
