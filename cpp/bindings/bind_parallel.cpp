#include <nanobind/nanobind.h>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace abcgbm {
namespace {

/// Runs Python's signal handlers; true if one of them (Ctrl-C) raised.
bool python_wants_to_stop() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

/// The exception that the signal handler raised is still set in this thread: let it through.
void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

void bind_parallel(nb::module_& m) {
  set_poll(&python_wants_to_stop);
  nb::register_exception_translator(&translate);
  m.def(
      "simd_level", [] { return simd_level_name(simd_level()); },
      "The SIMD level in use: baseline, avx2 or avx512.");
}

}  // namespace abcgbm
