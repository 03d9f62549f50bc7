// Elementwise ops from scalar functors: one template for unary functions, one for binary ones. Apart from its functor,
// such an op needs only its derivative, one line in the tables of unary.cpp and binary.cpp.
#pragma once
#include "ops/axes.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel {

/// A derivative: a tensor, or a scalar for all elements.
struct Derivative {
  Derivative(Tensor of_elements) : tensor(std::move(of_elements)) {}
  Derivative(double of_all) : number(of_all) {}
  Tensor tensor;
  double number = 1;
};

// The derivatives: x, a, b are inputs, y is the result, f the functor. A missing one is a build error. For complex
// inputs it is df/dz where f is holomorphic, and 2 df/dz where its values are real (docs/complex.md).
template <class F>
Derivative derivative(const F& f, const Tensor& x, const Tensor& y) = delete;
template <class F>
Derivative derivative_a(const F& f, const Tensor& a, const Tensor& b, const Tensor& y) = delete;
template <class F>
Derivative derivative_b(const F& f, const Tensor& a, const Tensor& b, const Tensor& y) = delete;

#define DERIVATIVE(F)                                                                     \
  template <>                                                                             \
  Derivative derivative<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& x, \
                           [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_A(F)                                                                     \
  template <>                                                                               \
  Derivative derivative_a<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& a, \
                             [[maybe_unused]] const Tensor& b, [[maybe_unused]] const Tensor& y)
#define DERIVATIVE_B(F)                                                                     \
  template <>                                                                               \
  Derivative derivative_b<F>([[maybe_unused]] const F& f, [[maybe_unused]] const Tensor& a, \
                             [[maybe_unused]] const Tensor& b, [[maybe_unused]] const Tensor& y)

/// The chain rule in the convention dL/dRe + i dL/dIm: gradient times the conjugate of the derivative; undefined, which
/// means zero, if that is the number 0.
Tensor chain(const Tensor& gradient, const Derivative& derivative);

/// Gradient times derivative in one pass, from the gradient and the result y.
using FusedBackward = Tensor (*)(Arg dy, Arg y);
/// For a real function: is there a fused backward, which computes the gradient of its first input in one pass? And
/// which.
template <class F>
inline constexpr bool has_fused_backward = false;
template <class F>
inline constexpr FusedBackward fused_backward = nullptr;
#define FUSED_BACKWARD(F, f)                          \
  template <>                                         \
  inline constexpr bool has_fused_backward<F> = true; \
  template <>                                         \
  inline constexpr FusedBackward fused_backward<F> = f;

/// An op that has a fused backward, and its formula, which must give the same.
struct FusedForm {
  const Op& op;
  Attrs attrs;
  FusedBackward fused;
  Tensor (*formula)(Inputs in, const Tensor& y, const Tensor& dy);
};
/// All of this build; a test compares each with its formula.
std::vector<FusedForm>& fused_forms();

/// The chain rule for complex functions that are not holomorphic: the gradient of x from that of y = conj(x) or
/// sign(x).
Tensor chain_conj(const Tensor& dy);
Tensor chain_sign(const Tensor& dy, const Tensor& x, const Tensor& y);

/// Is the derivative a constant, so that the vjp reads no values?
template <class F>
inline constexpr bool is_straight =
    index_of<F, TypeList<Neg, Affine, Conj, Imag, ScaleGradient, Add, Sub, MakeComplex>> >= 0;

/// The cost per element in additions: functions that evaluate series or divide take several times as long.
template <class F>
inline constexpr double cost_of =
    index_of<F, TypeList<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Sigmoid, Erf, Gelu,
                         Silu, Softplus, Elu, Power, Angle, Pow, Atan2, Hypot>> >= 0
        ? 4
        : 1;

/// Is the derivative infinite at some number?
template <class F>
inline constexpr bool is_singular =
    index_of<F, TypeList<Reciprocal, Sqrt, Rsqrt, Log, Log1p, Asin, Acos, Power, Div, Pow, Remainder>> >= 0;

/// Throws RuleError if the functor has no elements of this dtype.
template <class F>
void check_takes(DType dtype) {
  if (!takes<F>(dtype)) refuse(dtype, takes<F>(DType::f32) && !is_differentiable(dtype) ? ". Hint: cast to f32" : "");
}

