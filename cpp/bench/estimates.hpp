// The guard's estimates of losses, for tests of their error bounds.
#pragma once

#include <nanobind/nanobind.h>

namespace abcgbm {

void bind_estimates(nanobind::module_& m);

}  // namespace abcgbm
