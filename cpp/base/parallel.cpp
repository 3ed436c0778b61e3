#include "base/parallel.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace abcgbm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPollEvery = std::chrono::milliseconds(20);
constexpr auto kAwake = std::chrono::microseconds(200);

/// Spins for a moment, then lets the caller sleep. The next parallel loop of an iteration mostly
/// starts sooner than a sleeping thread would wake, hence the limit of kAwake.
template <class IsDone>
void wait_awake(const IsDone& is_done) {
  const auto until = Clock::now() + kAwake;
  while (!is_done() && Clock::now() < until) std::this_thread::yield();
}

/// One parallel_for. Its threads take the next index until none is left. It is on the stack of the
/// calling thread, and a node of the queue while it waits for helpers.
struct Job {
  Job(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body)
      : n(count), task(body) {}

  const std::size_t n;
  const std::function<void(std::size_t, std::size_t)>& task;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::condition_variable idle;
  std::atomic<std::size_t> n_helpers{0};  // running helpers; changed under the mutex
  std::exception_ptr error;               // guarded by mutex

  std::size_t n_requested = 0;  // helpers; this and the next two are guarded by the pool's mutex
  std::size_t n_came = 0;
  Job* behind = nullptr;  // the next job in the queue

  void work(std::size_t slot);

  /// Keeps the first error, and only then cancels the other threads, which end with errors of their
  /// own.
  void cancel(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(why);
    cancelled = true;
  }
};

/// Jobs that wait for helpers, first in, first out. It is an intrusive list: queueing allocates
/// nothing, so it cannot fail halfway.
class JobQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Job& first() { return *first_; }

  void push(Job& job) {
    Job** end = &first_;
    while (*end != nullptr) end = &(*end)->behind;
    *end = &job;
  }

  /// Does nothing if the job is not in the queue.
  void remove(Job& job) {
    Job** link = &first_;
    while (*link != nullptr && *link != &job) link = &(*link)->behind;
    if (*link != nullptr) *link = std::exchange(job.behind, nullptr);
  }

 private:
  Job* first_ = nullptr;
};

thread_local Job* current_job = nullptr;
thread_local bool is_pool_thread = false;
std::atomic<Poll> poll_function{nullptr};

bool user_wants_to_stop() {
  const Poll poll = poll_function;
  return poll != nullptr && poll();
}

void Job::work(std::size_t slot) {
  current_job = this;
  try {
    for (std::size_t i = next++; i < n && !cancelled; i = next++) {
      task(i, slot);
      check_interrupt();
    }
  } catch (...) {
    cancel(std::current_exception());
  }
  current_job = nullptr;
}

/// The worker threads and the queue of jobs. A finished job leaves the queue, so it never waits for
/// threads that are busy with another one.
class Pool {
 public:
  void call_helpers(Job& job, std::size_t n_helpers) {
    const std::lock_guard lock(mutex_);
    while (n_threads_ < n_helpers && start_thread()) {
    }
    job.n_requested = n_helpers;
    queue_.push(job);
    has_jobs_ = true;
    for (std::size_t i = 0; i < n_helpers; ++i) wake_.notify_one();
  }

  void wait_for(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      queue_.remove(job);
      has_jobs_ = !queue_.empty();
    }
    wait_awake([&] { return job.n_helpers == 0; });
    std::unique_lock lock(job.mutex);
    while (!job.idle.wait_for(lock, kPollEvery, [&] { return job.n_helpers == 0; })) {
      lock.unlock();
      if (!job.cancelled && user_wants_to_stop())
        job.cancel(std::make_exception_ptr(Interrupted()));
      lock.lock();
    }
  }

 private:
  /// A job, and the slot in which a thread works on it.
  struct Place {
    Job* job;
    std::size_t slot;
  };

  /// False if the system provides no more threads; the existing ones then do the work.
  bool start_thread() {
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::exception&) {
      return false;
    }
    ++n_threads_;
    return true;
  }

  [[noreturn]] void run() {
    is_pool_thread = true;
    for (;;) {
      const Place place = take();
      place.job->work(place.slot);
      const std::lock_guard lock(place.job->mutex);
      --place.job->n_helpers;
      place.job->idle.notify_all();
    }
  }

  Place take() {
    wait_awake([&] { return has_jobs_.load(); });
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return !queue_.empty(); });
    Job& job = queue_.first();
    const Place place{.job = &job, .slot = ++job.n_came};
    if (job.n_came == job.n_requested) queue_.remove(job);
    has_jobs_ = !queue_.empty();
    // Under the pool's lock, so that wait_for sees either the job in the queue or its running
    // helper.
    const std::lock_guard job_lock(job.mutex);
    ++job.n_helpers;
    return place;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  JobQueue queue_;
  std::atomic<bool> has_jobs_{false};
  std::size_t n_threads_ = 0;
};

std::atomic<Pool*> the_pool{nullptr};

/// The pool is never destroyed: its threads sleep until the process ends. A forked child has none
/// of the threads, so it leaves the parent's pool alone and makes its own when it needs one.
/// (Windows does not fork.)
Pool& pool() {
  static const bool registered = [] {
    the_pool = std::make_unique<Pool>().release();
#if !defined(_WIN32)
    pthread_atfork(nullptr, nullptr, [] { the_pool = std::make_unique<Pool>().release(); });
#endif
    return true;
  }();
  static_cast<void>(registered);
  return *the_pool;
}

}  // namespace

void set_poll(Poll poll) { poll_function = poll; }

void check_interrupt() {
  if (current_job != nullptr && current_job->cancelled) throw Interrupted();
  if (is_pool_thread) return;
  thread_local Clock::time_point last_poll = Clock::now();
  const auto now = Clock::now();
  if (now - last_poll < kPollEvery) return;
  last_poll = now;
  if (user_wants_to_stop()) throw Interrupted();
}

void parallel_for(std::size_t n, int n_threads,
                  const std::function<void(std::size_t, std::size_t)>& task) {
  if (current_job != nullptr) {  // nested: the other threads are busy already
    for (std::size_t i = 0; i < n; ++i) task(i, 0);
    return;
  }
  Job job(n, task);
  const std::size_t n_helpers = std::min(n, static_cast<std::size_t>(std::max(n_threads, 1))) -
                                static_cast<std::size_t>(n > 0);
  if (n_helpers > 0) pool().call_helpers(job, n_helpers);
  job.work(0);
  if (n_helpers > 0) pool().wait_for(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace abcgbm
