#include "bindings/communicator.hpp"

#include <nanobind/ndarray.h>

#include <cstring>
#include <utility>

#include "bindings/unlocked.hpp"

namespace abcgbm {

namespace nb = nanobind;

namespace {

template <class T>
nb::object view_of(std::span<T> values) {
  const nb::ndarray<nb::numpy, T, nb::ndim<1>> view(values.data(), {values.size()}, nb::none());
  return nb::cast(view, nb::rv_policy::reference);
}

std::size_t size_of(const nb::object& communicator, const char* name) {
  return nb::cast<std::size_t>(communicator.attr(name));
}

}  // namespace

PythonCommunicator::PythonCommunicator(nb::object communicator)
    : communicator_(std::move(communicator)),
      rank_(size_of(communicator_, "rank")),
      n_ranks_(size_of(communicator_, "n_ranks")),
      min_scatter_bytes_(size_of(communicator_, "min_scatter_bytes")) {}

template <class T>
void PythonCommunicator::allreduce(std::span<T> values, const char* op) const {
  Unlocked::call_python([&] { communicator_.attr("allreduce")(view_of(values), op); });
}

template <class T>
void PythonCommunicator::reduce_scatter(std::span<T> values, Ends ends) const {
  Unlocked::call_python([&] {
    std::vector<std::int64_t> numbers(ends.begin(), ends.end());
    communicator_.attr("reduce_scatter")(view_of(values), view_of(std::span(numbers)), "sum");
  });
}

void PythonCommunicator::reduce_scatter_sum(std::span<std::int64_t> values, Ends ends) const {
  reduce_scatter(values, ends);
}

void PythonCommunicator::reduce_scatter_sum(std::span<std::int32_t> values, Ends ends) const {
  reduce_scatter(values, ends);
}

std::vector<Communicator::Values> PythonCommunicator::allgather(const Values& values) const {
  std::vector<Values> of_ranks;
  Unlocked::call_python([&] {
    const nb::bytes packed(values.data(), values.size() * sizeof(std::int64_t));
    for (const nb::handle item : communicator_.attr("allgather")(packed)) {
      const auto bytes = nb::cast<nb::bytes>(item);
      Values& of_rank = of_ranks.emplace_back(bytes.size() / sizeof(std::int64_t));
      if (!of_rank.empty()) std::memcpy(of_rank.data(), bytes.data(), bytes.size());
    }
  });
  return of_ranks;
}

}  // namespace abcgbm
