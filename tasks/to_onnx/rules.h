// The rules by which ops are written, in parts: arithmetic of complex numbers as pairs, moves of elements, products and
// reductions. ops.cpp has the table.
#pragma once
#include <functional>

#include "tasks/to_onnx/ops.h"

namespace reel::onnx_rules {

using Name = std::string;
using Dims = std::vector<std::int64_t>;

inline DType real_dtype(const OnnxCall& c) { return real_of(c.specs[0].dtype); }
/// The extent of an axis of the result that is not the batch.
inline std::int64_t own_extent(const OnnxCall& c, std::int64_t axis) {
  const auto i = static_cast<int>(axis);
  if (c.shape.here[i] != c.shape.there[i]) c.refuse("acts along the batch, whose size a file leaves open");
  return c.shape.here[i];
}
inline Name number(OnnxCall& c, double value) { return c.graph.scalar(value, real_dtype(c)); }

// ---- arithmetic of parts, where an empty name is 0 ---------------------------------------------------------------

inline Name add(OnnxCall& c, const Name& a, const Name& b) {
  return a.empty() ? b : b.empty() ? a : c.graph.node("Add", {a, b});
}
inline Name subtract(OnnxCall& c, const Name& a, const Name& b) {
  return b.empty() ? a : a.empty() ? c.graph.node("Neg", {b}) : c.graph.node("Sub", {a, b});
}
inline Name multiply(OnnxCall& c, const Name& a, const Name& b) {
  return a.empty() || b.empty() ? "" : c.graph.node("Mul", {a, b});
}
inline OnnxValue add(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) {
  return {add(c, a.re, b.re), add(c, a.im, b.im)};
}
/// a b, by a product of real numbers: that of numbers, or of matrices.
template <class F>
inline OnnxValue product(OnnxCall& c, const OnnxValue& a, const OnnxValue& b, const F& times) {
  const auto part = [&](const Name& x, const Name& y) { return x.empty() || y.empty() ? Name() : times(x, y); };
  return {subtract(c, part(a.re, b.re), part(a.im, b.im)), add(c, part(a.re, b.im), part(a.im, b.re))};
}
inline OnnxValue multiply(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) {
  return product(c, a, b, [&](const Name& x, const Name& y) { return c.graph.node("Mul", {x, y}); });
}
inline Name size(OnnxCall& c, const OnnxValue& x) {
  if (x.im.empty()) return c.graph.node("Abs", {x.re});
  return c.graph.node("Sqrt", {add(c, multiply(c, x.re, x.re), multiply(c, x.im, x.im))});
}
/// a / b elementwise.
inline OnnxValue divide(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) {
  if (b.im.empty()) return {c.graph.node("Div", {a.re, b.re}), a.im.empty() ? "" : c.graph.node("Div", {a.im, b.re})};
  const OnnxValue top = multiply(c, a, {b.re, c.graph.node("Neg", {b.im})});
  const Name below = add(c, multiply(c, b.re, b.re), multiply(c, b.im, b.im));
  return {c.graph.node("Div", {top.re, below}), c.graph.node("Div", {top.im, below})};
}

// ---- moves.cpp ---------------------------------------------------------------------------------------------------

/// An axis of x's own elements, in another order.
Name gathered(OnnxCall& c, const Name& x, std::int64_t axis, const std::function<std::int64_t(std::int64_t)>& from);
Name exchanged(OnnxCall& c, const Name& x);
Name sliced(OnnxCall& c, const Name& x, std::int64_t axis);
Name padded(OnnxCall& c, const Name& x);
Name reshaped(OnnxCall& c, const Name& x);
Name expanded(OnnxCall& c, const Name& x);
/// A constant whose shape depends on the batch.
OnnxValue full(OnnxCall& c);
OnnxValue joined(OnnxCall& c);

// ---- products.cpp ------------------------------------------------------------------------------------------------

OnnxValue matmul(OnnxCall& c);
/// The transform as a product with its matrix.
OnnxValue fft(OnnxCall& c);
Name sum(OnnxCall& c, const Name& x);
/// The largest or smallest elements, by a reduction of ONNX of this type.
Name extreme(OnnxCall& c, const Name& x, const char* type);
/// The first index of such an element along an axis.
Name place_of(OnnxCall& c, const Name& x, const char* type);
OnnxValue norm(OnnxCall& c);
Name standardized(OnnxCall& c, const Name& x);

}  // namespace reel::onnx_rules
