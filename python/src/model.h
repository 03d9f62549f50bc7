// A model as Python holds it.
#pragma once
#include "python/src/parameters.h"
#include "tasks/training/model.h"

namespace reel::python {

struct PyModel {
  ModelShape shape;
  ModelOptions options;
  DType dtype;
  std::uint64_t seed;  // of the initial values and of dropout
  Model model;
};

}  // namespace reel::python
