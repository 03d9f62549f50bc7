// The table behind the op tests: for each op of the registry, and for functions made of several ops, calls with inputs
// they should be tried on. A family of ops has a file of rows in tests/ops/cases/.
#pragma once
#include "tests/support/check.h"

namespace reel::test {

/// The error of a value against an independent definition, relative as difference() is: in and out are f64 or c128.
using ValueCheck = std::function<double(const Tensors& in, const Tensor& out)>;

struct OpCase {
  std::string op;  // name in the registry, or of a function made of several ops
  TensorFunction call;
  std::function<Tensors(DType)> inputs;  // for the dtype under test
  std::vector<DType> dtypes;             // that the op takes
  ValueCheck value = {};                 // every op has a case with one
  double tolerance = 1e-8;               // of gradient and second gradient against central differences
  double single = 2e-6;                  // of single against double precision
  bool unique = true;                    // if not, single precision may come to another of the values that are right
};

using Cases = std::vector<OpCase>;

/// Announces a family's rows; once a file, at namespace scope.
bool add_cases(void (*fill)(Cases&));
const Cases& op_cases();

// The dtypes that ops take, by kind.
inline const std::vector<DType> reals{DType::f32, DType::f64}, fields{DType::f32, DType::f64, DType::c64, DType::c128},
    complexes{DType::c64, DType::c128}, ordered{DType::f32, DType::f64, DType::i32},
    all_numbers{DType::f32, DType::f64, DType::c64, DType::c128, DType::i32},
    every(std::begin(all_dtypes), std::end(all_dtypes));

/// One random tensor; complex ones lie in the square, integers are drawn from -8..8.
Tensor input(const Shape& shape, std::uint64_t seed, DType dtype, double low = -2, double high = 2);
/// i32 indices below n.
Tensor indices(const Shape& shape, std::int64_t n);

using Complex = std::complex<double>;
/// Values that are f of each element.
ValueCheck pointwise(const std::function<Complex(Complex)>& f);
/// Values that are f of both elements, broadcast.
ValueCheck pointwise(const std::function<Complex(Complex, Complex)>& f);
/// Values given as a list of elements made from the inputs' elements.
ValueCheck listed(const std::function<std::vector<Complex>(const std::vector<std::vector<Complex>>& in)>& f);

}  // namespace reel::test
