// Where large arrays are allocated: in memory or, for data larger than memory, in scratch files.
//
// There is no global setting. Code that creates arrays receives a Storage; code that computes
// arrays from others uses the storage of those (`storage_of`).
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace abcgbm {

/// Memory or, if a folder is given, mapped files in it for arrays of at least `min_bytes`. A file
/// is unlinked before it is used, so nothing is left behind however the process ends, and its
/// blocks are allocated at once, so that a full disk is an error instead of a signal later. Copies
/// share the folder.
class Storage {
 public:
  static constexpr std::size_t kMinBytes = std::size_t{1} << 20;

  Storage() = default;
  /// Throws std::system_error if no scratch file can be created there.
  explicit Storage(const std::string& folder, std::size_t min_bytes = kMinBytes);

  /// Aligned to a cache line. Throws std::bad_alloc if there is no memory, or std::system_error
  /// with the folder and the size if there is no disk space.
  void* allocate(std::size_t bytes) const;
  void deallocate(void* array, std::size_t bytes) const noexcept;

  /// Whether an array of this size is a file, which is zero-filled.
  bool is_file(std::size_t bytes) const {
    return folder_ != nullptr && bytes >= folder_->min_bytes;
  }
  bool operator==(const Storage&) const = default;

 private:
  struct Folder {
    std::string path;
    std::size_t min_bytes;
  };
  std::shared_ptr<const Folder> folder_;
};

/// Leaves elements uninitialised unless a value is given, so that a file is not written twice: code
/// that creates n of them must set them all.
template <class T>
class StorageAllocator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard's names
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  // NOLINTEND(readability-identifier-naming)

  StorageAllocator() = default;
  StorageAllocator(Storage storage) : storage_(std::move(storage)) {}
  template <class U>
  explicit StorageAllocator(const StorageAllocator<U>& other) : storage_(other.storage()) {}

  T* allocate(std::size_t n) { return static_cast<T*>(storage_.allocate(n * sizeof(T))); }
  void deallocate(T* array, std::size_t n) noexcept { storage_.deallocate(array, n * sizeof(T)); }

  template <class U>
  void construct(U* at) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Given>
  void construct(U* at, Given&&... given) {
    std::construct_at(at, std::forward<Given>(given)...);
  }

  const Storage& storage() const { return storage_; }
  bool operator==(const StorageAllocator&) const = default;

 private:
  Storage storage_;
};

/// An array of at least one value per row. Moves and copies keep its storage.
template <class T>
using LargeVector = std::vector<T, StorageAllocator<T>>;

/// The storage of an array.
template <class T>
Storage storage_of(const LargeVector<T>& array) {
  return array.get_allocator().storage();
}

}  // namespace abcgbm
