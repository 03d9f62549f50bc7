// A cell that does not come with Reel, as somebody's project may have it. The tests whose tables hold every cell of
// Reel have it in their registry, and must pass.
#include "cells/cell.h"

namespace reel {
namespace {

/// h' = (1 - rate) h + rate tanh(A x + D h)
class Leaky final : public Cell {
 public:
  Leaky(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), rate_(s.real("rate", 0, 1)) {
    A = parameter("A", init.glorot_normal({n, i}));
    D = parameter("D", init.orthogonal(n));
  }

  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor& h = state[0];
    return {(1 - rate_) * h + rate_ * tanh(linear(x, A) + linear(h, D))};
  }

 private:
  double rate_;
  Tensor A, D;
};

// Without a source and a formula of its parameters, as a first trial has none.
using enum Setting::Kind;
REEL_CELL({"own_leaky",
           "leaky RNN",
           "",
           "",
           {{"rate", real, "0.5", "share of the new", {}}},
           [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
             return std::make_unique<Leaky>(i, n, s, init);
           }})

}  // namespace
}  // namespace reel
