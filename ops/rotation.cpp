#include "ops/rotation.h"

#include "ops/attributes.h"
#include "ops/axes.h"
#include "ops/ops.h"
#include "ops/sum_rows.h"

namespace reel {

namespace {

std::int64_t pairs_end(RotationLayer l, std::int64_t n) {
  if (l.distance > (n - l.offset) / 2) return l.offset;
  return l.offset + (n - l.offset) / (2 * l.distance) * (2 * l.distance);
}

void check_layer(RotationLayer l, const Tensor& x) {
  if (x.rank() == 0) rule_error("one axis or more is needed");
  if (l.offset < 0 || l.distance < 1 || l.offset > x.dim(-1))
    rule_error("a layer begins within the last axis and has a distance of 1 or more, got offset {} and distance {}",
               l.offset, l.distance);
}

/// Rotates the pairs of a layer by C and S [n]; exchanges them where these are null.
void run_layer(const RotationLayer& layer, const Tensor& x, const void* C, const void* S, Tensor& out) {
  const std::int64_t n = out.dim(-1), last = pairs_end(layer, n);
  out.backend().rotate({.dtype = out.dtype(),
                        .rows = n == 0 ? 0 : out.numel() / n,
                        .n = n,
                        .first = layer.offset,
                        .last = last,
                        .distance = last > layer.offset ? layer.distance : 1,
                        .x = x.data(),
                        .c = C,
                        .s = S,
                        .out = out.data()});
}

/// The sum of x y over all axes but the last one, [n].
Tensor sum_of_products(const Tensor& x, const Tensor& y, const Shape& row) {
  return sum_to(loop_adds_rows(x, row) ? sum_products(x, y) : x * y, row);
}

struct Exchange {
  RotationLayer layer;
  bool operator==(const Exchange&) const = default;
  static constexpr Traits traits{.name = "exchange", .kind = Kind::movement, .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const {
    check_layer(layer, in[0]);
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const { run_layer(layer, in[0], nullptr, nullptr, out); }
  void vjp(Vjp& v) const { v.set(0, exchange(v.dy(), layer)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return exchange(in[0], layer); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Exchange)
REEL_ATTRIBUTES(Exchange, {"offset", attribute(op.layer.offset)}, {"distance", attribute(op.layer.distance)})

struct Rotate {  // x [..., n], C [n], S [n]
  RotationLayer layer;
  bool operator==(const Rotate&) const = default;
  static constexpr Traits traits{.name = "rotate", .kind = Kind::movement, .saves = Saves::inputs};
  Spec infer(Inputs in) const {
    check_layer(layer, in[0]);
    if (in[1].dtype() != in[0].dtype() || in[2].dtype() != in[0].dtype())
      rule_error("x, C and S must have one dtype. Hint: cast one");
    if (!is_differentiable(in[0].dtype())) rule_error("{} elements are not supported", name_of(in[0].dtype()));
    const Shape row{in[0].dim(-1)};
    if (!(in[1].shape() == row) || !(in[2].shape() == row))
      rule_error("C and S must be {}, as the last axis of x", row.str());
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const { run_layer(layer, in[0], in[1].data(), in[2].data(), out); }
  // y = C x + S Px with P the exchange, which is its own inverse: dx = C* dy + P S* dy, dC = x* dy, dS = P (x* P dy),
  // where a loop exchanges the sum of all steps.
  void vjp(Vjp& v) const {
    const Tensor& dy = v.dy();
    if (v.needs(0)) v.set(0, rotate(dy, conj(v.in(1)), exchange(conj(v.in(2)), layer), layer));
    if (v.needs(1)) v.set(1, sum_of_products(conj(v.in(0)), dy, v.spec(1).shape));
    if (v.needs(2)) v.set(2, exchange(sum_of_products(conj(v.in(0)), exchange(dy, layer), v.spec(2).shape), layer));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    if (!mapped[1] && !mapped[2]) return apply(*this, in, Loc::current());
    const Tensor x = mapped[0] ? in[0] : expand(in[0], in[0].shape().insert(0, steps));
    const auto row = [&](std::size_t i) { return mapped[i] ? align(in[i], x.rank() - 1) : in[i]; };
    return row(1) * x + row(2) * exchange(x, layer);
  }
  bool shards_rows(Inputs in, Mapped sharded) const {
    return in[0].rank() > 1 && sharded[0] && !sharded[1] && !sharded[2];
  }
};
REEL_OP(Rotate)
REEL_ATTRIBUTES(Rotate, {"offset", attribute(op.layer.offset)}, {"distance", attribute(op.layer.distance)})

}  // namespace

std::int64_t RotationLayer::partner(std::int64_t j, std::int64_t n) const {
  if (j < offset || j >= pairs_end(*this, n)) return j;
  return (j - offset) / distance % 2 == 0 ? j + distance : j - distance;
}

Tensor exchange(Arg x, RotationLayer layer) { return apply(Exchange{layer}, x); }
Tensor rotate(Arg x, Arg C, Arg S, RotationLayer layer) { return apply(Rotate{layer}, x, C, S); }

Rotations Rotations::fft(std::int64_t n) {
  if (n < 2 || (n & (n - 1)) != 0)
    throw Error("rotations",
                fmt::format("the FFT style needs a power of two, got {} coordinates. Hint: use the tunable style", n));
  std::vector<RotationLayer> layers;
  for (std::int64_t d = n / 2; d > 0; d /= 2) layers.push_back({0, d});
  Rotations r(n, std::move(layers));
  r.angles_ = n / 2 * static_cast<std::int64_t>(r.layers_.size());
  for (std::size_t l = 0; l < r.layers_.size(); ++l) {
    const std::int64_t starts = std::int64_t{1} << l, count = n / starts;
    for (std::int64_t j = 0; j < n; ++j) {  // the order of EUNN's code: 0, 2^l, 2 2^l, ..., then 1, 1 + 2^l, ...
      const std::int64_t p = std::min(j, r.layers_[l].partner(j, n));
      const std::int64_t place = p / count + p % count * starts;
      r.angle_of_.push_back(static_cast<std::int32_t>(n / 2 * static_cast<std::int64_t>(l) + place % (n / 2)));
    }
  }
  return r;
}

Rotations Rotations::tunable(std::int64_t n, std::int64_t capacity) {
  if (n < 2 || n % 2 != 0) throw Error("rotations", fmt::format("an even number of coordinates is needed, got {}", n));
  if (capacity < 2 || capacity % 2 != 0)
    throw Error("rotations", fmt::format("the capacity is an even number of layers, got {}", capacity));
  std::vector<RotationLayer> layers;
  for (std::int64_t l = 0; l < capacity; ++l) layers.push_back({l % 2, 1});
  Rotations r(n, std::move(layers));
  for (std::int64_t l = 0; l < capacity; ++l) r.angles_ += n / 2 - l % 2;
  std::int64_t first = 0;
  for (const RotationLayer& layer : r.layers_) {
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t partner = layer.partner(j, n);
      r.angle_of_.push_back(
          static_cast<std::int32_t>(partner == j ? r.angles_ : first + (std::min(j, partner) - layer.offset) / 2));
    }
    first += n / 2 - layer.offset;
  }
  return r;
}

Tensor Rotations::angle_index(Backend& backend, int only) const {
  std::vector<std::int32_t> index = angle_of_;
  for (std::size_t k = 0; k < index.size() && only >= 0; ++k) {
    const std::int64_t j = static_cast<std::int64_t>(k) % n_;
    const bool second = layers_[k / static_cast<std::size_t>(n_)].partner(j, n_) < j;
    if (second != (only == 1)) index[k] = static_cast<std::int32_t>(angles_);
  }
  return Tensor::from(std::span<const std::int32_t>(index), {static_cast<std::int64_t>(layers_.size()), n_}, backend);
}

Tensor Rotations::signs(DType dtype, Backend& backend) const {
  std::vector<double> sign;
  for (const RotationLayer& layer : layers_) {
    for (std::int64_t j = 0; j < n_; ++j) {
      const std::int64_t partner = layer.partner(j, n_);
      sign.push_back(partner == j ? 0 : partner > j ? -1 : 1);
    }
  }
  return cast(Tensor::from(std::span<const double>(sign), {static_cast<std::int64_t>(layers_.size()), n_}, backend),
              dtype);
}

namespace {
/// Gathers from values [k] with `last` appended, by index [...] -> [...].
Tensor look_up(const Tensor& index, const Tensor& values, double last) {
  const Tensor extended = concat({values, full({1}, last, values.dtype(), values.backend())}, 0);
  const Tensor rows = embedding(index, reshape(extended, {-1, 1}));
  return reshape(rows, {index.shape().begin(), index.shape().end()});
}
}  // namespace

Rotations::Tables Rotations::tables(Arg theta) const {
  need_tensors("rotations", {&theta});
  if (!(theta->shape() == Shape{angles_}))
    fail("rotations", theta.where, "{} angles are needed; got {}", angles_, theta->spec().str());
  const Tensor index = angle_index(theta->backend());
  return {look_up(index, cos(theta), 1), look_up(index, sin(theta), 0) * signs(theta->dtype(), theta->backend())};
}

Rotations::Tables Rotations::tables(Arg theta, Arg phi) const {
  const auto [C, S] = tables(theta);
  need_tensors("rotations", {&phi});
  if (!(phi->shape() == theta->shape()))
    fail("rotations", phi.where, "phi must be as theta, {}; got {}", theta->spec().str(), phi->spec().str());
  const Tensor e = polar(1.0, phi);
  return {C * look_up(angle_index(phi->backend(), 1), e, 1), S * look_up(angle_index(phi->backend(), 0), e, 1)};
}

Tensor Rotations::operator()(Arg x, const Tables& tables) const {
  Tensor y = x;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto row = static_cast<std::int64_t>(l);
    y = rotate({y, x.where}, at(tables.C, row), at(tables.S, row), layers_[l]);
  }
  return y;
}

}  // namespace reel
