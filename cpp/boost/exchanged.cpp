#include "boost/exchanged.hpp"

namespace abcgbm {

std::vector<Block> deal_columns(const Layout& layout, const Reducer& ranks,
                                std::vector<std::size_t>& bin_end) {
  const std::size_t n_ranks = ranks.n_ranks();
  const std::vector<Block> blocks = blocks_of(layout, n_ranks);
  const auto end = [&](std::size_t rank) { return (rank + 1) * blocks.size() / n_ranks; };
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    bin_end.push_back(end(rank) == 0 ? 0 : blocks[end(rank) - 1].last_bin);
  }
  const auto first = static_cast<std::ptrdiff_t>(ranks.rank() * blocks.size() / n_ranks);
  return {blocks.begin() + first, blocks.begin() + static_cast<std::ptrdiff_t>(end(ranks.rank()))};
}

}  // namespace abcgbm
