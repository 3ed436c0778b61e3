// Estimates of the memory that training needs.
#pragma once

#include <cstddef>
#include <vector>

#include "grow/params.hpp"

namespace abcgbm {

/// What the memory depends on, besides the parameters.
struct TrainingSize {
  std::size_t n_rows = 0;
  int n_classes = 2;
  std::size_t total_bins = 0;
  std::size_t n_candidates = 1;  // base classes that an iteration tries, at most
  int n_threads = 1;
  bool has_ranks = false;  // the rows are sharded, so all trees grow together
};

struct MemoryPart {
  const char* name;
  std::size_t bytes;
  bool is_of_rows = true;  // grows with the rows; in the storage of the scores, perhaps in files
};

/// The large arrays of training, without the binned table.
std::vector<MemoryPart> training_bytes(const TrainingSize& size, const TrainParams& params);

/// The bytes of validation rows, without their codes.
std::size_t validation_bytes(std::size_t n_rows, int n_classes, int n_threads);

}  // namespace abcgbm
