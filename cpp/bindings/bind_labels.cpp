#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/fill.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/communicator.hpp"
#include "data/labels.hpp"
#include "data/reductions.hpp"

namespace abcgbm {
namespace {

/// Weights may have any stride, so that one number can stand for all rows.
using Weights = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::device::cpu>;

constexpr std::int64_t kMaxWeight = std::int64_t{1} << 40;

void check_labels(const Labels& labels) {
  require(labels.n_rows() > 0 || !labels.communicator().is_single(), "y: at least 1 row");
  require(labels.n_rows() < (std::size_t{1} << 32), "y: at most 2^32 - 1 rows");
  require(labels.n_classes >= 2, "n_classes: at least 2");
  require(labels.unit > 0.0 && std::isfinite(labels.unit), "unit: a number above 0");
  for (const std::int32_t k : labels.y) {
    require(k >= 0 && k < labels.n_classes, "y: 0 to n_classes - 1");
  }
}

/// Weights that are all 1 need no array.
void set_weights(Labels& labels, const Weights& given) {
  require(given.size() == labels.n_rows(), "weight: one for each row");
  const auto weight = given.view();
  bool are_ones = true;
  for (std::size_t i = 0; i < labels.n_rows(); ++i) {
    require(weight(i) >= 1, "weight: at least 1");
    require(weight(i) <= kMaxWeight, "weight: the sum is at most 2^40");
    are_ones &= weight(i) == 1;
  }
  if (!are_ones) {
    labels.weight = LargeVector<std::int64_t>(labels.n_rows(), storage_of(labels.y));
    for (std::size_t i = 0; i < labels.n_rows(); ++i) labels.weight[i] = weight(i);
  }
  std::int64_t total = total_weight(labels.weights(), labels.n_rows());
  labels.communicator().allreduce_sum(total);
  require(total <= kMaxWeight, "weight: the sum is at most 2^40");
  labels.total_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total)));
}

using Numbers = std::optional<Vector<std::uint64_t>>;

std::unique_ptr<Shard> make_shard(nb::object communicator, const Numbers& row_id) {
  auto shard = std::make_unique<Shard>();
  shard->communicator = std::make_shared<PythonCommunicator>(std::move(communicator));
  if (row_id) shard->row_id = copied(span_of(*row_id), Storage());
  return shard;
}

void set_shard(Labels& labels, const Shard* shard) {
  if (shard != nullptr) labels.shard = *shard;
  auto max_rows = static_cast<double>(labels.n_rows());
  labels.communicator().allreduce_max(std::span(&max_rows, 1));
  labels.shard.max_rows = static_cast<std::size_t>(max_rows);
  auto total_rows = static_cast<std::int64_t>(labels.n_rows());
  labels.communicator().allreduce_sum(total_rows);
  labels.shard.total_rows = static_cast<std::size_t>(total_rows);
  const auto& row_id = labels.shard.row_id;
  require(row_id.empty() || row_id.size() == labels.n_rows(), "shard: one row_id for each row");
}

std::unique_ptr<Labels> make_labels(const Vector<std::int32_t>& y, const Weights& weight,
                                    double unit, int n_classes, const Storage& storage,
                                    const Shard* shard) {
  auto labels = std::make_unique<Labels>(Labels{.y = copied(span_of(y), storage),
                                                .weight = {},
                                                .unit = unit,
                                                .n_classes = n_classes,
                                                .total_bits = 0,
                                                .shard = {}});
  set_shard(*labels, shard);
  check_labels(*labels);
  set_weights(*labels, weight);
  return labels;
}

}  // namespace

void bind_labels(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Shard>(m, "Shard", "The shard of the rows that a rank holds.")
      .def(nb::new_(&make_shard), "communicator"_a, "row_id"_a.noconvert() = nb::none(),
           "The communicator has allreduce, reduce_scatter and allgather; row_id numbers the rows "
           "among all ranks, for random draws.");
  nb::class_<Labels>(m, "Labels",
                     "Class numbers and weights of rows; weights are multiples of the unit.")
      .def(nb::new_(&make_labels), "y"_a.noconvert(), "weight"_a.noconvert(), "unit"_a,
           "n_classes"_a, "storage"_a = Storage(), "shard"_a = nb::none());
}

}  // namespace abcgbm
