// The only file that knows how threads are run.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

namespace abcgbm {

/// Thrown out of a native loop after the user asked to stop (Ctrl-C).
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Asked now and then by the thread that called into the core; true means stop.
using Poll = bool (*)();
void set_poll(Poll poll);

/// Throws Interrupted if the user asked to stop. Cheap; call it every millisecond or so of work.
void check_interrupt();

/// Runs task(i, slot) for every i < n on up to n_threads threads and waits for all of them.
/// `slot` < n_threads is the running thread's own number, for its workspace. Which thread runs
/// which i is not fixed, so a task's result must not depend on it. Waiting threads give way to
/// others for a moment, then sleep. The first exception of a task is thrown here. A nested call
/// runs on the calling thread alone.
void parallel_for(std::size_t n, int n_threads,
                  const std::function<void(std::size_t, std::size_t)>& task);

}  // namespace abcgbm
