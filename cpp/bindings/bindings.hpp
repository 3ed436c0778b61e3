// One function for each concept; module.cpp calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace abcgbm {

void bind_parallel(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_binning(nanobind::module_& m);
void bind_value_counts(nanobind::module_& m);
void bind_scores(nanobind::module_& m);
void bind_labels(nanobind::module_& m);
void bind_params(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_predict(nanobind::module_& m);

}  // namespace abcgbm
