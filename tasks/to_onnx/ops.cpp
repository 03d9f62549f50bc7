#include "tasks/to_onnx/ops.h"

#include <functional>
#include <numbers>

#include "ops/elementwise.h"
#include "tasks/to_onnx/rules.h"

namespace reel {

namespace {

using namespace onnx_rules;
using Rule = std::function<OnnxValue(OnnxCall&)>;

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
      {"remainder", real([](C c, N a, N b) {  // Mod has the sign of a
         const Name rest = c.graph.node("Mod", {a, b}, {{"fmod", 1}}), zero = number(c, 0);
         const Name signs = c.graph.node("Xor", {c.graph.node("Less", {rest, zero}), c.graph.node("Less", {b, zero})});
         const Name other = c.graph.node("And", {signs, c.graph.node("Not", {c.graph.node("Equal", {rest, zero})})});
         return c.graph.node("Where", {other, add(c, rest, b), rest});
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
      {"full", onnx_rules::full},
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
      {"argmax", real([](C c, N x) { return place_of(c, x, "ArgMax"); })},
      {"argmin", real([](C c, N x) { return place_of(c, x, "ArgMin"); })},
      {"argsort", real([](C c, N x) {
         const Name values = c.graph.fresh("values"), places = c.graph.fresh("places");
         c.graph.node_called({values, places}, "TopK", {x, c.graph.integers({c.integer("count")})},
                             {{"axis", c.integer("axis")}, {"largest", c.integer("descending")}});
         return c.graph.node("Cast", {places}, {{"to", onnx_number(OnnxType::i32)}});
       })},
      {"cumsum", real([](C c, N x) {
         return c.graph.node("CumSum", {x, c.graph.integers({c.integer("axis")})}, {{"reverse", c.integer("reverse")}});
       })},
      {"fft", onnx_rules::fft},
      {"log_softmax", same("LogSoftmax", {{"axis", -1}})},
      {"logsumexp", same("ReduceLogSumExp", {{"axes", Dims{-1}}, {"keepdims", 0}})},
      {"matmul", onnx_rules::matmul},
      {"max", real([](C c, N x) { return extreme(c, x, "ReduceMax"); })},
      {"min", real([](C c, N x) { return extreme(c, x, "ReduceMin"); })},
      {"norm", onnx_rules::norm},
      {"softmax", same("Softmax", {{"axis", -1}})},
      {"standardize", real(standardized)},
      {"sum", parts([](C c, N x) { return onnx_rules::sum(c, x); })},
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
  if (!is_registered(*call.node.op) || rule == rules().end()) call.refuse("to_onnx has no translation for it");
  return rule->second(call);
}

std::vector<std::string> onnx_ops() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}

}  // namespace reel
