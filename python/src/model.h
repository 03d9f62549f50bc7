// A model as Python holds it.
#pragma once
#include "python/src/parameters.h"
#include "tasks/training/model.h"

namespace reel::python {

struct PyModel {
  ModelShape shape;
  DType dtype;
  std::uint64_t seed;  // of the initial values and of dropout
  Model model;

  /// The states before the first step, of all cells from bottom to top.
  Tensors initial(std::int64_t batch) const {
    Tensors all;
    for (const auto& cell : model.cells()) {
      const Tensors some = cell->recurrent() ? cell->initial(batch) : Tensors();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
};

}  // namespace reel::python
