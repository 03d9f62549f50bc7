// onnx_cases DIR: writes a call of each op that can be written in ONNX as DIR/NAME.onnx, and its inputs and results as
// DIR/NAME.safetensors. python/tests/test_onnx.py runs the files with ONNX Runtime. Fails if an op has no case.
#include <cmath>
#include <iostream>
#include <set>

#include "ops/ops.h"
#include "tasks/io/files.h"
#include "tasks/to_onnx/onnx_function.h"
#include "tasks/training/safetensors.h"

using namespace reel;

namespace {

constexpr std::int64_t batch = 3, width = 6;

/// What a case computes with: real x, y and complex z, w [batch, width]; integers k below the width, [batch, width].
struct Values {
  Tensor x, y, z, w, k;
};
struct Case {
  const char* name;
  Tensor (*call)(const Values&);
};

Tensor number(const Tensor& condition) { return cast(condition, DType::f32); }
Tensor index(std::initializer_list<std::int32_t> values) {
  return Tensor::from<std::int32_t>(std::vector<std::int32_t>(values), {std::ssize(values)});
}
Tensor weights(std::int64_t rows, std::int64_t columns) { return normal({rows, columns}, 0, 1, 5, 9); }
Tensor complex_weights(std::int64_t rows, std::int64_t columns) {
  return complex(weights(rows, columns), normal({rows, columns}, 0, 1, 6, 9));
}
/// An own op with the name of one of Reel's, which it is not.
struct OwnElu {
  static constexpr Traits traits{.name = "elu", .kind = Kind::elementwise, .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(elu(in[0], 3)); }
};
/// [batch, width] -> [batch, 2, width / 2]
Tensor folded(const Tensor& x) { return reshape(x, {-1, 2, width / 2}); }

const Case cases[] = {
    {"abs", [](const Values& v) { return abs(v.x); }},
    {"abs_complex", [](const Values& v) { return abs(v.z); }},
    {"acos", [](const Values& v) { return acos(tanh(v.x)); }},
    {"add", [](const Values& v) { return v.x + v.y; }},
    {"add_complex", [](const Values& v) { return v.z + v.x + v.w; }},
    {"affine", [](const Values& v) { return 2 * v.x - 3; }},
    {"affine_complex", [](const Values& v) { return 2 * v.z - 3; }},
    {"argmax", [](const Values& v) { return number(argmax(floor(v.x)) + argmax(v.k, 1)); }},  // with ties
    {"argmin", [](const Values& v) { return number(argmin(folded(ceil(v.x)), 1)); }},
    {"argsort",
     [](const Values& v) {
       return sort(v.x) + sum(top_k(v.y, 2).values, {-1}, true) + number(argsort(v.k, -1, true));
     }},
    {"asin", [](const Values& v) { return asin(tanh(v.x)); }},
    {"atan", [](const Values& v) { return atan(v.x); }},
    {"cast", [](const Values& v) { return cast(v.k, DType::f32) + real(v.z) + number(cast(v.k, DType::boolean)); }},
    {"ceil", [](const Values& v) { return ceil(v.x); }},
    {"clamp", [](const Values& v) { return clamp(v.x, -0.5, 0.25); }},
    {"complex", [](const Values& v) { return complex(v.x, v.y); }},
    {"concat",
     [](const Values& v) {
       return concat({v.x, v.y, v.x}, -1);
     }},
    {"concat_complex",
     [](const Values& v) {
       return concat({v.z, cast(v.x, DType::c64)}, 1);
     }},
    {"conj", [](const Values& v) { return conj(v.z); }},
    {"cos", [](const Values& v) { return cos(v.x); }},
    {"cosh", [](const Values& v) { return cosh(v.x); }},
    {"cumsum", [](const Values& v) { return cumsum(v.x) + cumsum(v.y, -1, true); }},
    {"div", [](const Values& v) { return v.x / v.y; }},
    {"div_complex", [](const Values& v) { return v.z / v.w + v.z / cast(v.x, DType::c64); }},
    {"elu", [](const Values& v) { return elu(v.x, 0.7); }},
    {"equal", [](const Values& v) { return number(equal(v.k, 2.0)); }},
    {"erf", [](const Values& v) { return erf(v.x); }},
    {"exchange",
     [](const Values& v) {
       return exchange(v.x, {1, 2});
     }},
    {"exp", [](const Values& v) { return exp(v.x); }},
    {"expand",
     [](const Values& v) {
       return expand(reshape(v.x, {-1, 1, width}), {v.x.dim(0), 4, width});
     }},
    {"expand_constant", [](const Values& v) { return where(v.x > 0, weights(1, width), v.x); }},
    {"expm1", [](const Values& v) { return expm1(v.x); }},
    {"fft", [](const Values& v) { return fft(v.z) + ifft(v.w); }},
    {"flip", [](const Values& v) { return flip(v.x); }},
    {"floor", [](const Values& v) { return floor(v.x); }},
    {"full", [](const Values& v) { return v.x + full(v.x.shape(), 2); }},
    {"full_complex",
     [](const Values& v) {
       return v.z + full(v.z.shape(), {2, 3}, DType::c64);
     }},
    {"gelu", [](const Values& v) { return gelu(v.x); }},
    {"hypot", [](const Values& v) { return hypot(v.x, v.y); }},
    {"imag", [](const Values& v) { return imag(v.z) + imag(cast(v.x, DType::c64)); }},
    {"index_select",
     [](const Values& v) {
       return index_select(v.z, 1, index({3, 0, 0, 5}));
     }},
    {"index_select_rows", [](const Values& v) { return embedding(v.k, weights(width, 2)); }},
    {"is_inf", [](const Values& v) { return number(is_inf(1 / floor(v.x))); }},
    {"is_nan", [](const Values& v) { return number(is_nan(sqrt(v.x))); }},
    {"leaky_relu", [](const Values& v) { return leaky_relu(v.x, 0.3); }},
    {"less", [](const Values& v) { return number(v.x < v.y); }},
    {"less_equal", [](const Values& v) { return number(v.k <= 2.0); }},
    {"log", [](const Values& v) { return log(square(v.x) + 0.1); }},
    {"log1p", [](const Values& v) { return log1p(square(v.x)); }},
    {"log_softmax", [](const Values& v) { return log_softmax(v.x); }},
    {"logical_and", [](const Values& v) { return number(logical_and(v.x < 0, v.y < 0)); }},
    {"logical_not", [](const Values& v) { return number(logical_not(v.x < 0)); }},
    {"logical_or", [](const Values& v) { return number(logical_or(v.x < 0, v.y < 0)); }},
    {"logical_xor", [](const Values& v) { return number(logical_xor(v.x < 0, v.y < 0)); }},
    {"logsumexp", [](const Values& v) { return logsumexp(v.x); }},
    {"matmul", [](const Values& v) { return matmul(linear(v.x, weights(4, width)), weights(4, 2)); }},
    {"matmul_batch", [](const Values& v) { return matmul(folded(v.x), folded(v.y), {.transpose_b = true}); }},
    {"matmul_turned", [](const Values& v) { return matmul(folded(v.x), folded(v.y), {.transpose_a = true}); }},
    {"matmul_shared", [](const Values& v) { return matmul(folded(v.x), weights(width / 2, 5)); }},
    {"matmul_complex",
     [](const Values& v) {
       return matmul(v.z, complex_weights(4, width), {.transpose_b = true, .conj_a = true}) +
              matmul(v.w, complex_weights(width, 4), {.conj_b = true});
     }},
    {"max", [](const Values& v) { return max(folded(v.x), {2}) + max(v.y, {1}, true); }},
    {"max_of_two_axes",
     [](const Values& v) {
       return max(folded(v.x), {1, 2});
     }},
    {"maximum", [](const Values& v) { return maximum(v.x, v.y); }},
    {"min", [](const Values& v) { return min(v.x, {1}, true); }},
    {"minimum", [](const Values& v) { return minimum(v.x, v.y); }},
    {"modrelu", [](const Values& v) { return modrelu(v.x, v.y, {.shift = 0.1}); }},
    {"modrelu_complex", [](const Values& v) { return modrelu(v.z, v.y, {.inside = 0.1, .divide = 0.2}); }},
    {"mul", [](const Values& v) { return v.x * v.y; }},
    {"mul_complex", [](const Values& v) { return v.z * v.w * v.x; }},
    {"neg", [](const Values& v) { return -v.x; }},
    {"neg_complex", [](const Values& v) { return neg(v.z) - neg(cast(v.x, DType::c64)); }},
    {"norm", [](const Values& v) { return norm(v.x, 2, {1}) + norm(v.z, 3, {1}) + norm(0 * v.x, 5, {1}); }},
    {"not_equal", [](const Values& v) { return number(not_equal(v.k, 2.0)); }},
    {"pad", [](const Values& v) { return pad(v.x, 1, 2, 1); }},
    {"permute",
     [](const Values& v) {
       return permute(folded(v.z), {0, 2, 1});
     }},
    {"pow", [](const Values& v) { return pow(abs(v.x) + 0.1, v.y); }},
    {"power", [](const Values& v) { return power(v.x, 3) + power(abs(v.x) + 0.1, -0.5); }},
    {"reciprocal", [](const Values& v) { return reciprocal(v.x); }},
    {"relu", [](const Values& v) { return relu(v.x); }},
    {"remainder", [](const Values& v) { return remainder(v.x, v.y); }},
    {"repeat",
     [](const Values& v) {
       return repeat(v.x, 3) + repeat(concat({v.y, v.y, v.x}, -1), 1);
     }},
    {"repeat_rows",
     [](const Values& v) {
       return sum(reshape(repeat(v.x, 4, 0), {v.x.dim(0), 4, width}), {1});
     }},
    {"reshape",
     [](const Values& v) {
       return reshape(folded(v.x), {-1, 3, 2});
     }},
    {"roll", [](const Values& v) { return roll(v.z, -2) + roll(v.w, 9); }},
    {"rotate",
     [](const Values& v) {
       return rotate(v.x, reshape(weights(1, width), {width}), reshape(weights(width, 1), {width}), {0, 3});
     }},
    {"round", [](const Values& v) { return round(2 * v.x); }},
    {"rsqrt", [](const Values& v) { return rsqrt(square(v.x) + 0.1); }},
    {"scale_gradient", [](const Values& v) { return scale_gradient(v.x, 0.5); }},
    {"sigmoid", [](const Values& v) { return sigmoid(v.x); }},
    {"sign", [](const Values& v) { return sign(v.x); }},
    {"sign_complex", [](const Values& v) { return sign(v.z) + sign(0 * v.w); }},
    {"silu", [](const Values& v) { return silu(v.x); }},
    {"sin", [](const Values& v) { return sin(v.x); }},
    {"sinh", [](const Values& v) { return sinh(v.x); }},
    {"slice", [](const Values& v) { return slice(v.z, 1, 2, 5); }},
    {"slice_leading", [](const Values& v) { return transpose(slice(transpose(v.x), 0, 1, 4)); }},
    {"softmax", [](const Values& v) { return softmax(v.x); }},
    {"softplus", [](const Values& v) { return softplus(100 * v.x); }},
    {"softsign", [](const Values& v) { return softsign(v.x); }},
    {"sqrt", [](const Values& v) { return sqrt(abs(v.x)); }},
    {"square", [](const Values& v) { return square(v.x); }},
    {"square_complex", [](const Values& v) { return square(v.z); }},
    {"standardize", [](const Values& v) { return standardize(v.x, 0.01); }},
    {"sub", [](const Values& v) { return v.x - v.y; }},
    {"sub_complex", [](const Values& v) { return v.z - v.w + (cast(v.x, DType::c64) - v.w); }},
    {"sum", [](const Values& v) { return sum(folded(v.z), {1}) + sum(v.z, {1}, true); }},
    {"sum_to", [](const Values& v) { return sum(transpose(v.x), {0}); }},
    {"take_along", [](const Values& v) { return take_along(v.x, v.k); }},
    {"tan", [](const Values& v) { return tan(0.5 * v.x); }},
    {"tanh", [](const Values& v) { return tanh(v.x); }},
    {"trunc", [](const Values& v) { return trunc(2 * v.x); }},
    {"where", [](const Values& v) { return where(v.x < 0, v.y, 0.5); }},
    {"where_complex", [](const Values& v) { return where(v.x < 0, v.z, cast(v.y, DType::c64)); }},
};

/// The inputs in the order of Values.
Tensors inputs_for(std::int64_t B) {
  const auto numbers = [&](std::uint64_t stream) { return normal({B, width}, 0, 1, 7, stream); };
  return {numbers(0), numbers(1), complex(numbers(2), numbers(3)), complex(numbers(4), numbers(5)),
          cast(uniform({B, width}, 0, static_cast<double>(width), 7, 6), DType::i32)};
}
Values values_of(const Tensors& t) { return {t[0], t[1], t[2], t[3], t[4]}; }

/// Writes a case and returns the ops that it needs.
void write(const Case& c, const std::string& folder) {
  OnnxGraph graph;
  std::vector<OnnxValue> in;
  TensorFile file;
  const Tensors values = inputs_for(batch);
  const char* names[] = {"x", "y", "z", "w", "k"};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = names[i];
    const auto declare = [&](const std::string& part, const Tensor& value) {
      graph.input(part, onnx_type(value.dtype()), {"batch", width});
      file.tensors.emplace_back(part, value);
    };
    if (is_complex(values[i].dtype())) {
      in.push_back({name + ".re", name + ".im"});
      declare(in.back().re, real(values[i]));
      declare(in.back().im, imag(values[i]));
    } else {
      in.push_back({name});
      declare(name, values[i]);
    }
  }
  const OnnxFunction function(
      [](std::int64_t B) {
        std::vector<Spec> specs;
        for (const Tensor& t : inputs_for(B)) specs.push_back(t.spec());
        return specs;
      },
      [&](const Tensors& args) { return Tensors{c.call(values_of(args))}; });
  const OnnxValue found = function.write(graph, in, graph.node("Shape", {"x"}, {{"start", 0}, {"end", 1}}), {})[0];
  const Tensor expected = c.call(values_of(values));
  const auto result = [&](const std::string& name, const std::string& value, const Tensor& wanted) {
    graph.node_called({name}, "Identity", {value});
    std::vector<OnnxDim> dims(wanted.shape().begin(), wanted.shape().end());
    dims[0] = "batch";
    graph.output(name, onnx_type(wanted.dtype()), dims);
    file.tensors.emplace_back(name, wanted);
  };
  result("result", found.re, real(expected));
  if (is_complex(expected.dtype())) result("result.im", imaginary(graph, found, DType::f32), imag(expected));
  write_atomically(folder + "/" + c.name + ".onnx", graph.bytes("test"));
  save_safetensors(folder + "/" + c.name + ".safetensors", file);
}

