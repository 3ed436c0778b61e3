// What trees are grown for: a class, and the base class that it is compared with.
#pragma once

#include <cassert>

namespace abcgbm {

/// The class that the others are compared with, if there is one.
class BaseClass {
 public:
  BaseClass() = default;  // none
  explicit BaseClass(int k) : number_(k) {}

  bool exists() const { return number_ >= 0; }
  bool is(int k) const { return number_ == k; }
  int number() const {
    assert(exists());
    return number_;
  }
  int number_or(int other) const { return exists() ? number_ : other; }
  bool operator==(const BaseClass&) const = default;

 private:
  int number_ = -1;
};

/// What a shared tree has as its class.
inline constexpr int kAllClasses = -1;

/// What a tree is grown for: a class against its base class or, without one, against all others.
struct ClassPair {
  int tree_class = 0;
  BaseClass base;
};

}  // namespace abcgbm
