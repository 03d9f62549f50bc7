// Tensors as text. Tensor declares str(); how numbers look is nothing that the engine needs to know.
#include <cmath>
#include <complex>

#include "engine/core/tensor.h"

namespace reel {

namespace {

constexpr std::size_t line_length = 100;

template <class T>
std::string number(T x) {
  if constexpr (is_complex_type<T>)
    return fmt::format("{:.6g}{:+.6g}i", x.real(), x.imag());
  else if constexpr (std::is_same_v<T, bool>)
    return x ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return fmt::format("{}", x);
  else
    return std::isnan(x) ? "nan" : fmt::format("{:.6g}", x);  // a NaN's sign says nothing
}

/// How many elements are shown at each end of a long axis: of more axes fewer, so that a text has about a hundred
/// numbers.
std::int64_t shown(const Shape& shape) {
  if (shape.rank() <= 2 || shape.numel() <= 64) return 4;
  return shape.rank() == 3 ? 2 : 1;
}

/// The elements from `first` on, of the axes from `axis` on; each row has a line of its own if `lines`.
template <class T>
void print(const std::vector<T>& values, const Shape& shape, int axis, std::int64_t first, bool lines,
           std::string& out) {
  if (axis == shape.rank()) {
    out += number(values[static_cast<std::size_t>(first)]);
    return;
  }
  const std::int64_t n = shape[axis], step = shape.product(axis + 1, shape.rank()), ends = shown(shape);
  const bool breaks = lines && axis + 1 < shape.rank();
  const std::string next = breaks ? ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ') : ", ";
  out += "[";
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) out += next;
    if (i == ends && n > 2 * ends) {
      out += "..." + next;
      i = n - ends;
    }
    print(values, shape, axis + 1, first + i * step, lines, out);
  }
  out += "]";
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  if (!concrete()) return spec_.str() + " (abstract)";
  return dispatch(dtype(), [&]<class T>(std::type_identity<T>) {
    const std::vector<T> all = values<T>();
    std::string out = spec_.str() + " ";
    print(all, shape(), 0, 0, false, out);
    if (rank() < 2 || out.size() <= line_length) return out;
    out = spec_.str() + "\n";
    print(all, shape(), 0, 0, true, out);
    return out;
  });
}

}  // namespace reel
