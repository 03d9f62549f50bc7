// Against values that other implementations computed (tests/support/golden: NumPy and PyTorch): ops, random numbers,
// cells with their gradients and Hessian-vector products.
#include <map>

#include "tests/support/golden.h"

using namespace reel;
using namespace reel::test;

namespace {

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::int64_t> whole_numbers(const Tensor& t) {
  std::vector<std::int64_t> out;
  for (std::int32_t v : t.values<std::int32_t>()) out.push_back(v);
  return out;
}

}  // namespace

TEST_CASE("ops agree with NumPy and PyTorch") {
  Golden g("ops");
  const std::map<std::string, TensorFunction> unary{{"exp", [](const Tensors& x) { return exp(x[0]); }},
                                                    {"log", [](const Tensors& x) { return log(x[0]); }},
                                                    {"sqrt", [](const Tensors& x) { return sqrt(x[0]); }},
                                                    {"tanh", [](const Tensors& x) { return tanh(x[0]); }},
                                                    {"sigmoid", [](const Tensors& x) { return sigmoid(x[0]); }},
                                                    {"softplus", [](const Tensors& x) { return softplus(x[0]); }},
                                                    {"relu", [](const Tensors& x) { return relu(x[0]); }},
                                                    {"leaky_relu", [](const Tensors& x) { return leaky_relu(x[0]); }},
                                                    {"elu", [](const Tensors& x) { return elu(x[0]); }},
                                                    {"sin", [](const Tensors& x) { return sin(x[0]); }},
                                                    {"cos", [](const Tensors& x) { return cos(x[0]); }},
                                                    {"abs", [](const Tensors& x) { return abs(x[0]); }},
                                                    {"square", [](const Tensors& x) { return square(x[0]); }},
                                                    {"reciprocal", [](const Tensors& x) { return reciprocal(x[0]); }}};
  for (const std::string& name : g.under("unary.")) check(g, name, {"x"}, unary.at(last_part(name)));

  const std::map<std::string, TensorFunction> binary{{"add", [](const Tensors& x) { return x[0] + x[1]; }},
                                                     {"sub", [](const Tensors& x) { return x[0] - x[1]; }},
                                                     {"mul", [](const Tensors& x) { return x[0] * x[1]; }},
                                                     {"div", [](const Tensors& x) { return x[0] / x[1]; }},
                                                     {"maximum", [](const Tensors& x) { return maximum(x[0], x[1]); }},
                                                     {"minimum", [](const Tensors& x) { return minimum(x[0], x[1]); }}};
  for (const std::string& op : g.under("binary.")) {
    for (const std::string& name : g.under(op + ".")) check(g, name, {"a", "b"}, binary.at(last_part(op)));
  }
  for (const std::string& name : g.under("matmul.")) {
    const std::string flags = name.substr(name.size() - 2);
    check(g, name, {"a", "b"}, [&](const Tensors& x) {
      return matmul(x[0], x[1], {flags[0] == 't', flags[1] == 't'});
    });
  }

  for (const std::string& op : g.under("complex.")) {
    for (const std::string& name : g.under(op + ".")) {
      const std::string kind = last_part(op), flags = name.substr(name.size() - 2);
      check(g, name, {"a", "b"}, [&](const Tensors& x) {
        if (kind == "matmul") return matmul(x[0], x[1], {flags[0] == 't', flags[1] == 't'});
        return kind == "mul" ? x[0] * x[1] : x[0] / x[1];
      });
    }
  }

  for (const std::string& op : g.under("reduce.")) {
    for (const std::string& name : g.under(op + ".")) {
      const Axes axes = whole_numbers(g[name + ".axes"]);
      check(g, name, {"x"}, [&](const Tensors& x) {
        return last_part(op) == "sum" ? sum(x[0], axes) : last_part(op) == "mean" ? mean(x[0], axes) : max(x[0], axes);
      });
    }
  }
  for (const std::string& name : g.under("logsumexp."))
    check(g, name, {"x"}, [](const Tensors& x) { return logsumexp(x[0]); });
  for (const std::string& name : g.under("log_softmax."))
    check(g, name, {"x"}, [](const Tensors& x) { return log_softmax(x[0]); });
  for (const std::string& name : g.under("cross_entropy."))
    check(g, name, {"x"}, [&](const Tensors& x) { return cross_entropy(x[0], g[name + ".targets"]); });
  check(g, "embedding", {"table"}, [&](const Tensors& x) { return embedding(g["embedding.indices"], x[0]); });
  for (const std::string& name : g.under("roll."))
    check(g, name, {"x"}, [&](const Tensors& x) {
      return roll(x[0], whole_numbers(g[name + ".shift"])[0], whole_numbers(g[name + ".axis"])[0]);
    });
  for (const std::string& name : g.under("pad.")) {
    const auto before = whole_numbers(g[name + ".before"]), after = whole_numbers(g[name + ".after"]);
    check(g, name, {"x"}, [&](const Tensors& x) {
      Tensor y = x[0];
      for (std::size_t i = 0; i < before.size(); ++i) y = pad(y, static_cast<std::int64_t>(i), before[i], after[i]);
      return y;
    });
  }
  for (const std::string& name : g.under("permute."))
    check(g, name, {"x"}, [&](const Tensors& x) { return permute(x[0], whole_numbers(g[name + ".axes"])); });
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}

TEST_CASE("random numbers are those of Philox 4x32-10") {
  // Random123's known answers (kat_vectors).
  const auto words = [](std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
    return philox(seed, stream, counter);
  };
  CHECK(words(0, 0, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  CHECK(words(ones, ones, ones) == std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  Golden g("philox");
  Stream stream(7, 3);
  for (double w : g["w"].values<double>()) CHECK(stream.word() == static_cast<std::uint32_t>(w));
  CHECK(difference(uniform({11}, 0, 1, 7, 3, DType::f64), g["uniform"]) == 0);
  CHECK(difference(normal({11}, 0, 1, 7, 3, DType::f64), g["normal"]) < 1e-14);
}
