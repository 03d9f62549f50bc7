// Fourier transforms and losses against NumPy, SciPy and PyTorch: tests/support/golden/fourier.py and losses.py.
#include <map>

#include "tests/support/golden.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::int32_t> whole_of(Golden& g, const std::string& name) { return g[name].values<std::int32_t>(); }

constexpr FftNorm norms[] = {FftNorm::backward, FftNorm::ortho, FftNorm::forward};
FftNorm norm_of(std::int32_t i) { return norms[static_cast<std::size_t>(i)]; }

/// size, hop, centre, onesided, ortho
StftOptions stft_options(const std::vector<std::int32_t>& o, const Tensor& window) {
  return {.size = o[0],
          .hop = o[1],
          .window = window,
          .centre = o[2] != 0,
          .onesided = o[3] != 0,
          .norm = o[4] != 0 ? FftNorm::ortho : FftNorm::backward};
}

}  // namespace

TEST_CASE("Fourier transforms agree with NumPy and PyTorch") {
  Golden g("fourier");
  const std::map<std::string, Tensor (*)(Arg, const FftOptions&)> along{
      {"fft.", fft}, {"ifft.", ifft}, {"rfft.", rfft}, {"irfft.", irfft}};
  for (const auto& [prefix, f] : along) {
    for (const std::string& name : g.under(prefix)) {
      const auto o = whole_of(g, name + ".options");
      FftOptions options{.axis = o[1], .norm = norm_of(o[2])};
      if (o[0] > 0) options.n = o[0];
      check(g, name, {"x"}, [&, f = f](const Tensors& x) { return f(x[0], options); });
    }
  }
  for (const std::string& name : g.under("fft2."))
    check(g, name, {"x"}, [&](const Tensors& x) { return fft2(x[0], norm_of(whole_of(g, name + ".options")[0])); });
  for (const std::string& name : g.under("ifft2."))
    check(g, name, {"x"}, [&](const Tensors& x) { return ifft2(x[0], norm_of(whole_of(g, name + ".options")[0])); });
  for (const std::string& name : g.under("stft."))
    check(g, name, {"x", "window"},
          [&](const Tensors& x) { return stft(x[0], stft_options(whole_of(g, name + ".options"), x[1])); });
  for (const std::string& name : g.under("istft."))
    check(g, name, {"x", "window"}, [&](const Tensors& x) {
      const auto o = whole_of(g, name + ".options");
      return istft(x[0], stft_options(o, x[1]), o[5]);
    });
  for (const std::int64_t n : {1, 2, 9}) {
    const std::string name = fmt::format("hann_window.{}", n);
    CHECK(difference(hann_window(n, true, DType::f64), g[name + ".periodic"]) < tolerance);
    CHECK(difference(hann_window(n, false, DType::f64), g[name + ".symmetric"]) < tolerance);
  }
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}

TEST_CASE("losses with weights, masks and reductions agree with NumPy and PyTorch") {
  Golden g("losses");
  constexpr LossReduction reductions[] = {LossReduction::mean, LossReduction::sum, LossReduction::none};
  const std::map<std::string, std::function<Tensor(const Tensors&, const LossOptions&)>> losses{
      {"mse", [](const Tensors& x, const LossOptions& o) { return mse(x[0], x[1], o); }},
      {"l1_loss", [](const Tensors& x, const LossOptions& o) { return l1_loss(x[0], x[1], o); }},
      {"huber_loss", [](const Tensors& x, const LossOptions& o) { return huber_loss(x[0], x[1], 1.25, o); }},
      {"binary_cross_entropy_with_logits",
       [](const Tensors& x, const LossOptions& o) { return binary_cross_entropy_with_logits(x[0], x[1], o); }},
      {"cross_entropy",
       [&](const Tensors& x, const LossOptions& o) { return cross_entropy(x[0], g["cross_entropy.targets"], o); }}};
  for (const auto& [loss, f] : losses) {
    for (const std::string& name : g.under(loss + ".")) {
      if (name == "cross_entropy.targets") continue;
      LossOptions o{.reduction = reductions[whole_of(g, name + ".reduction")[0]]};
      std::vector<std::string> inputs{"x"};
      if (loss != "cross_entropy") inputs.emplace_back("target");
      const bool weight_varies = g.has(name + ".dweight");
      if (weight_varies)
        inputs.emplace_back("weight");
      else if (g.has(name + ".weight"))
        o.weight = g[name + ".weight"];
      if (g.has(name + ".mask")) o.weight = cast(g[name + ".mask"], DType::boolean);
      check(g, name, inputs, [&, f = f](const Tensors& x) {
        if (weight_varies) o.weight = x.back();
        return f(x, o);
      });
    }
  }
  for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
}
