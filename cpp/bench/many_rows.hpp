// Single stages of an iteration on more than 2^31 rows, for which a training would not fit into
// memory.
#pragma once

#include "bindings/arrays.hpp"

namespace abcgbm {

void bind_many_rows(nb::module_& m);

}  // namespace abcgbm
