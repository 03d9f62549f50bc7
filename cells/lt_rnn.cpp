// RNN with a linear transition (Henaff et al. 2016): the nonlinearity applies to the input only, so gradients flow back
// through V alone. LT-ORNN starts from a random orthogonal V, LT-IRNN from the identity.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class LtRnn final : public Cell {
 public:
  LtRnn(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init),
        f_(s.choice("activation")),
        pool_(s.integer("pool", 0)),
        clip_(s.real("clip", 0, init.dtype == DType::f64 ? 1e300 : 3.4e38)),
        scaled_(s.on("scale_gradient")),
        rate_(s.real("soft_orthogonal", 0)) {
    if (pool_ > 0 && n % pool_ != 0)
      throw SettingError(s.path("pool"), fmt::format("the number of units, {}, is not divisible by {}", n, pool_));
    const double bound = 1 / std::sqrt(static_cast<double>(i));
    W = parameter("W", init.uniform({n, i}, bound));
    if (f_ != "identity") b = parameter("b", init.uniform({n}, bound));
    V = parameter("V", s.choice("init") == "orthogonal" ? init.orthogonal(n) : eye(n, init.dtype, *init.backend),
                  "transition");
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor u = b.defined() ? activate(f_, linear(x, W, b)) : linear(x, W);
    const Tensor h = u + linear(state[0], V);  // h' = f(W x + b) + V h
    if (clip_ == 0) return {h};
    const Tensor size = norm(h, 2, {-1}, true);
    return {h * where(size > clip_, clip_ / maximum(size, clip_), 1.0)};
  }
  Tensor recurrent_matrix() const override { return V; }
  /// [h; P(h)], where P takes the L2 norms of groups of neighbouring units: it keeps the radius and drops the phase.
  Tensor output(const Tensors& state) const override {
    const Tensor& h = state[0];
    if (pool_ == 0) return h;
    std::vector<std::int64_t> dims(h.shape().begin(), h.shape().end());
    dims.back() /= pool_;
    dims.push_back(pool_);
    return concat({h, sqrt(sum(square(reshape(h, dims)), {-1}) + 1e-12)}, -1);
  }
  std::int64_t outputs() const override { return pool_ == 0 ? hidden : hidden + hidden / pool_; }

  /// With scale_gradient, divides every gradient that enters the states from outside by T. This is not done in step(),
  /// because gradients pass through it once per time step and would be divided by T^t.
  Sequence run(const Tensors& state, const CellInput& in, const ScanOptions& options, Loc where) const override {
    Sequence all = Cell::run(state, in, options, where);
    if (!scaled_ || in.xs.dim(0) == 0) return all;
    const auto scaled = [&](const Tensor& h) {
      if (!in.lengths.defined()) return scale_gradient(h, 1 / static_cast<double>(in.xs.dim(0)));
      const Tensor part = h / cast(reshape(maximum(in.lengths, 1.0), {-1, 1}), dtype());
      return part + stop_gradient(h - part);  // the value of h, with the gradient of h / length
    };
    if (all.hs.defined()) all.hs = scaled(all.hs);
    for (Tensor& last : all.last) last = scaled(last);
    return all;
  }

  /// One SGD step towards an orthogonal V. The paper's loss is |Vt V z - z|^2 at random points z of the unit sphere.
  /// This uses its mean over the sphere, |Vt V - I|^2 / n, since the mean of z zt is I / n: it is exact, costs no more,
  /// and needs no random numbers. Its gradient is 4 V (Vt V - I) / n.
  void updated() override {
    if (rate_ == 0) return;
    const Tensor off = matmul(V, V, {.transpose_a = true}) - eye(hidden, dtype(), device());
    V.assign(V - 4 * rate_ / static_cast<double>(hidden) * matmul(V, off));
  }

 private:
  std::string f_;
  std::int64_t pool_;
  double clip_;
  bool scaled_;
  double rate_;
  Tensor W, b, V;
};

CellType type(const std::string& name, const std::string& help, const std::string& start) {
  using enum Setting::Kind;
  return {name,
          help,
          "Henaff et al. 2016",
          "n i + n^2 + n [activation!=identity]",
          {{"activation",
            choice,
            "relu",
            "f in h' = f(W x + b) + V h; identity, which drops b, for symbols",
            {"relu", "identity", "tanh", "sigmoid", "leaky_relu", "elu", "softplus"}},
           {"init", choice, start, "initialisation of V", {"orthogonal", "identity"}},
           {"pool",
            integer,
            "0",
            "the read-out also gets the L2 norms of pools of this many neighbouring units; 0: off",
            {}},
           {"clip", real, "0", "clip the norm of the state to this; 0: off", {}},
           {"scale_gradient", choice, "off", "divide gradients that enter the states by T", {"on", "off"}},
           {"soft_orthogonal",
            real,
            "0",
            "learning rate of an extra step towards orthogonal V after each update, stable below n/4; 0: off",
            {}}},
          [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
            return std::make_unique<LtRnn>(i, n, s, init);
          }};
}

REEL_CELL(type("lt_rnn", "linear-transition RNN with orthogonal initialisation, LT-ORNN", "orthogonal"))
REEL_CELL(type("lt_irnn", "linear-transition RNN with identity initialisation, LT-IRNN", "identity"))

}  // namespace
}  // namespace reel