/// Do two functors have the same parameters? These are doubles.
template <class F>
bool same_parameters([[maybe_unused]] const F& a, [[maybe_unused]] const F& b) {
  if constexpr (std::is_empty_v<F>)
    return true;
  else
    return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class F>
struct Unary {
  [[no_unique_address]] F f;
  bool operator==(const Unary& other) const { return same_parameters(f, other.f); }
  static constexpr Traits traits{.name = F::name,
                                 .kind = Kind::elementwise,
                                 .cost = cost_of<F>,
                                 .saves = is_straight<F> ? Saves::nothing : Saves::both,
                                 .differentiable = !is_predicate<F>,
                                 .singular = is_singular<F>};

  Spec infer(Inputs in) const {
    check_takes<F>(in[0].dtype());
    return {result_dtype<F>(in[0].dtype()), in[0].shape(), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    static_assert(index_of<F, UnaryFunctors> >= 0, "backends know a functor by its place in UnaryFunctors");
    out.backend().map({.functor = index_of<F, UnaryFunctors>,
                       .params = f,
                       .dtype = in[0].dtype(),
                       .n = out.numel(),
                       .x = in[0].data(),
                       .out = out.data()});
  }
  void vjp(Vjp& v) const requires(!is_predicate<F>) {
    if constexpr (std::is_same_v<F, Conj>)
      v.set(0, chain_conj(v.dy()));
    else if constexpr (std::is_same_v<F, Sign>)
      v.set(0, chain_sign(v.dy(), v.in(0), v.out()));
    else if (is_complex(v.spec(0).dtype) || !has_fused_backward<F>)
      v.set(0, chain(v.dy(), derivative(f, v.in(0), v.out())));
    else
      v.set(0, fused_backward<F>(v.dy(), v.out()));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs, Mapped) const { return true; }
  std::optional<FusedCall> fuse(Inputs in) const {
    if (index_of<F, UnaryFunctors> < 0) return std::nullopt;  // no backend has a kernel for it
    return FusedCall{.kind = FusedCall::Kind::map,
                     .functor = index_of<F, UnaryFunctors>,
                     .params = f,
                     .dtype = in[0].dtype(),
                     .to = in[0].dtype()};
  }
};

/// Can a broadcasting op run on a shard of the batch? Sharded inputs must have the batch on the result's axis 0, and
/// the others must broadcast along it.
inline bool broadcast_rows(Inputs in, Mapped sharded) {
  int rank = 0;
  for (std::size_t i = 0; i < in.size(); ++i) rank = std::max(rank, in[i].rank());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (sharded[i] ? in[i].rank() != rank : in[i].rank() == rank && in[i].dim(0) != 1) return false;
  }
  return true;
}

template <class F>
struct Binary {
  [[no_unique_address]] F f;
  bool operator==(const Binary& other) const { return same_parameters(f, other.f); }
  static constexpr Traits traits{.name = F::name,
                                 .kind = Kind::elementwise,
                                 .cost = cost_of<F>,
                                 .saves = is_straight<F> ? Saves::nothing : Saves::both,
                                 .linear = is_straight<F>,
                                 .differentiable = !is_predicate<F>,
                                 .singular = is_singular<F>};

  Spec infer(Inputs in) const {
    const Tensor &a = in[0], &b = in[1];
    if (a.dtype() != b.dtype()) rule_error("both sides must have one dtype. Hint: cast one");
    check_takes<F>(a.dtype());
    const std::optional<Shape> shape = broadcast(a.shape(), b.shape());
    if (!shape) rule_error("shapes do not broadcast: aligned at the last axis, extents must agree or be 1");
    return {result_dtype<F>(a.dtype()), *shape, &a.backend()};
  }
  void run(Inputs in, Tensor& out) const {
    static_assert(index_of<F, BinaryFunctors> >= 0, "backends know a functor by its place in BinaryFunctors");
    const Tensor &a = in[0], &b = in[1];
    ZipArgs args{.functor = index_of<F, BinaryFunctors>,
                 .params = f,
                 .dtype = a.dtype(),
                 .loop = {},
                 .a = a.data(),
                 .b = b.data(),
                 .out = out.data()};
    StridedLoop<3>& loop = args.loop;
    if (a.shape() == b.shape()) {
      loop.push(out.numel(), {1, 1, 1});
    } else {
      const auto sa = strides_of(a.shape()), sb = strides_of(b.shape()), so = strides_of(out.shape());
      for (int i = 0; i < out.rank(); ++i)
        loop.push(out.shape()[i], {broadcast_stride(a.shape(), sa, i, out.rank()),
                                   broadcast_stride(b.shape(), sb, i, out.rank()), so[static_cast<std::size_t>(i)]});
    }
    out.backend().zip(args);
  }
  void vjp(Vjp& v) const requires(!is_predicate<F>) {
    if (v.needs(0))
      v.set(0, has_fused_backward<F> ? fused_backward<F>(v.dy(), v.out())
                                     : chain(v.dy(), derivative_a(f, v.in(0), v.in(1), v.out())));
    if (v.needs(1)) v.set(1, chain(v.dy(), derivative_b(f, v.in(0), v.in(1), v.out())));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t) const {
    const auto step_rank = [&](std::size_t i) { return in[i].rank() - (mapped[i] ? 1 : 0); };
    const int rank = std::max(step_rank(0), step_rank(1));
    const Tensor a = mapped[0] ? align(in[0], rank) : in[0], b = mapped[1] ? align(in[1], rank) : in[1];
    return apply(*this, {&a, &b}, Loc::current());
  }
  bool shards_rows(Inputs in, Mapped sharded) const { return broadcast_rows(in, sharded); }
  std::optional<FusedCall> fuse(Inputs in) const {
    if (index_of<F, BinaryFunctors> < 0) return std::nullopt;  // no backend has a kernel for it
    return FusedCall{.kind = FusedCall::Kind::zip,
                     .functor = index_of<F, BinaryFunctors>,
                     .params = f,
                     .dtype = in[0].dtype(),
                     .to = in[0].dtype()};
  }
};

/// The gradient of F's first argument, by its derivative as a composition of ops.
template <class F>
Tensor gradient_by_formula(Inputs in, const Tensor& y, const Tensor& dy) {
  if constexpr (index_of<F, UnaryFunctors> >= 0)
    return chain(dy, derivative(F{}, in[0], y));
  else
    return chain(dy, derivative_a(F{}, in[0], in[1], y));
}

/// Registers Unary<F> or Binary<F>.
template <class O, class F>
void register_op() {
  op_registry().push_back(&op_of<O>());
  if constexpr (has_fused_backward<F>)
    fused_forms().push_back({op_of<O>(), Attrs(O{}), fused_backward<F>, gradient_by_formula<F>});
}

/// Registers Unary<F> or Binary<F> for each functor of a list.
template <template <class> class O, class... F>
bool register_ops(TypeList<F...>) {
  (register_op<O<F>, F>(), ...);
  return true;
}

}  // namespace reel
