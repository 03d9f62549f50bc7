// An elementwise op that Reel does not have, squareplus (Barron 2021): y = (x + sqrt(x^2 + b)) / 2, with its
// derivative, used on a tape, differentiated twice, and in a loop over time.
#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace reel;

namespace {

struct Squareplus {
  double b;  // an attribute, the same for all elements
  bool operator==(const Squareplus&) const = default;
  static constexpr Traits traits{.name = "squareplus", .kind = Kind::elementwise, .cost = 4};

  Spec infer(Inputs in) const {
    if (!takes(in[0].dtype())) rule_error("f32 or f64 is expected");
    if (in[0].backend().name() != "cpu") rule_error("this op computes on the cpu alone");
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const {
    if (out.dtype() == DType::f32)
      loop<float>(in[0], out);
    else
      loop<double>(in[0], out);
  }
  // In ops, so that it can be differentiated again: dy/dx = y / sqrt(x^2 + b), and sqrt(x^2 + b) = 2 y - x.
  void vjp(Vjp& v) const { v.set(0, v.dy() * v.out() / (2 * v.out() - v.in(0))); }

  // For loops over time: all steps in one call; and threads may share the rows of a batch.
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs, Mapped) const { return true; }

 private:
  static bool takes(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
  template <class T>
  void loop(const Tensor& x, Tensor& out) const {
    const T* from = x.data_as<T>();
    T* to = out.data_as<T>();
    const T c = static_cast<T>(b);
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const T a = from[i], root = std::sqrt(a * a + c);
      to[i] = a < 0 ? c / (2 * (root - a)) : (a + root) / 2;  // the same, without a difference of like numbers
    }
  }
};
REEL_OP(Squareplus)

Tensor squareplus(Arg x, double b = 4) { return apply(Squareplus{b}, x); }

}  // namespace

int main() try {
  const Tensor x = Tensor::from<double>({-2, -0.5, 0, 1, 3}, {5});
  const Tape tape;
  const Tensor y = squareplus(x);
  const auto [dx] = grad(sum(y), {x}, {.create_graph = true});
  const auto [ddx] = grad(sum(dx), {x});
  double error = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const double a = x.at(i).item(), s = std::sqrt(a * a + 4);
    std::printf("x %4.1f   y %.4f   dy/dx %.4f   d2y/dx2 %.4f\n", a, y.at(i).item(), dx.at(i).item(), ddx.at(i).item());
    error =
        std::max({error, std::abs(dx.at(i).item() - (1 + a / s) / 2), std::abs(ddx.at(i).item() - 2 / (s * s * s))});
  }
  std::printf("error of the derivatives: %.0e\n", error);
  check_grads([](const Tensors& in) { return squareplus(in[0]); }, {x});  // throws if they are wrong

  // As the activation of a recurrent network: a scan, and the same as a plain loop of ops.
  const Tensor W = normal({8, 8}, 0, 0.3, 1, 1, DType::f64), xs = normal({50, 4, 8}, 0, 1, 1, 2, DType::f64);
  const Tensor h0 = Tensor::zeros({4, 8}, DType::f64);
  const auto step = [&](const Tensors& state, const Tensors& in) -> Next {
    const Tensor h = squareplus(matmul(state[0], W) + in[0]) - 1;
    return {{h}, {}};
  };
  const auto [by_scan] = grad(mean(square(scan(step, {h0}, {xs}).last[0])), {W});
  const auto [by_loop] = grad(mean(square(unroll(step, {h0}, {xs}).last[0])), {W});
  const double difference = max(abs(by_scan - by_loop)).item();
  std::printf("gradient through 50 time steps: scan and loop differ by %.0e\n", difference);
  return error < 1e-14 && difference < 1e-12 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "own_op: %s\n", e.what());
  return 1;
}
