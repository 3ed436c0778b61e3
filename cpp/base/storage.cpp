#include "base/storage.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/large_pages.hpp"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#endif

namespace abcgbm {
namespace {

constexpr std::align_val_t kCacheLineBytes{64};

void* new_memory(std::size_t bytes) {
  void* memory = ::operator new(bytes, kCacheLineBytes);
  ask_for_large_pages(memory, bytes);
  return memory;
}

[[noreturn]] void fail(int code, const std::string& folder, const std::string& doing) {
  throw std::system_error(code, std::generic_category(),
                          doing + " in the folder '" + folder + "' for large arrays");
}

#if defined(_WIN32)

void* map_file(const std::string& folder, std::size_t) {
  fail(ENOTSUP, folder, "scratch files (not supported on Windows)");
}

void unmap(void*, std::size_t) noexcept {}

#else

/// Closes the file at the end of its scope; a mapping does not need it.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Opens a file and removes its name at once, for systems without O_TMPFILE.
int open_unlinked(const std::string& folder) {
  std::string path = folder + "/.abcgbm-scratch-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return fd;
  unlink(path.c_str());
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

/// Opens an empty file without a name; negative, with errno, on failure.
int open_scratch(const std::string& folder) {
#if defined(O_TMPFILE)
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool is_known = fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL);
  if (is_known) return fd;
#endif
  return open_unlinked(folder);
}

/// Allocates the blocks of the file: on a full disk, writing to the mapping of a sparse file would
/// raise SIGBUS. Returns the error, or 0.
int reserve(int fd, std::size_t bytes) {
  const auto length = static_cast<off_t>(bytes);
#if defined(__APPLE__)
  fstore_t request{F_ALLOCATEALL, F_PEOFPOSMODE, 0, length, 0};
  if (fcntl(fd, F_PREALLOCATE, &request) != 0 || ftruncate(fd, length) != 0) return errno;
  return 0;
#else
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, length);
  return error;
#endif
}

/// MAP_SHARED: under memory pressure, pages go to the file, not to swap.
void* map_file(const std::string& folder, std::size_t bytes) {
  const std::string doing = "reserving " + std::to_string(bytes) + " bytes";
  const int fd = open_scratch(folder);
  if (fd < 0) fail(errno, folder, doing);
  const OpenFile file(fd);
  const int error = reserve(file.fd(), bytes);
  if (error != 0) fail(error, folder, doing);
  void* array = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (array != MAP_FAILED) return array;
  if (errno == ENOMEM) throw std::bad_alloc();  // the address space is exhausted, not the disk
  fail(errno, folder, doing);
}

void unmap(void* array, std::size_t bytes) noexcept { munmap(array, bytes); }

#endif

}  // namespace

/// Makes the path absolute, as the process may change its working directory, and creates a file, so
/// that an unusable folder is an error before training starts.
Storage::Storage(const std::string& folder, std::size_t min_bytes) {
  std::error_code none;
  const std::filesystem::path path = std::filesystem::absolute(folder, none);
  const std::string absolute = folder.empty() || none ? folder : path.string();
  folder_ = std::make_shared<const Folder>(Folder{absolute, std::max<std::size_t>(1, min_bytes)});
  unmap(map_file(absolute, kMinBytes), kMinBytes);
}

void* Storage::allocate(std::size_t bytes) const {
  return is_file(bytes) ? map_file(folder_->path, bytes) : new_memory(bytes);
}

void Storage::deallocate(void* array, std::size_t bytes) const noexcept {
  if (is_file(bytes)) return unmap(array, bytes);
  ::operator delete(array, kCacheLineBytes);
}

}  // namespace abcgbm
