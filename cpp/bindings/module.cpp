#include "bindings.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The native core of abcgbm: loops over rows and bins.";
  abcgbm::bind_parallel(m);
  abcgbm::bind_binning(m);
  abcgbm::bind_scores(m);
  abcgbm::bind_step(m);
  abcgbm::bind_predict(m);
}
