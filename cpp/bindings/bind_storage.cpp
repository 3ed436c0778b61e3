#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "base/storage.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace abcgbm {

void bind_storage(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Storage>(
      m, "Storage",
      "Where large arrays are allocated: in memory, or in unnamed scratch files of a "
      "folder.")
      .def(
          "__init__",
          [](Storage* self, const std::optional<std::string>& folder, std::size_t min_bytes) {
            require(min_bytes >= 1, "min_bytes: at least 1");
            new (self) Storage(folder ? Storage(*folder, min_bytes) : Storage());
          },
          "folder"_a = nb::none(), "min_bytes"_a = Storage::kMinBytes,
          "Arrays below min_bytes stay in memory. OSError if the folder is not writable.");
}

}  // namespace abcgbm
