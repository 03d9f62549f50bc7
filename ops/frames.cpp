// Overlapping frames of the last axis: frame and overlap_add are each other's vjp.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace reel {

namespace {

struct Frame {  // [..., n] -> [..., frames, size]
  std::int64_t size, hop;
  bool operator==(const Frame&) const = default;
  static constexpr Traits traits{.name = "frame", .kind = Kind::movement, .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const {
    if (in[0].rank() == 0) rule_error("one axis or more is needed");
    if (size < 1 || hop < 1) rule_error("size and hop are 1 or more, got {} and {}", size, hop);
    const std::int64_t n = in[0].dim(-1);
    if (n < size) rule_error("a frame of {} does not fit into {} elements", size, n);
    const int last = in[0].rank() - 1;
    Shape shape = in[0].shape();
    shape.set(last, size);
    shape = shape.insert(last, (n - size) / hop + 1);
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const std::int64_t n = in[0].dim(-1), frames = out.dim(-2), rows = in[0].shape().product(0, in[0].rank() - 1);
    StridedLoop<2> loop;
    loop.push(rows, {n, frames * size});
    loop.push(frames, {hop, size});
    loop.push(size, {1, 1});
    out.backend().copy({out.dtype(), loop, in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    const Shape& shape = v.spec(0).shape;
    const Tensor dx = overlap_add(v.dy(), hop);  // without the elements after the last frame
    v.set(0, pad(dx, -1, 0, shape[shape.rank() - 1] - dx.dim(-1)));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return frame(in[0], size, hop); }
};
REEL_OP(Frame)

struct OverlapAdd {  // [..., frames, size] -> [..., (frames - 1) hop + size]
  std::int64_t hop;
  bool operator==(const OverlapAdd&) const = default;
  static constexpr Traits traits{.name = "overlap_add", .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const {
    check_takes<Add>(in[0].dtype());
    const int r = in[0].rank();
    if (r < 2) rule_error("two axes or more are needed: frames and their elements");
    if (in[0].dim(-1) < 1 || in[0].dim(-2) < 1) rule_error("there must be a frame, and an element in it");
    if (hop < 1) rule_error("the hop is 1 or more, got {}", hop);
    Shape shape = in[0].shape().erase(r - 1);
    shape.set(r - 2, saturated_sum(saturated_product(in[0].dim(-2) - 1, hop), in[0].dim(-1)));
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  // Elements first..first+hop-1 of different frames do not overlap in the output, so one addition handles all frames.
  void run(Inputs in, Tensor& out) const {
    Backend& b = out.backend();
    b.fill({out.dtype(), out.numel(), 0, out.data()});
    const std::int64_t frames = in[0].dim(-2), size = in[0].dim(-1), n = out.dim(-1);
    const std::int64_t rows = out.shape().product(0, out.rank() - 1);
    for (std::int64_t first = 0; first < size; first += hop) {
      StridedLoop<3> loop;
      loop.push(rows, {n, frames * size, n});
      loop.push(frames, {hop, size, hop});
      loop.push(std::min(hop, size - first), {1, 1, 1});
      const std::size_t skip = static_cast<std::size_t>(first) * size_of(out.dtype());
      std::byte* const place = static_cast<std::byte*>(out.data()) + skip;
      b.zip({index_of<Add, BinaryFunctors>, Add{}, out.dtype(), loop, place,
             static_cast<const std::byte*>(in[0].data()) + skip, place});
    }
  }
  void vjp(Vjp& v) const {
    const Shape& shape = v.spec(0).shape;
    v.set(0, frame(v.dy(), shape[shape.rank() - 1], hop));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return overlap_add(in[0], hop); }
};
REEL_OP(OverlapAdd)

}  // namespace

Tensor frame(Arg x, std::int64_t size, std::int64_t hop) { return apply(Frame{size, hop}, x); }
Tensor overlap_add(Arg x, std::int64_t hop) { return apply(OverlapAdd{hop}, x); }

}  // namespace reel
