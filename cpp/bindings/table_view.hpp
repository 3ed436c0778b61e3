// NumPy tables of doubles.
#pragma once

#include "bindings/arrays.hpp"
#include "data/binning.hpp"

namespace abcgbm {

/// With any strides.
using Table = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

inline TableView table_view(const Table& table) {
  return {.data = table.data(),
          .n_rows = table.shape(0),
          .n_features = table.shape(1),
          .row_stride = table.stride(0),
          .column_stride = table.stride(1)};
}

}  // namespace abcgbm
