// Elementwise ops from scalar functors: one template for functions of one element, one for two. What an op of this kind
// needs besides its functor is its derivative, one line in the calculus tables of unary.cpp and binary.cpp.
#pragma once
#include "ops/arg.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel {

/// A derivative: a tensor, one number for all elements, or a function of two that makes gradient times derivative from
/// the gradient and a tensor, in one pass where a product would take several.
struct Slope {
  Slope(Tensor tensor) : tensor(std::move(tensor)) {}
  Slope(double number) : number(number) {}
  Slope(Tensor (*times)(Arg, Arg), Tensor tensor) : tensor(std::move(tensor)), times(times) {}
  Tensor tensor;
  double number = 1;
  Tensor (*times)(Arg, Arg) = nullptr;
};

// The calculus. x, a, b are inputs, y is the result, f the functor. Not defining one is a build error. Of a function
// with complex inputs it is df/dz where it is holomorphic, and 2 df/dz where its values are real (docs/complex.md).
template <class F>
Slope derivative(const F& f, const Tensor& x, const Tensor& y) = delete;
template <class F>
Slope derivative_a(const F& f, const Tensor& a, const Tensor& b, const Tensor& y) = delete;
template <class F>
Slope derivative_b(const F& f, const Tensor& a, const Tensor& b, const Tensor& y) = delete;

