// Thread pool: the only file that starts threads.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

namespace abcgbm {

/// Thrown out of a native loop after Ctrl-C.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Called now and then by the thread that called into the core; returns true to stop.
using Poll = bool (*)();
void set_poll(Poll poll);

/// Throws Interrupted if a stop was requested. Cheap: call it about once a millisecond.
void check_interrupt();

/// Runs task(i, slot) for every i < n on up to n_threads threads, and waits for all of them. `slot`
/// < n_threads numbers the running thread, for its workspace. Which thread runs which i is not
/// fixed, so a task's result must not depend on it. The first exception of a task is rethrown here.
/// A nested call runs on the calling thread only.
void parallel_for(std::size_t n, int n_threads,
                  const std::function<void(std::size_t, std::size_t)>& task);

}  // namespace abcgbm
