// Allocations that fail when a test wants them to.
#pragma once

namespace abcgbm {

/// As long as this lives no allocation of this thread succeeds.
class FailingNew {
 public:
  FailingNew();
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
};

bool allocation_fails();

}  // namespace abcgbm