/// Throws unless f is refused with these words.
void require_refusal(const std::function<Tensor(const Values&)>& f, const std::string& words) {
  OnnxGraph graph;
  try {
    const OnnxFunction function(
        [](std::int64_t B) {
          std::vector<Spec> specs;
          for (const Tensor& t : inputs_for(B)) specs.push_back(t.spec());
          return specs;
        },
        [&](const Tensors& args) { return Tensors{f(values_of(args))}; });
    function.write(graph, {{"x"}, {"y"}, {"z.re", "z.im"}, {"w.re", "w.im"}, {"k"}}, "batch", {});
  } catch (const Error& e) {
    if (std::string(e.what()).find(words) != std::string::npos) return;
    throw Error(fmt::format("\"{}\" was expected, got \"{}\"", words, e.what()));
  }
  throw Error(fmt::format("\"{}\" was expected, got no error", words));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw Error("onnx_cases DIR");
    const NoGrad no_grad;
    std::set<std::string> named;
    for (const Case& c : cases) {
      write(c, argv[1]);
      named.insert(c.name);
    }
    for (const std::string& op : onnx_ops())
      if (!named.contains(op)) throw Error(fmt::format("the op {} has no case", op));
    require_refusal([](const Values& v) { return atan2(v.x, v.y); }, "[atan2] to_onnx has no translation for it");
    require_refusal([](const Values& v) { return abs(tanh(v.z)); }, "[tanh] takes complex numbers");
    require_refusal(
        [](const Values& v) {
          return v.x + arange(v.x.dim(0), DType::f32).view({v.x.dim(0), 1});
        },
        "a constant that was made for one size of the batch");
    require_refusal([](const Values& v) { return slice(v.x, 0, 0, v.x.dim(0) - 1); },
                    "has attributes that depend on the batch");
    const auto other_batch = "computes with the size of the batch, as a mean over its rows does";
    require_refusal([](const Values& v) { return v.x - mean(v.x, {0}, true); }, other_batch);
    require_refusal([](const Values& v) { return clamp(v.x, 0, static_cast<double>(v.x.dim(0))); }, other_batch);
    require_refusal([](const Values& v) { return v.x * Tensor::full({}, 1 / static_cast<double>(v.x.dim(0))); },
                    "a constant that was made for one size of the batch");
    require_refusal([](const Values& v) { return flip(v.x, 0); }, "[flip] acts along the batch");
    require_refusal([](const Values& v) { return transpose(standardize(transpose(v.x))); },
                    "[standardize] acts along the batch");
    require_refusal([](const Values& v) { return v.x + sum(abs(fft(transpose(v.z))), {1}); },
                    "[fft] acts along the batch");
    require_refusal([](const Values& v) { return apply(OwnElu{}, {&v.x}, Loc::current()); },
                    "[elu] to_onnx has no translation for it");
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "onnx_cases: " << e.what() << "\n";
    return 1;
  }
}
