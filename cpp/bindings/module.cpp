#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
  // Objects that outlive the interpreter, as with a daemon thread, are harmless: no warning.
  nanobind::set_leak_warnings(false);
  m.doc() = "The native core of abcgbm: all loops over rows and bins.";
  abcgbm::bind_parallel(m);
  abcgbm::bind_storage(m);
  abcgbm::bind_binning(m);
  abcgbm::bind_value_counts(m);
  abcgbm::bind_scores(m);
  abcgbm::bind_labels(m);
  abcgbm::bind_params(m);
  abcgbm::bind_training(m);
  abcgbm::bind_predict(m);
}
