#include "ops/matrix.h"

#include <optional>

#include "ops/axes.h"

namespace reel {

std::array<Tensor, 2> broadcast_places(Arg a, Arg b) {
  if (a->rank() <= 2 || b->rank() <= 2) return {a.tensor(), b.tensor()};
  const std::optional<Shape> common = broadcast(places(a.tensor()), places(b.tensor()));
  if (!common) return {a.tensor(), b.tensor()};
  const auto expanded = [&](const Arg& x) {
    return places(x.tensor()) == *common ? x.tensor() : expand(x, with_matrix(*common, x->dim(-2), x->dim(-1)));
  };
  return {expanded(a), expanded(b)};
}

Shape common_places(Inputs in) {
  Shape shape = places(in[0]);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].rank() - 2 > shape.rank()) shape = places(in[i]);
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].rank() > 2 && !(places(in[i]) == shape))
      rule_error("leading axes differ: {} and {}", places(in[i]).str(), shape.str());
  }
  return shape;
}

Tensors for_all_steps(Inputs in, Mapped mapped, std::int64_t steps) {
  Shape step;  // the batch axes within one step
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Shape own = mapped[i] ? places(in[i]).erase(0) : places(in[i]);
    if (own.rank() > step.rank()) step = own;
  }
  Tensors out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!mapped[i] && in[i].rank() == 2) {
      out.push_back(in[i]);
      continue;
    }
    const Shape shape = with_matrix(step.insert(0, steps), in[i].dim(-2), in[i].dim(-1));
    out.push_back(expand(mapped[i] ? align(in[i], shape.rank() - 1) : in[i], shape));
  }
  return out;
}

}  // namespace reel
