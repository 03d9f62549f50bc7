// Spectral ops against values and gradients that NumPy and PyTorch computed (tests/support/golden/spectral.py).
#include <set>

#include "ops/spectral_parts.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The tensors of spectral.safetensors, complex ones put together, with the names of those nobody asked for.
class Golden {
 public:
  Golden() : file_(load_safetensors(REEL_SOURCE_DIR "/tests/golden/spectral.safetensors", backend())) {
    for (const auto& [name, tensor] : file_.tensors) names_.insert(name);
    unseen_ = names_;
  }
  Tensor operator[](const std::string& name) {
    if (!names_.contains(name + ".re")) return part(name);
    const auto re = part(name + ".re").values<double>(), im = part(name + ".im").values<double>();
    std::vector<std::complex<double>> z;
    for (std::size_t i = 0; i < re.size(); ++i) z.emplace_back(re[i], im[i]);
    return Tensor::from<std::complex<double>>(z, file_.at(name + ".re").shape());
  }
  /// The kinds of an op: "eig" -> "eig.batch", "eig.complex", "eig.real".
  std::set<std::string> kinds(const std::string& op) const {
    std::set<std::string> out;
    for (const std::string& name : names_) {
      if (name.rfind(op + ".", 0) == 0) out.insert(name.substr(0, name.find('.', op.size() + 1)));
    }
    return out;
  }
  const std::set<std::string>& unseen() const { return unseen_; }

 private:
  Tensor part(const std::string& name) {
    unseen_.erase(name);
    return file_.at(name);
  }
  TensorFile file_;
  std::set<std::string> names_, unseen_;
};

/// Values as row 0, vectors below.
Tensor rows(const EigResult& e) { return concat({cast(unsqueeze(e.values, -2), e.vectors.dtype()), e.vectors}, -2); }

}  // namespace

TEST_CASE("spectral ops agree with NumPy and PyTorch, values and gradients") {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> ops{
      {"eig", [](const Tensor& a) { return rows(eig(a)); }},
      {"eigvals", [](const Tensor& a) { return eigvals(a); }},
      {"eigh", [](const Tensor& a) { return rows(eigh(a)); }},
      {"svd",
       [](const Tensor& a) {
         const SvdResult s = svd(a);
         return concat({reshape(s.U, {-1}), cast(s.S, a.dtype()), reshape(s.Vh, {-1})}, 0);
       }},
      {"spectral_radius", [](const Tensor& a) { return spectral_radius(a); }}};
  Golden g;
  for (const auto& [op, f] : ops) {
    CHECK(g.kinds(op).size() >= 2);
    for (const std::string& name : g.kinds(op)) {
      CAPTURE(name);
      const Tensor a = g[name + ".a"];
      Tape tape;
      const Tensor y = f(a);
      CHECK(difference(y, g[name + ".y"]) < 1e-10);
      CHECK(difference(grad({y}, Tensors{a}, {.cotangents = {g[name + ".dy"]}})[0], g[name + ".da"]) < 1e-10);
    }
  }
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}
