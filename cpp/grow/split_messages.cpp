#include "grow/split_messages.hpp"

namespace abcgbm {

std::vector<Block> assign_columns(const Layout& layout, const Communicator& communicator,
                                  std::vector<std::size_t>& bin_end) {
  const std::size_t n_ranks = communicator.n_ranks();
  const std::vector<Block> blocks = blocks_of(layout, n_ranks);
  const auto end = [&](std::size_t rank) { return (rank + 1) * blocks.size() / n_ranks; };
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    bin_end.push_back(end(rank) == 0 ? 0 : blocks[end(rank) - 1].last_bin);
  }
  const auto first = static_cast<std::ptrdiff_t>(communicator.rank() * blocks.size() / n_ranks);
  return {blocks.begin() + first,
          blocks.begin() + static_cast<std::ptrdiff_t>(end(communicator.rank()))};
}

}  // namespace abcgbm
