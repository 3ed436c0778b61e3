// A binned table as a dict of flat arrays, and back: what a pickle holds.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "data/binned.hpp"

namespace abcgbm {

using BinnedState = nanobind::typed<nanobind::dict, nanobind::str, nanobind::object>;

BinnedState state_of(const Binned& binned);

/// Copies first and checks the copy, so that no state, however made, leads to a table that is none.
std::shared_ptr<Binned> binned_from_state(const BinnedState& state);

}  // namespace abcgbm
