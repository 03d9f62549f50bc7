// softmax and its family, norms, statistics, running sums, einsum and lookups against NumPy and PyTorch
// (tests/support/golden/shapes.py).
#include "tests/support/golden.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> split_name(const std::string& name) {
  std::vector<std::string> parts{""};
  for (char c : name) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Calls f with the name of each golden call under `prefix`, which are `parts` long, and the parts behind the prefix.
void each_call(const Golden& g, const std::string& prefix, std::size_t parts,
               const std::function<void(const std::string&, const std::vector<std::string>&)>& f) {
  for (const std::string& name : g.under(prefix)) {
    if (parts > 1)
      each_call(g, name + ".", parts - 1, f);
    else
      f(name, split_name(name));
  }
}

Axes digits(const std::string& text) {
  Axes axes;
  for (char c : text) axes.push_back(c - '0');
  return axes;
}

const std::map<std::string, std::string> equations{
    {"matmul", "ij,jk->ik"}, {"transposed", "ji,kj->ki"},   {"batch", "bij,bjk->bik"}, {"rows", "bi,bi->b"},
    {"outer", "i,j->ji"},    {"two_inner", "aibj,jbk->ka"}, {"diagonal", "iij,jk"},    {"sums", "ijk,lj->l"},
    {"trace", "ii"},         {"turned", "ijk->kj"},
};

}  // namespace

TEST_CASE("softmax, norms, statistics, einsum and lookups agree with NumPy and PyTorch") {
  Golden g("shapes");
  using Parts = std::vector<std::string>;
  each_call(g, "softmax.", 2, [&](const std::string& name, const Parts& p) {
    check(g, name, {"x"}, [&](const Tensors& x) { return softmax(x[0], digits(p[2])[0]); });
  });
  each_call(g, "log_softmax.", 2, [&](const std::string& name, const Parts& p) {
    check(g, name, {"x"}, [&](const Tensors& x) { return log_softmax(x[0], digits(p[2])[0]); });
  });
  each_call(g, "logsumexp.", 2, [&](const std::string& name, const Parts& p) {
    check(g, name, {"x"}, [&](const Tensors& x) { return logsumexp(x[0], digits(p[2])); });
  });
  each_call(g, "layer_norm.", 1, [&](const std::string& name, const Parts&) {
    check(g, name, {"x", "gain", "bias"}, [&](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); });
  });
  for (const std::string group : {"", "complex."}) {
    each_call(g, group + "norm.", 2, [&](const std::string& name, const Parts& p) {
      std::string order = p[p.size() - 2];
      std::replace(order.begin(), order.end(), '_', '.');
      check(g, name, {"x"}, [&](const Tensors& x) { return norm(x[0], std::stod(order), digits(p.back())); });
    });
    each_call(g, group + "var.", 2, [&](const std::string& name, const Parts& p) {
      const double correction = std::stod(p[p.size() - 2]);
      check(g, name, {"x"}, [&](const Tensors& x) { return var(x[0], digits(p.back()), false, correction); });
    });
    each_call(g, group + "std_dev.", 2, [&](const std::string& name, const Parts& p) {
      const double correction = std::stod(p[p.size() - 2]);
      check(g, name, {"x"}, [&](const Tensors& x) { return std_dev(x[0], digits(p.back()), false, correction); });
    });
    each_call(g, group + "einsum.", 1, [&](const std::string& name, const Parts& p) {
      if (g.has(name + ".b") || g.has(name + ".b.re"))
        check(g, name, {"a", "b"}, [&](const Tensors& x) { return einsum(equations.at(p.back()), x[0], x[1]); });
      else
        check(g, name, {"a"}, [&](const Tensors& x) { return einsum(equations.at(p.back()), x[0]); });
    });
  }
  check(g, "prod", {"x"}, [](const Tensors& x) { return prod(x[0], {1}); });
  each_call(g, "cumsum.", 2, [&](const std::string& name, const Parts& p) {
    check(g, name, {"x"}, [&](const Tensors& x) { return cumsum(x[0], digits(p[1])[0], p[2] == "reverse"); });
  });
  each_call(g, "index_select.", 1, [&](const std::string& name, const Parts& p) {
    const Tensor index = g[name + ".index"];
    check(g, name, {"x"}, [&](const Tensors& x) { return index_select(x[0], digits(p[1])[0], index); });
  });
  each_call(g, "take_along.", 1, [&](const std::string& name, const Parts& p) {
    const Tensor index = g[name + ".index"];
    check(g, name, {"x"}, [&](const Tensors& x) { return take_along(x[0], index, digits(p[1])[0]); });
  });
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}
