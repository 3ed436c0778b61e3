// Stages of a step on tables of which no training would fit: more than 2^31 rows.
#pragma once

#include "bindings/arrays.hpp"

namespace abcgbm {

void bind_many_rows(nb::module_& m);

}  // namespace abcgbm
