// A binned table as a dict of flat arrays, and back: the content of a pickle.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "data/binned.hpp"

namespace abcgbm {

using BinnedState = nanobind::typed<nanobind::dict, nanobind::str, nanobind::object>;

BinnedState state_of(const Binned& binned);

/// Copies the arrays before checking them, so that no state, however made, results in an invalid
/// table.
std::shared_ptr<Binned> binned_from_state(const BinnedState& state);

}  // namespace abcgbm
