// Allocations that fail on demand, for tests. These operators replace those of the C++ library in
// the module _bench only.
#include "bench/failing_new.hpp"

#include <cstdlib>
#include <new>

namespace abcgbm {
namespace {

thread_local bool fails = false;

}  // namespace

FailingNew::FailingNew() { fails = true; }
FailingNew::~FailingNew() { fails = false; }
bool allocation_fails() { return fails; }

}  // namespace abcgbm

[[gnu::visibility("default")]] void* operator new(std::size_t size) {
  void* memory = abcgbm::allocation_fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::visibility("default")]] void operator delete(void* memory) noexcept { std::free(memory); }

[[gnu::visibility("default")]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
