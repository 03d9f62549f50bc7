// The table behind the op tests: for each op of the registry, calls of it with inputs it should be tried on.
#pragma once
#include "tests/check.h"

namespace reel::test {

struct OpCase {
  std::string op;  // name in the registry
  TensorFunction call;
  std::function<Tensors(DType)> inputs;  // for the dtype under test
  std::vector<DType> dtypes;             // that the op takes
};

const std::vector<OpCase>& op_cases();

}  // namespace reel::test
