#include <nanobind/nanobind.h>

#include <new>
#include <system_error>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"

namespace nb = nanobind;

namespace abcgbm {
namespace {

/// Python chooses the subclass by the error number: FileNotFoundError, PermissionError, ...
void set_os_error(const std::system_error& error) {
  PyObject* arguments = Py_BuildValue("(is)", error.code().value(), error.what());
  if (arguments == nullptr) return;
  PyErr_SetObject(PyExc_OSError, arguments);
  Py_DECREF(arguments);
}

/// If a signal handler raised, its exception is already set in this thread.
void translate(const std::exception_ptr& error, void*) {
  const Work* work = Unlocked::take_failed();
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const std::bad_alloc&) {
    if (work == nullptr) {
      PyErr_SetString(PyExc_MemoryError, "out of memory in the native core");
    } else {
      PyErr_Format(PyExc_MemoryError, "out of memory in the native core while %s; %s", work->name,
                   work->advice);
    }
  } catch (const std::system_error& of_system) {
    set_os_error(of_system);
  }
}

}  // namespace

void bind_parallel(nb::module_& m) {
  set_poll(&Unlocked::user_wants_to_stop);
  nb::register_exception_translator(&translate);
  m.def(
      "simd_level", [] { return simd_level_name(simd_level()); },
      "The SIMD level in use: baseline, avx2 or avx512.");
}

}  // namespace abcgbm
