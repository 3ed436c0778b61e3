// The class of a tree, and the base class of ABC boosting.
#pragma once

#include <cassert>

namespace abcgbm {

/// The base class, if there is one: its score moves against the sum of the others.
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

/// The tree class of a multi-output tree.
inline constexpr int kAllClasses = -1;

/// The class that a tree is grown for, against its base class or, without one, against all others.
struct ClassPair {
  int tree_class = 0;
  BaseClass base;
};

}  // namespace abcgbm
