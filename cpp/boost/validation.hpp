// Scores of validation rows, updated tree by tree. The rows are coded with the training bins and
// partitioned by each new tree, as the training rows are; nothing is predicted from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/storage.hpp"
#include "data/binned.hpp"
#include "loss/scores.hpp"
#include "tree/partition.hpp"
#include "tree/tree.hpp"

namespace abcgbm {

class Validation {
 public:
  /// The table must have the bins of the training table. Arrays of one value per row are in the
  /// storage of the raw scores.
  Validation(std::shared_ptr<const Binned> binned, std::shared_ptr<const Labels> labels,
             LargeVector<double> raw, int n_threads);
  Validation(const Validation&) = delete;  // holds buffers as large as the table
  Validation& operator=(const Validation&) = delete;

  /// Updates the scores by the trees of an iteration.
  void add(std::span<const Tree> trees);

  const Labels& labels() const { return *labels_; }
  const LargeVector<double>& raw() const { return raw_; }  // [n_classes][n_rows]
  double loss() const { return loss_; }
  /// The class of each row's largest score.
  const LargeVector<std::int32_t>& leading() const { return leading_; }
  const Binned& binned() const { return *binned_; }

 private:
  void add_multi_output(const Tree& tree);

  std::shared_ptr<const Binned> binned_;
  std::shared_ptr<const Labels> labels_;
  int n_threads_;
  LargeVector<double> raw_;
  LargeVector<std::int32_t> leading_;
  double loss_;
  std::vector<RowSets> rows_;               // by thread
  LargeVector<std::uint16_t> node_of_row_;  // [n_trees][n_rows]
};

}  // namespace abcgbm
