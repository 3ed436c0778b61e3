// How much memory a training takes, from the sizes that its own parts have.
#pragma once

#include <cstddef>
#include <vector>

#include "grow/params.hpp"

namespace abcgbm {

/// What the memory of a training depends on, apart from its parameters.
struct TrainingSize {
  std::size_t n_rows = 0;
  int n_classes = 2;
  std::size_t total_bins = 0;
  std::size_t n_candidates = 1;  // base classes that a step tries, at most
  int n_threads = 1;
  bool has_ranks = false;  // others have some of the rows, so all trees grow together
};

struct MemoryPart {
  const char* name;
  std::size_t bytes;
  bool is_of_rows = true;  // it lies where the scores do, perhaps in files
};

/// The large parts of a training, apart from the coded table.
std::vector<MemoryPart> training_bytes(const TrainingSize& size, const TrainParams& params);

/// What rows take whose scores follow the trees.
std::size_t validation_bytes(std::size_t n_rows, int n_classes, int n_threads);

}  // namespace abcgbm
