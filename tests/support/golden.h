// Reading golden files (tests/support/golden) and holding ops against them.
#pragma once
#include <algorithm>
#include <set>

#include "tasks/training/safetensors.h"
#include "tests/support/check.h"

namespace reel::test {

/// A golden file by name, with what was looked at, so that nothing in it goes untested.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(load_safetensors(std::string(REEL_SOURCE_DIR "/tests/golden/") + name + ".safetensors", backend())) {}
  /// A tensor by name; a complex one is two, name.re and name.im.
  Tensor operator[](const std::string& name) {
    if (has(name)) return one(name);
    const auto re = one(name + ".re").values<double>(), im = one(name + ".im").values<double>();
    std::vector<std::complex<double>> v;
    for (std::size_t i = 0; i < re.size(); ++i) v.emplace_back(re[i], im[i]);
    return Tensor::from<std::complex<double>>(v, one(name + ".re").shape());
  }
  bool has(const std::string& name) const {
    return std::any_of(file_.tensors.begin(), file_.tensors.end(), [&](const auto& t) { return t.first == name; });
  }
  /// Names that begin with `prefix`, up to the next dot behind it.
  std::vector<std::string> under(const std::string& prefix) const {
    std::vector<std::string> out;
    for (const auto& [n, t] : file_.tensors) {
      if (n.rfind(prefix, 0) != 0) continue;
      const std::string name = n.substr(0, n.find('.', prefix.size()));
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
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
  const Tensor& one(const std::string& name) {
    seen_.insert(name);
    return file_.at(name);
  }
  TensorFile file_;
  std::set<std::string> seen_;
};

constexpr double tolerance = 1e-10;

/// Value and gradients of one golden call.
inline void check(Golden& g, const std::string& name, const std::vector<std::string>& inputs, const TensorFunction& f) {
  CAPTURE(name);
  Tensors xs;
  for (const std::string& x : inputs) xs.push_back(g[name + "." + x]);
  Tape tape;
  const Tensor y = f(xs);
  CHECK(difference(y, g[name + ".y"]) < tolerance);
  const Tensors dx = grad({y}, xs, {.cotangents = {g[name + ".dy"]}});
  for (std::size_t i = 0; i < xs.size(); ++i) CHECK(difference(dx[i], g[name + ".d" + inputs[i]]) < tolerance);
}

}  // namespace reel::test
