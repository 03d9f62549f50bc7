// Arrays of other libraries as tensors, and the other way: shared where memory allows, by DLPack.
#pragma once
#include <nanobind/ndarray.h>

#include "python/src/python.h"

namespace reel::python {

nb::dlpack::dtype dlpack_dtype(DType dtype);

/// An array of another library, and the function that got it, for error messages.
struct Source {
  nb::handle x;
  const char* function;
};

/// Shares the array's memory if it can be written, is contiguous, aligned, and on the host; copies it otherwise.
Tensor imported(const Source& source, bool copy);

/// A tensor of PyTorch that requires a gradient would lose it here.
void refuse_gradient(const Source& source);

}  // namespace reel::python
