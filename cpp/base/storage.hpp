// Where large arrays lie: in memory or, if they do not fit there, in scratch files of a folder.
//
// Nothing global says where: whoever makes arrays from nothing is given a storage, and what is
// computed from arrays lies where these do (`storage_of`).
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace abcgbm {

/// Plain memory, unless there is a folder: then arrays of at least `least_bytes` are mapped files
/// of it. A file loses its name before it is used, so nothing is left behind, however the process
/// ends; and has all of its room, so a full disk is an error and no signal later. Copies are of the
/// same folder.
class Storage {
 public:
  static constexpr std::size_t kMinBytes = std::size_t{1} << 20;

  Storage() = default;
  /// Throws std::system_error if no scratch file can be made there.
  explicit Storage(const std::string& folder, std::size_t min_bytes = kMinBytes);

  /// Begins where a cache line does. Throws std::bad_alloc without memory, std::system_error, which
  /// names the folder and the bytes, without room for a file.
  void* allocate(std::size_t bytes) const;
  void deallocate(void* array, std::size_t bytes) const noexcept;

  /// Whether an array of so many bytes is a file: it is then zeros before anything is written.
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

/// Values that are made without being given one are not set, so that a file is not written twice:
/// whoever asks for n of them sets them all.
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

/// An array as large as the rows. It takes its storage with it where it is moved or copied.
template <class T>
using LargeVector = std::vector<T, StorageAllocator<T>>;

/// Where an array lies.
template <class T>
Storage storage_of(const LargeVector<T>& array) {
  return array.get_allocator().storage();
}

}  // namespace abcgbm
