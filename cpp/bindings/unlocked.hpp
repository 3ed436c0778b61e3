// Native work without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>

namespace abcgbm {

/// What a native call is doing, and how to reduce its memory, for MemoryError.
struct Work {
  const char* name;
  const char* advice;
};
inline constexpr Work kBinning{"binning a table", "fewer rows or columns need less"};
inline constexpr Work kTraining{
    "training", "fewer rows, classes, bins (max_bins) or threads (n_jobs) need less"};
inline constexpr Work kPrediction{"predicting", "fewer rows at a time need less"};
inline constexpr Work kExplanation{"explaining", "fewer rows at a time need less"};

/// Releases the GIL for its lifetime. Unlike nanobind's gil_scoped_release it may exist in a daemon
/// thread when the interpreter ends: Python then unwinds the stack of a thread that asks for the
/// GIL, which C++ treats as an uncaught exception, and aborts.
class Unlocked {
 public:
  explicit Unlocked(const Work& work);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// Runs Python's signal handlers in this thread's innermost native call; true if one of them
  /// (Ctrl-C) raised.
  static bool user_wants_to_stop();

  /// Takes the GIL for a call, and rethrows what Python raises.
  static void call_python(const std::function<void()>& call);

  /// The work that this thread's last exception came from, once; or nullptr.
  static const Work* take_failed();

 private:
  const Work* work_;
  Unlocked* outer_;  // a signal handler may call into the core again
  int n_exceptions_;
  PyThreadState* state_;
};

}  // namespace abcgbm
