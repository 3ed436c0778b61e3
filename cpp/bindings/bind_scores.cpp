#include "base/fill.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "loss/probabilities.hpp"

namespace abcgbm {
namespace {

template <bool logarithm>
nb::ndarray<nb::numpy, double> softmax_py(const Matrix<double>& raw, int n_threads) {
  LargeVector<double> out;
  if (raw.size() > 0) {
    const Unlocked unlocked(kPrediction);
    out = copied(std::span(raw.data(), raw.size()));
    softmax_rows(out, raw.shape(1), logarithm, n_threads);
  }
  return to_numpy(std::move(out), {raw.shape(0), raw.shape(1)});
}

}  // namespace

void bind_scores(nb::module_& m) {
  using namespace nb::literals;
  m.def("softmax", &softmax_py<false>, "raw"_a.noconvert(), "n_threads"_a = 1,
        "Probabilities of scores of shape (n_rows, n_classes).");
  m.def("log_softmax", &softmax_py<true>, "raw"_a.noconvert(), "n_threads"_a = 1,
        "Logarithms of the probabilities.");
}

}  // namespace abcgbm
