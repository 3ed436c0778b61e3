// Native work without Python's lock (the GIL).
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>

namespace abcgbm {

/// What a native call does, for the user whose memory it does not fit.
struct Work {
  const char* name;
  const char* advice;
};
inline constexpr Work kBinning{"binning a table", "fewer rows or columns need less"};
inline constexpr Work kTraining{
    "training", "fewer rows, classes, bins (max_bins) or threads (n_jobs) need less"};
inline constexpr Work kPrediction{"predicting", "fewer rows at a time need less"};
inline constexpr Work kExplanation{"explaining", "fewer rows at a time need less"};

/// Other Python threads run as long as this lives. Unlike nanobind's gil_scoped_release it may live
/// in a daemon thread when the interpreter ends: Python then ends the thread that asks for its lock
/// by unwinding its stack, which C++ takes for an error that nobody caught, and aborts.
class Unlocked {
 public:
  explicit Unlocked(const Work& work);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// Runs Python's signal handlers for this thread's innermost native call; true if one of them
  /// (Ctrl-C) raised.
  static bool user_wants_to_stop();

  /// Calls what needs Python's lock, and has it for so long; what Python raises is thrown on.
  static void call_python(const std::function<void()>& call);

  /// The work that the last exception of this thread came out of, asked for once; or nullptr.
  static const Work* take_failed();

 private:
  const Work* work_;
  Unlocked* outer_;  // a signal handler may call into the core again
  int n_exceptions_;
  PyThreadState* state_;
};

}  // namespace abcgbm
