// Against values that other implementations computed (tests/golden: NumPy and PyTorch): ops, random numbers, cells with
// their gradients and Hessian-vector products.
#include <map>

#include "cells/cell.h"
#include "tasks/harness/safetensors.h"
#include "tests/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double tolerance = 1e-10;

/// A golden file by name, with what was looked at, so that nothing in it goes untested.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(load_safetensors(std::string(REEL_SOURCE_DIR "/tests/golden/") + name + ".safetensors", backend())) {}
  const Tensor& operator[](const std::string& name) {
    seen_[name] = true;
    return file_.at(name);
  }
  bool has(const std::string& name) const {
    for (const auto& [n, t] : file_.tensors) {
      if (n == name) return true;
    }
    return false;
  }
  /// Names that begin with `prefix`, up to the next dot behind it.
  std::vector<std::string> under(const std::string& prefix) const {
    std::vector<std::string> out;
    for (const auto& [n, t] : file_.tensors) {
      if (n.rfind(prefix, 0) != 0) continue;
      const std::string name = n.substr(0, n.find('.', prefix.size()));
      if (out.empty() || std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
  }
  std::vector<std::string> unseen() const {
    std::vector<std::string> out;
    for (const auto& [n, t] : file_.tensors) {
      if (!seen_.contains(n)) out.push_back(n);
    }
    return out;
  }

 private:
  TensorFile file_;
  std::map<std::string, bool> seen_;
};

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::int64_t> whole_numbers(const Tensor& t) {
  std::vector<std::int64_t> out;
  for (std::int32_t v : t.values<std::int32_t>()) out.push_back(v);
  return out;
}

/// Value and gradients of one golden call.
void check(Golden& g, const std::string& name, const std::vector<std::string>& inputs, const TensorFunction& f) {
  CAPTURE(name);
  Tensors xs;
  for (const std::string& x : inputs) xs.push_back(g[name + "." + x]);
  Tape tape;
  const Tensor y = f(xs);
  CHECK(difference(y, g[name + ".y"]) < tolerance);
  const Tensors dx = grad({y}, xs, {.cotangents = {g[name + ".dy"]}});
  for (std::size_t i = 0; i < xs.size(); ++i) CHECK(difference(dx[i], g[name + ".d" + inputs[i]]) < tolerance);
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

  const auto complex_at = [&](const std::string& name) {
    std::vector<std::complex<double>> v;
    const auto re = g[name + ".re"].values<double>(), im = g[name + ".im"].values<double>();
    for (std::size_t i = 0; i < re.size(); ++i) v.emplace_back(re[i], im[i]);
    return Tensor::from<std::complex<double>>(v, g[name + ".re"].shape());
  };
  for (const std::string& op : g.under("complex.")) {
    for (const std::string& name : g.under(op + ".")) {
      CAPTURE(name);
      const Tensor a = complex_at(name + ".a"), b = complex_at(name + ".b");
      const std::string kind = last_part(op), flags = name.substr(name.size() - 2);
      Tape tape;
      const Tensor y = kind == "mul" ? a * b : kind == "div" ? a / b : matmul(a, b, {flags[0] == 't', flags[1] == 't'});
      CHECK(difference(y, complex_at(name + ".y")) < tolerance);
      const auto dx = grad(y, {a, b}, {.cotangents = {complex_at(name + ".dy")}});
      CHECK(difference(dx[0], complex_at(name + ".da")) < tolerance);
      CHECK(difference(dx[1], complex_at(name + ".db")) < tolerance);
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

TEST_CASE("cells agree with NumPy and PyTorch: outputs, last state, gradients, Hessian-vector products") {
  struct Case {
    std::string file, cell;
    std::map<std::string, std::string> settings;
  };
  const std::vector<Case> cases{
      {"rnn_tanh_1", "rnn", {{"biases", "1"}}},
      {"rnn_relu_1", "rnn", {{"biases", "1"}, {"activation", "relu"}}},
      {"rnn_tanh_2", "rnn", {}},
      {"lstm_1", "lstm", {{"biases", "1"}}},
      {"lstm_2", "lstm", {}},
      {"gru_after_1", "gru", {{"biases", "1"}}},
      {"gru_after_2", "gru", {}},
      {"gru_before_1", "gru", {{"biases", "1"}, {"reset", "before"}}},
      {"srnn_gate_w5_l1", "srnn", {{"width", "5"}}},
      {"srnn_nogate_w5_l1", "srnn", {{"width", "5"}, {"gate", "off"}}},
      {"srnn_gate_w5_l3_leaky", "srnn", {{"width", "5"}, {"layers", "3"}, {"activation", "leaky_relu"}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.file);
    Golden g(c.file);
    const CellType& type = cell_type(c.cell);
    Init init(1, DType::f64);
    const auto cell = type.make(4, 6, Settings(c.cell, type.settings, c.settings), init);
    std::vector<std::string> names;
    Tensors variables;
    for (const Parameter& p : cell->parameters()) {
      Tensor value = p.value;
      value.assign(g[p.name]);
      names.push_back(p.name);
      variables.push_back(value);
    }
    names.push_back("x");
    variables.push_back(g["x"]);
    Tensors state;
    for (const std::string& s : cell->states()) {
      names.push_back("state." + s);
      variables.push_back(g["state." + s]);
      state.push_back(g["state." + s]);
    }

    Tape tape;
    const Sequence out = scan(*cell, state, g["x"]);
    CHECK(difference(out.hs, g["y"]) < tolerance);
    Tensor loss = sum(g["dy"] * out.hs);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const std::string s = cell->states()[i];
      CHECK(difference(out.last[i], g["last." + s]) < tolerance);
      loss = loss + sum(g["dlast." + s] * out.last[i]);
    }
    const Tensors first = grad({loss}, variables, {.create_graph = true});
    Tensor along = Tensor::zeros({}, DType::f64);
    for (std::size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(difference(first[i], g["grad." + names[i]]) < tolerance);
      along = along + sum(first[i] * g["v." + names[i]]);
    }
    const Tensors second = grad({along}, variables);
    for (std::size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(difference(second[i], g["hvp." + names[i]]) < tolerance);
    }
    for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
  }
}
