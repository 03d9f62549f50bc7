// Products, transforms, reductions.
#include <cmath>
#include <numbers>

#include "ops/ops.h"
#include "tasks/to_onnx/rules.h"

namespace reel::onnx_rules {

namespace {
/// x y of real matrices, with the axes of each turned as the call wants it.
Name matrix_product(OnnxCall& c, const Name& x, const Name& y) {
  const std::int64_t turn_x = c.integer("transpose_a"), turn_y = c.integer("transpose_b");
  if (c.specs[0].shape.rank() == 2 && c.specs[1].shape.rank() == 2)
    return c.graph.node("Gemm", {x, y}, {{"transA", turn_x}, {"transB", turn_y}});
  const auto turned = [&](const Name& a, const Spec& spec, bool turn) {
    if (!turn) return a;
    Dims order;
    for (std::int64_t i = 0; i < spec.shape.rank(); ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return c.graph.node("Transpose", {a}, {{"perm", order}});
  };
  return c.graph.node("MatMul", {turned(x, c.specs[0], turn_x != 0), turned(y, c.specs[1], turn_y != 0)});
}
}  // namespace
OnnxValue matmul(OnnxCall& c) {
  const auto conjugated = [&](const OnnxValue& v, const char* flag) {
    return c.integer(flag) == 0 || v.im.empty() ? v : OnnxValue{v.re, c.graph.node("Neg", {v.im})};
  };
  return product(c, conjugated(c.in[0], "conj_a"), conjugated(c.in[1], "conj_b"),
                 [&](const Name& x, const Name& y) { return matrix_product(c, x, y); });
}
OnnxValue fft(OnnxCall& c) {
  const std::int64_t n = own_extent(c, c.result.shape.rank() - 1);
  const double scale = c.number("scale"), sign = c.integer("inverse") != 0 ? 1 : -1;
  std::vector<double> re, im;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      re.push_back(scale * std::cos(angle));
      im.push_back(scale * sign * std::sin(angle));
    }
  }
  const auto matrix = [&](const std::vector<double>& values) {
    return c.graph.constant(cast(Tensor::from(std::span<const double>(values), {n, n}), real_dtype(c)));
  };
  return product(c, c.in[0], {matrix(re), matrix(im)}, [&](const Name& x, const Name& y) {
    return c.graph.node("MatMul", {x, y});
  });
}
namespace {
/// The axes over which a call reduces: where its result has extent 1, or no such axis.
Dims reduced_axes(const OnnxCall& c) {
  const Shape &from = c.specs[0].shape, &to = c.result.shape;
  const int missing = from.rank() - to.rank();
  Dims axes;
  for (int i = 0; i < from.rank(); ++i)
    if (i < missing || (to[i - missing] == 1 && from[i] != 1)) axes.push_back(i);
  return axes;
}
/// Leaves out the leading axes that the result lacks.
Name reduced(OnnxCall& c, const Name& y) {
  return c.result.shape.rank() < c.specs[0].shape.rank() ? reshaped(c, y) : y;
}
}  // namespace
Name sum(OnnxCall& c, const Name& x) {
  const Dims axes = reduced_axes(c);
  return axes.empty() ? reduced(c, x) : reduced(c, c.graph.node("ReduceSum", {x, c.graph.integers(axes)}));
}
Name extreme(OnnxCall& c, const Name& x, const char* type) {
  const Dims axes = reduced_axes(c);
  return axes.empty() ? reduced(c, x) : reduced(c, c.graph.node(type, {x}, {{"axes", axes}}));
}
Name place_of(OnnxCall& c, const Name& x, const char* type) {
  const Name place = c.graph.node(type, {x}, {{"axis", c.integer("axis")}, {"keepdims", 0}});
  return c.graph.node("Cast", {place}, {{"to", onnx_number(OnnxType::i32)}});
}
/// m (sum (|x| / m)^p)^(1/p) with m the largest |x|, so that no power overflows.
OnnxValue norm(OnnxCall& c) {
  const double p = c.number("p");
  const Name x = size(c, c.in[0]);
  const Name most = c.graph.node("ReduceMax", {x}, {{"axes", Dims{-1}}});
  const Name divisor =
      c.graph.node("Where", {c.graph.node("Equal", {most, number(c, 0)}), number(c, 1), most});  // of zeros: 0 / 1
  const Name scaled = c.graph.node("Pow", {c.graph.node("Div", {x, divisor}), number(c, p)});
  const Name total = c.graph.node("ReduceSum", {scaled, c.graph.integers({-1})});
  const Name root = multiply(c, c.graph.node("Pow", {total, number(c, 1 / p)}), divisor);
  return {c.graph.node("Squeeze", {root, c.graph.integers({-1})})};
}
Name standardized(OnnxCall& c, const Name& x) {
  const std::int64_t n = own_extent(c, c.result.shape.rank() - 1);
  const Name ones = c.graph.constant(Tensor::full({n}, 1, c.result.dtype));
  return c.graph.node("LayerNormalization", {x, ones}, {{"axis", -1}, {"epsilon", c.number("epsilon")}});
}

}  // namespace reel::onnx_rules
