// Non-saturating recurrent unit (Chandar et al. 2019): a memory that heads write to and erase from, without gates that
// could saturate. The paper's text gives parts of the equations; its code (apsarath/NRU) gives all of them.
#include <cmath>

#include "cells/gate.h"

namespace reel {
namespace {

class Nru final : public Cell {
 public:
  Nru(std::int64_t i, std::int64_t n, const Settings& s, Init& init)
      : Cell(i, n, init),
        M(s.integer("memory", 1)),
        k(s.integer("heads", 1, 1 << 16)),
        side_(std::llround(std::sqrt(static_cast<double>(M * k)))),
        relu_heads_(s.choice("head_activation") == "relu"),
        mean_(s.choice("combine") == "mean"),
        multiply_(s.choice("update") == "multiply"),
        limit_(s.real("norm_limit", 0)),
        f_(s.choice("activation")) {
    if (side_ * side_ != M * k)
      throw SettingError("nru.memory",
                         fmt::format("the root of memory times heads must be whole, as a head's vector is "
                                     "an outer product; got {} times {}",
                                     M, k));
    const auto layer = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      const double bound = 1 / std::sqrt(static_cast<double>(in));  // PyTorch Linear's initialisation
      return Layer{parameter("W_" + name, init.uniform({out, in}, bound)),
                   parameter("b_" + name, init.uniform({out}, bound))};
    };
    h_ = layer("h", i + n + M, n);
    alpha_ = layer("alpha", n + M, k);
    beta_ = layer("beta", n + M, k);
    v_alpha_ = layer("valpha", n + M, 2 * side_);
    v_beta_ = layer("vbeta", n + M, 2 * side_);
    if (s.choice("norm") == "layer")
      norm_ = {parameter("g", init.constant({n}, 1)), parameter("beta", init.constant({n}, 0))};
  }
  std::vector<State> states() const override { return {{"h", hidden}, {"m", M}}; }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor &h = state[0], &m = state[1];
    // h' = ReLU(W_h [x; h; m] + b_h), as a sum of products, so that nothing is concatenated.
    const auto part = [](const Tensor& W, std::int64_t from, std::int64_t to) { return slice(W, 1, from, to); };
    const Tensor W_x = part(h_.W, 0, input), W_h = part(h_.W, input, input + hidden),
                 W_m = part(h_.W, input + hidden, h_.W.dim(1));
    const Tensor next = activate(f_, norm_(linear(x, W_x, h_.b) + linear(h, W_h) + linear(m, W_m)));
    // alpha and beta, then the left and the right halves of v_alpha and v_beta, of the new h and the old memory: one
    // product [B, 2 k + 4 s], so that the heads that write and those that erase are computed together.
    const Tensor W = in_order(alpha_.W, beta_.W, v_alpha_.W, v_beta_.W),
                 b = in_order(alpha_.b, beta_.b, v_alpha_.b, v_beta_.b);
    const Tensor heads = linear(next, part(W, 0, hidden), b) + linear(m, part(W, hidden, W.dim(1)));
    const std::int64_t v = 2 * k, right = v + 2 * side_;
    const Tensor written =
        sum_of_heads(part(heads, 0, v), outer(part(heads, v, right), part(heads, right, heads.dim(1))));
    return {next, multiply_ ? m * written : m + written};
  }

 private:
  struct Layer {
    Tensor W, b;
  };
  Tensor phi(const Tensor& a) const { return relu_heads_ ? relu(a) : a; }
  static Tensor in_order(const Tensor& alpha, const Tensor& beta, const Tensor& v_alpha, const Tensor& v_beta) {
    const Tensors a = split(v_alpha, 2, 0), b = split(v_beta, 2, 0);
    return concat({alpha, beta, a[0], b[0], a[1], b[1]}, 0);
  }
  /// Where each head writes or erases: outer products of halves, [B, 2 s] each, are 2 s^2 = 2 k M numbers, which form
  /// 2 k vectors [B, 2 k, M].
  Tensor outer(const Tensor& left, const Tensor& right) const {
    const Tensor product = reshape(left, {-1, 2, side_, 1}) * reshape(right, {-1, 2, 1, side_});
    return phi(reshape(product, {-1, 2 * k, M}));
  }
  /// The sum (or mean) over heads of the unit vectors (of L5 norm 1) along v [B, 2 k, M], times alpha where a head
  /// writes and -beta where it erases: [B, M].
  Tensor sum_of_heads(const Tensor& alpha_beta, const Tensor& v) const {
    const Tensor share = full({k}, mean_ ? 1.0 / static_cast<double>(k) : 1.0, dtype(), device());
    const Tensor a = reshape(phi(alpha_beta) * concat({share, -share}, 0), {-1, 2 * k, 1});
    const Tensor length = norm(v, 5, {-1}, true), factor = a / maximum(length, 1e-12);
    return sum((limit_ > 0 ? where(length > limit_, 0, factor) : factor) * v, {1});
  }

  const std::int64_t M, k;
  std::int64_t side_;
  bool relu_heads_, mean_, multiply_;
  double limit_;
  std::string f_;
  Layer h_, alpha_, beta_, v_alpha_, v_beta_;
  Norm norm_;
};

using enum Setting::Kind;
REEL_CELL(
    {"nru",
     "non-saturating recurrent unit: a memory with write and erase heads",
     "Chandar et al. 2019; formulas after their code",
     "n (i + n + M + 1) + 2 (n + M + 1) (k + 2 s) + 2 n [norm=layer], M = memory, k = heads, s = sqrt(M k)",
     {{"memory", integer, "64", "M: memory size; M times heads must be a square", {}},
      {"heads", integer, "4", "k: number of write heads, and of erase heads", {}},
      {"head_activation",
       choice,
       "linear",
       "activation of the heads; ReLU in the paper's language model: if states are carried over, as in charlm, the "
       "memory "
       "of linear heads grows to NaN, and a lower learning rate or clipping does not help",
       {"linear", "relu"}},
      {"combine",
       choice,
       "mean",
       "reduction over the heads' changes: mean as in the code, sum as in the paper's text",
       {"mean", "sum"}},
      {"norm", choice, "none", "layer normalisation of the pre-activation of h", {"none", "layer"}},
      {"update",
       choice,
       "add",
       "add the change to the memory, or multiply by it (needs a memory that is not 0)",
       {"add", "multiply"}},
      {"norm_limit",
       real,
       "0",
       "vectors with a larger L5 norm are replaced by zeros; 0: off. The published code has 5.0859e7, where a sum of "
       "fifth powers overflows in f32: that alone keeps its memory from growing without bound over 784 steps",
       {}},
      {"activation", choice, "relu", "activation of h", {"relu", "tanh"}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<Nru>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
