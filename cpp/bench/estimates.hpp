// The loss estimates of the line search, for tests of their error bounds.
#pragma once

#include <nanobind/nanobind.h>

namespace abcgbm {

void bind_estimates(nanobind::module_& m);

}  // namespace abcgbm