#define DERIVATIVE(F) \
  template <>         \
  Slope derivative<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& x, [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_A(F)                                                                \
  template <>                                                                          \
  Slope derivative_a<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& a, \
                        [[maybe_unused]] const Tensor& b, [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_B(F)                                                                \
  template <>                                                                          \
  Slope derivative_b<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& a, \
                        [[maybe_unused]] const Tensor& b, [[maybe_unused]] const Tensor& y)

/// gradient times the conjugate of a derivative: the chain rule in the dL/dRe + i dL/dIm convention.
Tensor chain(const Tensor& gradient, const Slope& derivative);

/// The chain rule of functions with complex values that are not holomorphic: gradient of x from that of y = conj(x) or
/// sign(x).
Tensor chain_conj(const Tensor& dy);
Tensor chain_sign(const Tensor& dy, const Tensor& x, const Tensor& y);

/// A slab [T, ...] of values of rank r, with axes of 1 put behind T so that it broadcasts against values of rank
/// `rank`.
Tensor align(const Tensor& slab, int rank);

/// Slopes are numbers, so a derivative looks at no value.
template <class F>
inline constexpr bool is_straight =
    index_of<F, TypeList<Neg, Affine, Conj, Imag, ScaleGradient, Add, Sub, MakeComplex>> >= 0;

/// What an element costs, compared with an addition: series and divisions of their own take several times as long.
template <class F>
inline constexpr double effort_of =
    index_of<F, TypeList<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Sigmoid, Erf, Gelu,
                         Silu, Softplus, Elu, Power, Angle, Pow, Atan2, Hypot>> >= 0
        ? 4
        : 1;

template <class F>
void check_takes(DType dtype) {
  if (!takes<F>(dtype)) broken("{} elements are not supported", name_of(dtype));
}

template <class F>
struct Unary {
  [[no_unique_address]] F f;
  static constexpr Traits traits{.name = F::name,
                                 .kind = Kind::elementwise,
                                 .effort = effort_of<F>,
                                 .reads = is_straight<F> ? Reads::nothing : Reads::both,
                                 .differentiable = !is_predicate<F>};

  Spec infer(Inputs in) const {
    check_takes<F>(in[0].dtype());
    return {result_dtype<F>(in[0].dtype()), in[0].shape(), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    static_assert(index_of<F, UnaryFunctors> >= 0, "backends know a functor by its place in UnaryFunctors");
    out.backend().map({index_of<F, UnaryFunctors>, &f, in[0].dtype(), out.numel(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const requires(!is_predicate<F>) {
    if constexpr (std::is_same_v<F, Conj>)
      v.set(0, chain_conj(v.dy()));
    else if constexpr (std::is_same_v<F, Sign>)
      v.set(0, chain_sign(v.dy(), v.in(0), v.out()));
    else
      v.set(0, chain(v.dy(), derivative(f, v.in(0), v.out())));
  }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
  bool rows(Inputs, Varying) const { return true; }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::map,
                     .functor = index_of<F, UnaryFunctors>,
                     .params = &f,
                     .dtype = in[0].dtype(),
                     .to = in[0].dtype()};
  }
};

/// Rows of an op that broadcasts: those who have them have them on the result's axis 0, and the others are not as long
/// there.
inline bool broadcast_rows(Inputs in, Varying split) {
  int rank = 0;
  for (std::size_t i = 0; i < in.size(); ++i) rank = std::max(rank, in[i].rank());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (split[i] ? in[i].rank() != rank : in[i].rank() == rank && in[i].dim(0) != 1) return false;
  }
  return true;
}

template <class F>
struct Binary {
  [[no_unique_address]] F f;
  static constexpr Traits traits{.name = F::name,
                                 .kind = Kind::elementwise,
                                 .effort = effort_of<F>,
                                 .reads = is_straight<F> ? Reads::nothing : Reads::both,
                                 .linear = is_straight<F>,
                                 .differentiable = !is_predicate<F>};

  Spec infer(Inputs in) const {
    const Tensor &a = in[0], &b = in[1];
    if (a.dtype() != b.dtype()) broken("both sides must have one dtype. Hint: cast one");
    check_takes<F>(a.dtype());
    const std::optional<Shape> shape = broadcast(a.shape(), b.shape());
    if (!shape) broken("shapes do not broadcast: aligned at the last axis, extents must agree or be 1");
    return {result_dtype<F>(a.dtype()), *shape, &a.backend()};
  }
  void run(Inputs in, Tensor& out) const {
    static_assert(index_of<F, BinaryFunctors> >= 0, "backends know a functor by its place in BinaryFunctors");
    const Tensor &a = in[0], &b = in[1];
    Loop<3> loop;
    if (a.shape() == b.shape()) {
      loop.push(out.numel(), {1, 1, 1});
    } else {
      const auto sa = strides_of(a.shape()), sb = strides_of(b.shape()), so = strides_of(out.shape());
      for (int i = 0; i < out.rank(); ++i)
        loop.push(out.shape()[i], {broadcast_stride(a.shape(), sa, i, out.rank()),
                                   broadcast_stride(b.shape(), sb, i, out.rank()), so[static_cast<std::size_t>(i)]});
    }
    out.backend().zip({index_of<F, BinaryFunctors>, &f, a.dtype(), loop, a.data(), b.data(), out.data()});
  }
  void vjp(Vjp& v) const requires(!is_predicate<F>) {
    if (v.needs(0)) v.set(0, chain(v.dy(), derivative_a(f, v.in(0), v.in(1), v.out())));
    if (v.needs(1)) v.set(1, chain(v.dy(), derivative_b(f, v.in(0), v.in(1), v.out())));
  }
  Tensor batch(Inputs in, Varying varying, std::int64_t) const {
    const auto step_rank = [&](std::size_t i) { return in[i].rank() - (varying[i] ? 1 : 0); };
    const int rank = std::max(step_rank(0), step_rank(1));
    const Tensor a = varying[0] ? align(in[0], rank) : in[0], b = varying[1] ? align(in[1], rank) : in[1];
    return apply(*this, {&a, &b}, Where::current());
  }
  bool rows(Inputs in, Varying split) const { return broadcast_rows(in, split); }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::zip,
                     .functor = index_of<F, BinaryFunctors>,
                     .params = &f,
                     .dtype = in[0].dtype(),
                     .to = in[0].dtype()};
  }
};

/// Registers Unary<F> or Binary<F> for each functor of a list.
template <template <class> class O, class... F>
bool register_ops(TypeList<F...>) {
  (op_registry().push_back(&op_of<O<F>>()), ...);
  return true;
}

}  // namespace reel
