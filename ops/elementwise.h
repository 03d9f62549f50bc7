// Elementwise ops from scalar functors: one template for functions of one element, one for two. What an op of this kind
// needs besides its functor is its derivative, one line in the calculus tables of unary.cpp and binary.cpp.
#pragma once
#include "ops/arg.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel {

/// A derivative: a tensor, or one number for all elements.
struct Slope {
  Slope(Tensor tensor) : tensor(std::move(tensor)) {}
  Slope(double number) : number(number) {}
  Tensor tensor;
  double number = 1;
};

// The calculus. x, a, b are inputs, y is the result, f the functor. Not defining one is a build error.
template <class F>
Slope derivative(const F& f, const Tensor& x, const Tensor& y) = delete;
template <class F>
Slope derivative_a(const Tensor& a, const Tensor& b, const Tensor& y) = delete;
template <class F>
Slope derivative_b(const Tensor& a, const Tensor& b, const Tensor& y) = delete;

#define DERIVATIVE(F) \
  template <>         \
  Slope derivative<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& x, [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_A(F)                                                                     \
  template <>                                                                               \
  Slope derivative_a<F>([[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b, \
                        [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_B(F)                                                                     \
  template <>                                                                               \
  Slope derivative_b<F>([[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b, \
                        [[maybe_unused]] const Tensor& y)

/// gradient times the conjugate of a derivative: the chain rule for holomorphic functions in the dL/dRe + i dL/dIm
/// convention.
Tensor chain(const Tensor& gradient, const Slope& derivative);

Tensor conj(Arg x);

/// A slab [T, ...] of values of rank r, with axes of 1 put behind T so that it broadcasts against values of rank
/// `rank`.
Tensor align(const Tensor& slab, int rank);

template <class F>
struct Unary {
  F f;
  static constexpr bool straight =
      std::is_same_v<F, Neg> || std::is_same_v<F, Affine> || std::is_same_v<F, Conj>;  // slope is a number
  static constexpr Traits traits{
      .name = F::name, .kind = Kind::elementwise, .reads = straight ? Reads::nothing : Reads::both};

  Spec infer(Inputs in) const {
    if (!takes<F>(in[0].dtype())) broken("{} elements are not supported", name_of(in[0].dtype()));
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const {
    static_assert(index_of<F, UnaryFunctors> >= 0, "backends know a functor by its place in UnaryFunctors");
    out.backend().map({index_of<F, UnaryFunctors>, &f, out.dtype(), out.numel(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    if constexpr (std::is_same_v<F, Conj>)
      v.set(0, conj(v.dy()));  // not holomorphic
    else
      v.set(0, chain(v.dy(), derivative(f, v.in(0), v.out())));
  }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
};

template <class F>
struct Binary {
  static constexpr bool sum = std::is_same_v<F, Add> || std::is_same_v<F, Sub>;  // slopes are numbers
  static constexpr Traits traits{.name = F::name,
                                 .kind = Kind::elementwise,
                                 .reads = sum ? Reads::nothing : Reads::both,
                                 .linear = sum,
                                 .differentiable = !F::predicate};

  Spec infer(Inputs in) const {
    const Tensor &a = in[0], &b = in[1];
    if (a.dtype() != b.dtype()) broken("both sides must have one dtype. Hint: cast one");
    if (!takes<F>(a.dtype())) broken("{} elements are not supported", name_of(a.dtype()));
    const std::optional<Shape> shape = broadcast(a.shape(), b.shape());
    if (!shape) broken("shapes do not broadcast: aligned at the last axis, extents must agree or be 1");
    return {F::predicate ? DType::boolean : a.dtype(), *shape, &a.backend()};
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
    out.backend().zip({index_of<F, BinaryFunctors>, a.dtype(), loop, a.data(), b.data(), out.data()});
  }
  void vjp(Vjp& v) const requires(!F::predicate) {
    if (v.needs(0)) v.set(0, chain(v.dy(), derivative_a<F>(v.in(0), v.in(1), v.out())));
    if (v.needs(1)) v.set(1, chain(v.dy(), derivative_b<F>(v.in(0), v.in(1), v.out())));
  }
  Tensor batch(Inputs in, Varying varying, std::int64_t) const {
    const auto step_rank = [&](std::size_t i) { return in[i].rank() - (varying[i] ? 1 : 0); };
    const int rank = std::max(step_rank(0), step_rank(1));
    const Tensor a = varying[0] ? align(in[0], rank) : in[0], b = varying[1] ? align(in[1], rank) : in[1];
    return apply(*this, {&a, &b}, Where::current());
  }
};

/// Registers Unary<F> or Binary<F> for each functor of a list.
template <template <class> class O, class... F>
bool register_ops(TypeList<F...>) {
  (op_registry().push_back(&op_of<O<F>>()), ...);
  return true;
}

}  // namespace reel
