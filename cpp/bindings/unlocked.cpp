#include "bindings/unlocked.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace abcgbm {
namespace {

thread_local Unlocked* innermost = nullptr;
thread_local const Work* failed_work = nullptr;

/// Takes the GIL and calls. As no Python function throws, an exception means that the interpreter
/// is ending: this thread must not continue, and sleeps until the process ends.
template <class Call>
void with_lock(PyThreadState* state, const Call& call) noexcept {
  try {
    PyEval_RestoreThread(state);
    call();
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace

Unlocked::Unlocked(const Work& work)
    : work_(&work),
      outer_(innermost),
      n_exceptions_(std::uncaught_exceptions()),
      state_(PyEval_SaveThread()) {
  innermost = this;
}

Unlocked::~Unlocked() {
  innermost = outer_;
  if (std::uncaught_exceptions() > n_exceptions_) failed_work = work_;
  with_lock(state_, [] {});
}

/// Reuses the thread's own state, which Python allows at any time, unlike PyGILState_Ensure.
bool Unlocked::user_wants_to_stop() {
  bool raised = false;
  if (innermost == nullptr) return raised;
  with_lock(innermost->state_, [&] {
    raised = PyErr_CheckSignals() != 0;
    innermost->state_ = PyEval_SaveThread();
  });
  return raised;
}

void Unlocked::call_python(const std::function<void()>& call) {
  if (innermost == nullptr) return call();
  std::exception_ptr error;
  Unlocked* const here = std::exchange(innermost, nullptr);
  with_lock(here->state_, [&] {
    try {
      call();
    } catch (const std::exception&) {  // not the end of the interpreter
      error = std::current_exception();
    }
    here->state_ = PyEval_SaveThread();
  });
  innermost = here;
  if (error) std::rethrow_exception(error);
}

const Work* Unlocked::take_failed() { return std::exchange(failed_work, nullptr); }

}  // namespace abcgbm
