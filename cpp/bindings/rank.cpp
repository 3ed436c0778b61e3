#include "bindings/rank.hpp"

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

std::size_t size_of(const nb::object& reducer, const char* name) {
  return nb::cast<std::size_t>(reducer.attr(name));
}

}  // namespace

PythonRank::PythonRank(nb::object reducer)
    : reducer_(std::move(reducer)),
      rank_(size_of(reducer_, "rank")),
      n_ranks_(size_of(reducer_, "n_ranks")),
      scatters_from_(size_of(reducer_, "scatters_from")) {}

template <class T>
void PythonRank::reduce(const char* method, std::span<T> values) const {
  Unlocked::call_python([&] { reducer_.attr(method)(view_of(values)); });
}

template <class T>
void PythonRank::scatter_to(std::span<T> values, Ends ends) const {
  Unlocked::call_python([&] {
    std::vector<std::int64_t> numbers(ends.begin(), ends.end());
    reducer_.attr("reduce_scatter")("sum", view_of(values), view_of(std::span(numbers)));
  });
}

void PythonRank::scatter(std::span<std::int64_t> values, Ends ends) const {
  scatter_to(values, ends);
}

void PythonRank::scatter(std::span<std::int32_t> values, Ends ends) const {
  scatter_to(values, ends);
}

std::vector<Reducer::Values> PythonRank::gather(const Values& values) const {
  std::vector<Values> of_ranks;
  Unlocked::call_python([&] {
    const nb::bytes packed(values.data(), values.size() * sizeof(std::int64_t));
    for (const nb::handle item : reducer_.attr("gather")(packed)) {
      const auto bytes = nb::cast<nb::bytes>(item);
      Values& of_rank = of_ranks.emplace_back(bytes.size() / sizeof(std::int64_t));
      if (!of_rank.empty()) std::memcpy(of_rank.data(), bytes.data(), bytes.size());
    }
  });
  return of_ranks;
}

}  // namespace abcgbm
