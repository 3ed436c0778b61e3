// Allocations that fail on demand, for tests.
#pragma once

namespace abcgbm {

/// For its lifetime every allocation of this thread fails.
class FailingNew {
 public:
  FailingNew();
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
};

bool allocation_fails();

}  // namespace abcgbm
