#include "tasks/to_onnx/ops.h"

#include <cmath>
#include <functional>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/rotation.h"

namespace reel {

namespace {

using Name = std::string;
using Dims = std::vector<std::int64_t>;
using Rule = std::function<OnnxValue(OnnxCall&)>;

DType real_dtype(const OnnxCall& c) { return real_of(c.specs[0].dtype); }
Name number(OnnxCall& c, double value) { return c.graph.scalar(value, real_dtype(c)); }

// ---- arithmetic of parts, where an empty name is 0 ---------------------------------------------------------------

Name add(OnnxCall& c, const Name& a, const Name& b) {
  return a.empty() ? b : b.empty() ? a : c.graph.node("Add", {a, b});
}
Name subtract(OnnxCall& c, const Name& a, const Name& b) {
  return b.empty() ? a : a.empty() ? c.graph.node("Neg", {b}) : c.graph.node("Sub", {a, b});
}
Name multiply(OnnxCall& c, const Name& a, const Name& b) {
  return a.empty() || b.empty() ? "" : c.graph.node("Mul", {a, b});
}
OnnxValue add(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) { return {add(c, a.re, b.re), add(c, a.im, b.im)}; }
/// a b, by a product of real numbers: that of numbers, or of matrices.
template <class F>
OnnxValue product(OnnxCall& c, const OnnxValue& a, const OnnxValue& b, const F& times) {
  const auto part = [&](const Name& x, const Name& y) { return x.empty() || y.empty() ? Name() : times(x, y); };
  return {subtract(c, part(a.re, b.re), part(a.im, b.im)), add(c, part(a.re, b.im), part(a.im, b.re))};
}
OnnxValue multiply(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) {
  return product(c, a, b, [&](const Name& x, const Name& y) { return c.graph.node("Mul", {x, y}); });
}
Name size(OnnxCall& c, const OnnxValue& x) {
  if (x.im.empty()) return c.graph.node("Abs", {x.re});
  return c.graph.node("Sqrt", {add(c, multiply(c, x.re, x.re), multiply(c, x.im, x.im))});
}
/// a / b elementwise.
OnnxValue divide(OnnxCall& c, const OnnxValue& a, const OnnxValue& b) {
  if (b.im.empty()) return {c.graph.node("Div", {a.re, b.re}), a.im.empty() ? "" : c.graph.node("Div", {a.im, b.re})};
  const OnnxValue top = multiply(c, a, {b.re, c.graph.node("Neg", {b.im})});
  const Name below = add(c, multiply(c, b.re, b.re), multiply(c, b.im, b.im));
  return {c.graph.node("Div", {top.re, below}), c.graph.node("Div", {top.im, below})};
}

// ---- forms of rules ----------------------------------------------------------------------------------------------

/// The arguments of an op that takes real numbers alone.
std::vector<Name> real_arguments(const OnnxCall& c) {
  std::vector<Name> names;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (is_complex(c.specs[i].dtype)) c.refuse("takes complex numbers here, which it is not written for");
    names.push_back(c.in[i].re);
  }
  return names;
}
/// One node on real arguments.
Rule same(const char* type, const OnnxAttributes& attributes = {}) {
  return [=](OnnxCall& c) { return OnnxValue{c.graph.node(type, real_arguments(c), attributes)}; };
}
/// A formula of one real argument, or of two.
template <class F>
Rule real(const F& formula) {
  return [=](OnnxCall& c) {
    const std::vector<Name> x = real_arguments(c);
    if constexpr (std::is_invocable_v<F, OnnxCall&, Name>)
      return OnnxValue{formula(c, x.at(0))};
    else
      return OnnxValue{formula(c, x.at(0), x.at(1))};
  };
}
/// What moves elements, and so does the same to both parts of a complex number.
template <class F>
Rule parts(const F& move) {
  return [=](OnnxCall& c) {
    const OnnxValue& x = c.in[0];
    return OnnxValue{move(c, x.re), x.im.empty() ? "" : move(c, x.im)};
  };
}

// ---- moving elements ---------------------------------------------------------------------------------------------

/// An axis of x's own elements, in another order.
Name gathered(OnnxCall& c, const Name& x, std::int64_t axis, const std::function<std::int64_t(std::int64_t)>& from) {
  const std::int64_t n = c.specs[0].shape[static_cast<int>(axis)];
  Dims index;
  for (std::int64_t j = 0; j < n; ++j) index.push_back(from(j));
  return c.graph.node("Gather", {x, c.graph.integers(index)}, {{"axis", axis}});
}
Name exchanged(OnnxCall& c, const Name& x) {
  const std::int64_t last = c.specs[0].shape.rank() - 1, n = c.specs[0].shape[static_cast<int>(last)];
  const RotationLayer layer{c.integer("offset"), c.integer("distance")};
  return gathered(c, x, last, [&](std::int64_t j) { return layer.partner(j, n); });
}
Name sliced(OnnxCall& c, const Name& x, std::int64_t axis) {
  return c.graph.node("Slice", {x, c.graph.integers({c.integer("first")}), c.graph.integers({c.integer("last")}),
                                c.graph.integers({axis})});
}
Name padded(OnnxCall& c, const Name& x) {
  Dims pads(2 * static_cast<std::size_t>(c.result.shape.rank()));
  const auto axis = static_cast<std::size_t>(c.integer("axis"));
  pads[axis] = c.integer("before");
  pads[pads.size() / 2 + axis] = c.integer("after");
  return c.graph.node("Pad", {x, c.graph.integers(pads)});
}
Name reshaped(OnnxCall& c, const Name& x) {
  const auto& [here, there] = c.shape;
  Dims dims(here.begin(), here.end());
  int open = 0;
  for (int i = 0; i < here.rank(); ++i) {
    if (here[i] == there[i]) continue;
    dims[static_cast<std::size_t>(i)] = -1;
    ++open;
  }
  if (open > 1) c.refuse("makes a shape in which two extents depend on the batch");
  return c.graph.node("Reshape", {x, c.graph.integers(dims)});
}
/// The result's shape as a tensor.
Name shape_of_result(OnnxCall& c) {
  const auto& [here, there] = c.shape;
  std::vector<Name> pieces;
  Dims known;
  const auto finish = [&] {
    if (!known.empty()) pieces.push_back(c.graph.integers(known));
    known.clear();
  };
  for (int i = 0; i < here.rank(); ++i) {
    if (here[i] == there[i]) {
      known.push_back(here[i]);
      continue;
    }
    if (i > 0) c.refuse("stretches to a shape whose batch is not the first axis");
    finish();
    pieces.push_back(c.batch);
  }
  finish();
  return pieces.size() == 1 ? pieces[0] : c.graph.node("Concat", pieces, {{"axis", 0}});
}
Name expanded(OnnxCall& c, const Name& x) { return c.graph.node("Expand", {x, shape_of_result(c)}); }
/// A constant whose shape depends on the batch.
OnnxValue full(OnnxCall& c) {
  const std::vector<double>& value = c.attributes.at("value");
  const DType dtype = real_of(c.result.dtype);
  const auto part = [&](double number) {
    return c.graph.node("Expand", {c.graph.scalar(number, dtype), shape_of_result(c)});
  };
  return {part(value[0]), value[1] == 0 ? "" : part(value[1])};
}
OnnxValue joined(OnnxCall& c) {
  std::vector<Name> re, im;
  for (const OnnxValue& part : c.in) {
    re.push_back(part.re);
    if (is_complex(c.result.dtype)) im.push_back(imaginary(c.graph, part, real_of(c.result.dtype)));
  }
  const OnnxAttributes axis{{"axis", c.integer("axis")}};
  return {c.graph.node("Concat", re, axis), im.empty() ? "" : c.graph.node("Concat", im, axis)};
}

// ---- products and reductions -------------------------------------------------------------------------------------

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
OnnxValue matmul(OnnxCall& c) {
  const auto conjugated = [&](const OnnxValue& v, const char* flag) {
    return c.integer(flag) == 0 || v.im.empty() ? v : OnnxValue{v.re, c.graph.node("Neg", {v.im})};
  };
  return product(c, conjugated(c.in[0], "conj_a"), conjugated(c.in[1], "conj_b"),
                 [&](const Name& x, const Name& y) { return matrix_product(c, x, y); });
}
/// The transform as a product with its matrix.
OnnxValue fft(OnnxCall& c) {
  const std::int64_t n = c.result.shape[c.result.shape.rank() - 1];
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
Name sum(OnnxCall& c, const Name& x) {
  const Dims axes = reduced_axes(c);
  return axes.empty() ? reduced(c, x) : reduced(c, c.graph.node("ReduceSum", {x, c.graph.integers(axes)}));
}
Rule extreme(const char* type) {
  return real([=](OnnxCall& c, const Name& x) {
    const Dims axes = reduced_axes(c);
    return axes.empty() ? reduced(c, x) : reduced(c, c.graph.node(type, {x}, {{"axes", axes}}));
  });
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
  const std::int64_t n = c.result.shape[c.result.shape.rank() - 1];
  const Name ones = c.graph.constant(Tensor::full({n}, 1, c.result.dtype));
  return c.graph.node("LayerNormalization", {x, ones}, {{"axis", -1}, {"epsilon", c.number("epsilon")}});
}

// ---- elementwise -------------------------------------------------------------------------------------------------

OnnxValue affine(OnnxCall& c) {
  const auto [scale, shift] = c.node.attrs.as<Unary<Affine>>().f;
  const auto scaled = [&](const Name& x) {
    return x.empty() || scale == 1 ? x : scale == -1 ? c.graph.node("Neg", {x}) : multiply(c, x, number(c, scale));
  };
  const Name re = scaled(c.in[0].re);
  return {shift == 0 ? re : add(c, re, number(c, shift)), scaled(c.in[0].im)};
}
OnnxValue sign(OnnxCall& c) {
  const OnnxValue& x = c.in[0];
  if (x.im.empty()) return {c.graph.node("Sign", {x.re})};
  const Name length = size(c, x), zero = number(c, 0), is_zero = c.graph.node("Equal", {length, zero});
  const auto part = [&](const Name& a) {
    return c.graph.node("Where", {is_zero, zero, c.graph.node("Div", {a, length})});
  };
  return {part(x.re), part(x.im)};
}
OnnxValue where(OnnxCall& c) {
  const OnnxValue &a = c.in[1], &b = c.in[2];
  const DType dtype = real_of(c.result.dtype);
  const bool both = is_complex(c.result.dtype) && !(a.im.empty() && b.im.empty());
  const auto imaginary_part = [&](const OnnxValue& v) { return v.im.empty() ? c.graph.scalar(0, dtype) : v.im; };
  return {c.graph.node("Where", {c.in[0].re, a.re, b.re}),
          both ? c.graph.node("Where", {c.in[0].re, imaginary_part(a), imaginary_part(b)}) : ""};
}
OnnxValue cast(OnnxCall& c) {
  const DType from = c.specs[0].dtype, to = c.result.dtype;
  if (is_complex(from) && !is_differentiable(to)) c.refuse("casts complex numbers, which it is not written for");
  if (real_of(from) == real_of(to)) return {c.in[0].re, is_complex(to) ? c.in[0].im : ""};
  const auto part = [&](const Name& x) {
    return x.empty() ? x : c.graph.node("Cast", {x}, {{"to", onnx_number(onnx_type(real_of(to)))}});
  };
  return {part(c.in[0].re), is_complex(to) ? part(c.in[0].im) : ""};
}
/// Functors with parameters.
template <class F>
F parameters(const OnnxCall& c) {
  return c.node.attrs.as<Unary<F>>().f;
}

const std::map<std::string, Rule>& rules() {
  using C = OnnxCall&;
  using N = const Name&;
  static const std::map<std::string, Rule> table{
      // functions of one number
      {"abs", [](C c) { return OnnxValue{size(c, c.in[0])}; }},
      {"acos", same("Acos")},
      {"affine", affine},
      {"asin", same("Asin")},
      {"atan", same("Atan")},
      {"ceil", same("Ceil")},
      {"clamp", real([](C c, N x) {
         const auto f = parameters<Clamp>(c);
         return c.graph.node("Clip", {x, number(c, f.low), number(c, f.high)});
       })},
      {"conj",
       [](C c) {
         return OnnxValue{c.in[0].re, subtract(c, "", c.in[0].im)};
       }},
      {"cos", same("Cos")},
      {"cosh", same("Cosh")},
      {"elu", real([](C c, N x) {
         const Name below = c.graph.node("Sub", {c.graph.node("Exp", {x}), number(c, 1)});
         return c.graph.node("Where", {c.graph.node("Greater", {x, number(c, 0)}), x,
                                       multiply(c, below, number(c, parameters<Elu>(c).alpha))});
       })},
      {"erf", same("Erf")},
      {"exp", same("Exp")},
      {"expm1", real([](C c, N x) {
         return c.graph.node("Sub", {c.graph.node("Exp", {x}), number(c, 1)});
       })},
      {"floor", same("Floor")},
      {"gelu", real([](C c, N x) {
         const Name inner = c.graph.node("Erf", {multiply(c, x, number(c, 1 / std::numbers::sqrt2))});
         return multiply(c, multiply(c, x, number(c, 0.5)), add(c, inner, number(c, 1)));
       })},
      {"imag", [](C c) { return OnnxValue{imaginary(c.graph, c.in[0], real_dtype(c))}; }},
      {"is_inf", same("IsInf")},
      {"is_nan", same("IsNaN")},
      {"leaky_relu", real([](C c, N x) {
         const Name below = multiply(c, x, number(c, parameters<LeakyRelu>(c).slope));
         return c.graph.node("Where", {c.graph.node("Less", {x, number(c, 0)}), below, x});
       })},
      {"log", same("Log")},
      {"log1p", real([](C c, N x) { return c.graph.node("Log", {add(c, x, number(c, 1))}); })},
      {"logical_not", same("Not")},
      {"neg",
       [](C c) {
         return OnnxValue{c.graph.node("Neg", {c.in[0].re}), subtract(c, "", c.in[0].im)};
       }},
      {"power", real([](C c, N x) {
         return c.graph.node("Pow", {x, number(c, parameters<Power>(c).exponent)});
       })},
      {"reciprocal", same("Reciprocal")},
      {"relu", same("Relu")},
      {"round", same("Round")},
      {"rsqrt", real([](C c, N x) { return c.graph.node("Reciprocal", {c.graph.node("Sqrt", {x})}); })},
      {"scale_gradient", [](C c) { return c.in[0]; }},
      {"sigmoid", same("Sigmoid")},
      {"sign", sign},
      {"silu", real([](C c, N x) { return multiply(c, x, c.graph.node("Sigmoid", {x})); })},
      {"sin", same("Sin")},
      {"sinh", same("Sinh")},
      {"softplus", real([](C c, N x) {  // ONNX Runtime's own overflows
         const Name tail = c.graph.node("Exp", {c.graph.node("Neg", {c.graph.node("Abs", {x})})});
         return add(c, c.graph.node("Relu", {x}), c.graph.node("Log", {add(c, tail, number(c, 1))}));
       })},
      {"softsign", real([](C c, N x) {
         return c.graph.node("Div", {x, add(c, c.graph.node("Abs", {x}), number(c, 1))});
       })},
      {"sqrt", same("Sqrt")},
      {"square", [](C c) { return multiply(c, c.in[0], c.in[0]); }},
      {"tan", same("Tan")},
      {"tanh", same("Tanh")},
      {"trunc", real([](C c, N x) {
         return multiply(c, c.graph.node("Sign", {x}), c.graph.node("Floor", {c.graph.node("Abs", {x})}));
       })},
      // functions of two numbers
      {"add", [](C c) { return add(c, c.in[0], c.in[1]); }},
      {"complex",
       [](C c) {
         return OnnxValue{c.in[0].re, c.in[1].re};
       }},
      {"div", [](C c) { return divide(c, c.in[0], c.in[1]); }},
      {"equal", same("Equal")},
      {"hypot",
       [](C c) {
         return OnnxValue{size(c, {c.in[0].re, c.in[1].re})};
       }},
      {"less", same("Less")},
      {"less_equal", same("LessOrEqual")},
      {"logical_and", same("And")},
      {"logical_or", same("Or")},
      {"logical_xor", same("Xor")},
      {"maximum", same("Max")},
      {"minimum", same("Min")},
      {"modrelu", real([](C c, N a, N b) {
         const double shift = c.node.attrs.as<Binary<ModRelu>>().f.shift;
         const Name length = add(c, c.graph.node("Abs", {a}), b);
         const Name left = c.graph.node("Relu", {shift == 0 ? length : add(c, length, number(c, shift))});
         return multiply(c, c.graph.node("Sign", {a}), left);
       })},
      {"mul", [](C c) { return multiply(c, c.in[0], c.in[1]); }},
      {"not_equal", real([](C c, N a, N b) {
         return c.graph.node("Not", {c.graph.node("Equal", {a, b})});
       })},
      {"pow", same("Pow")},
      {"remainder", real([](C c, N a, N b) {
         return subtract(c, a, multiply(c, b, c.graph.node("Floor", {c.graph.node("Div", {a, b})})));
       })},
      {"sub",
       [](C c) {
         return OnnxValue{subtract(c, c.in[0].re, c.in[1].re), subtract(c, c.in[0].im, c.in[1].im)};
       }},
      {"where", where},
      {"cast", cast},
      // moves
      {"concat", joined},
      {"exchange", parts(exchanged)},
      {"expand", parts(expanded)},
      {"flip", parts([](C c, N x) {
         const std::int64_t axis = c.integer("axis"), n = c.result.shape[static_cast<int>(axis)];
         return gathered(c, x, axis, [&](std::int64_t j) { return n - 1 - j; });
       })},
      {"full", full},
      {"index_select",
       [](C c) {
         const OnnxAttributes axis{{"axis", c.integer("axis")}};
         const auto part = [&](N x) { return x.empty() ? x : c.graph.node("Gather", {x, c.in[1].re}, axis); };
         return OnnxValue{part(c.in[0].re), part(c.in[0].im)};
       }},
      {"pad", parts(padded)},
      {"permute", parts([](C c, N x) {
         const std::vector<double>& order = c.attributes.at("order");
         return c.graph.node("Transpose", {x}, {{"perm", Dims(order.begin(), order.end())}});
       })},
      {"reshape", parts(reshaped)},
      {"roll", parts([](C c, N x) {
         const std::int64_t axis = c.integer("axis"), n = c.result.shape[static_cast<int>(axis)];
         const std::int64_t shift = n == 0 ? 0 : (c.integer("shift") % n + n) % n;
         return gathered(c, x, axis, [&](std::int64_t j) { return (j - shift + n) % n; });
       })},
      {"rotate",
       [](C c) {  // C x + S exchange(x)
         const OnnxValue& x = c.in[0];
         const OnnxValue other{exchanged(c, x.re), x.im.empty() ? "" : exchanged(c, x.im)};
         return add(c, multiply(c, c.in[1], x), multiply(c, c.in[2], other));
       }},
      {"slice", parts([](C c, N x) { return sliced(c, x, c.integer("axis")); })},
      {"slice_leading", parts([](C c, N x) { return sliced(c, x, 0); })},
      {"take_along", real([](C c, N x, N index) {
         return c.graph.node("GatherElements", {x, index}, {{"axis", c.integer("axis")}});
       })},
      // products, reductions, functions of rows
      {"cumsum", real([](C c, N x) {
         return c.graph.node("CumSum", {x, c.graph.integers({c.integer("axis")})}, {{"reverse", c.integer("reverse")}});
       })},
      {"fft", fft},
      {"log_softmax", same("LogSoftmax", {{"axis", -1}})},
      {"logsumexp", same("ReduceLogSumExp", {{"axes", Dims{-1}}, {"keepdims", 0}})},
      {"matmul", matmul},
      {"max", extreme("ReduceMax")},
      {"min", extreme("ReduceMin")},
      {"norm", norm},
      {"softmax", same("Softmax", {{"axis", -1}})},
      {"standardize", real(standardized)},
      {"sum", parts(sum)},
  };
  return table;
}

}  // namespace

std::string imaginary(OnnxGraph& graph, const OnnxValue& value, DType dtype) {
  if (!value.im.empty()) return value.im;
  return graph.node("Expand", {graph.scalar(0, dtype), graph.node("Shape", {value.re})});
}

void OnnxCall::refuse(const std::string& why) const {
  throw Error(node.op->traits.name, fmt::format("{} ({})", why, str(node.where)));
}

OnnxValue write_op(OnnxCall& call) {
  const auto rule = rules().find(call.node.op->traits.name);
  if (rule == rules().end()) call.refuse("has no equivalent in ONNX");
  return rule->second(call);
}

std::vector<std::string> onnx_ops() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}

}  // namespace reel
