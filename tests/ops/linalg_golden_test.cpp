// Linear algebra against NumPy, SciPy and PyTorch: tests/support/golden/linalg.py.
#include <map>

#include "tests/support/golden.h"

using namespace reel;
using namespace reel::test;

namespace {

/// "tall" of "qr.tall_real"
std::string variant_of(const std::string& name) {
  const std::size_t first = name.find('.') + 1;
  return name.substr(first, name.rfind('_') - first);
}

Tensor flat(const Tensors& parts) {
  Tensors rows;
  for (const Tensor& p : parts) rows.push_back(reshape(cast(p, parts[0].dtype()), {p.numel()}));
  return concat(rows, 0);
}

}  // namespace

TEST_CASE("linear algebra agrees with NumPy, SciPy and PyTorch: values and gradients") {
  struct Function {
    std::vector<std::string> inputs;
    std::function<Tensor(const Tensors&, const std::string& variant)> call;
  };
  const std::map<std::string, Function> functions{
      {"solve",
       {{"A", "B"},
        [](const Tensors& x, const std::string& v) { return solve(x[0], x[1], {.adjoint = contains(v, "adjoint")}); }}},
      {"triangular_solve",
       {{"A", "B"},
        [](const Tensors& x, const std::string& v) {
          return triangular_solve(x[0], x[1], {v[0] == 'u', v[1] == '1', v[2] == 'h'});
        }}},
      {"inverse", {{"A"}, [](const Tensors& x, const std::string&) { return inverse(x[0]); }}},
      {"sylvester",
       {{"A", "B", "C"}, [](const Tensors& x, const std::string&) { return sylvester(x[0], x[1], x[2]); }}},
      {"pinv", {{"A"}, [](const Tensors& x, const std::string&) { return pinv(x[0]); }}},
      {"lstsq", {{"A", "B"}, [](const Tensors& x, const std::string&) { return lstsq(x[0], x[1]); }}},
      {"lu",
       {{"A"},
        [](const Tensors& x, const std::string&) {
          const Lu f = lu(x[0]);
          return flat({f.P, f.L, f.U});
        }}},
      {"qr",
       {{"A"},
        [](const Tensors& x, const std::string&) {
          const Qr f = qr(x[0]);
          return flat({f.Q, f.R});
        }}},
      {"cholesky", {{"A"}, [](const Tensors& x, const std::string&) { return cholesky(x[0]); }}},
      {"det", {{"A"}, [](const Tensors& x, const std::string&) { return det(x[0]); }}},
      {"slogdet",
       {{"A"},
        [](const Tensors& x, const std::string&) {
          const SignAndLog d = slogdet(x[0]);
          return flat({d.sign, d.log_abs});
        }}},
      {"matrix_exp", {{"A"}, [](const Tensors& x, const std::string&) { return matrix_exp(x[0]); }}},
      {"cayley",
       {{"A"},
        [](const Tensors& x, const std::string&) {
          return cayley(x[0], Tensor::from<double>({1, 1, -1, -1}, {4}));
        }}},
      {"householder_product", {{"U"}, [](const Tensors& x, const std::string&) { return householder_product(x[0]); }}},
      {"householder_apply",
       {{"x", "U"}, [](const Tensors& x, const std::string&) { return householder_apply(x[0], x[1]); }}},
      {"polar", {{"A"}, [](const Tensors& x, const std::string&) { return polar_factor(x[0]); }}}};
  Golden g("linalg");
  for (const auto& [name, f] : functions) {
    const std::vector<std::string> cases = g.under(name + ".");
    CHECK_MESSAGE(!cases.empty(), name);
    for (const std::string& c : cases) {
      const std::string variant = variant_of(c);
      if (name == "pinv" && variant == "product")
        check(g, c, {"X", "Y"}, [](const Tensors& x) { return pinv(matmul(x[0], x[1]), 1e-10); });
      else
        check(g, c, f.inputs, [&](const Tensors& x) { return f.call(x, variant); });
    }
  }
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}
