// The tape and grad(): what is recorded, what is an error, and what the engine does for the author of an op.
#include <algorithm>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// An op that declares it has no derivative.
struct Opaque {
  static constexpr Traits traits{.name = "opaque", .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0]); }
};

/// An op whose author takes the real part of the gradient of a complex input.
struct Forgetful {
  static constexpr Traits traits{.name = "forgetful", .kind = Kind::elementwise};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0]); }
  void vjp(Vjp& v) const { v.set(0, real(v.dy())); }
};

/// An op whose author has made a mistake.
struct Mistaken {
  enum Kind { set, in, out, dy, needs, spec, shape, no_device, one_step, other_dtype, nothing } kind;
  bool operator==(const Mistaken&) const = default;
  static constexpr Traits traits{.name = "mistaken"};
  Spec infer(Inputs in) const { return kind == no_device ? Spec{in[0].dtype(), in[0].shape()} : in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0]); }
  void vjp(Vjp& v) const {
    if (kind == set) v.set(1, v.dy());
    if (kind == in) v.set(0, v.in(2));
    if (kind == out) v.set(0, v.out(1));
    if (kind == dy) v.set(0, v.dy(3));
    if (kind == needs && v.needs(1)) return;
    if (kind == spec) v.set(0, Tensor::zeros(v.spec(1).shape));
    v.set(0, kind == shape ? sum(v.dy()) : v.dy());
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    return kind == one_step      ? at(in[0], 0)
           : kind == other_dtype ? cast(in[0], DType::f32)
           : kind == nothing     ? Tensor()
                                 : in[0];
  }
};
Tensor mistaken(Mistaken::Kind kind, const Tensor& x) { return apply(Mistaken{kind}, {&x}, Loc::current()); }

/// An op that uses it in its derivative alone.
struct Backwards {
  Mistaken::Kind kind;
  bool operator==(const Backwards&) const = default;
  static constexpr Traits traits{.name = "backwards"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0]); }
  void vjp(Vjp& v) const { v.set(0, mistaken(kind, v.dy())); }
};

}  // namespace

TEST_CASE("values are there at once, gradients are tensors, second order on request") {
  const Tensor x = Tensor::from<double>({1, 2, 3}, {3});
  Tape tape;
  const Tensor y = x * x * x;
  CHECK(y.values<double>() == std::vector<double>{1, 8, 27});
  const auto [first] = grad(sum(y), {x}, {.create_graph = true});
  CHECK(first.values<double>() == std::vector<double>{3, 12, 27});
  const auto [second] = grad(sum(first), {x}, {.create_graph = true});
  CHECK(second.values<double>() == std::vector<double>{6, 12, 18});
  const auto [third] = grad(sum(second), {x});
  CHECK(third.values<double>() == std::vector<double>{6, 6, 6});
}

TEST_CASE("gradients with respect to values in the middle, of several outputs, and of what does not matter") {
  const Tensor a = random({3}, 1), b = random({3}, 2), unused = random({2}, 3);
  Tape tape;
  const Tensor m = a * b, y = sum(m * m), z = sum(m);
  const auto g = grad({y, z}, {a, m, unused}, {});
  CHECK(difference(g[0], b * (2.0 * m + 1.0)) < 1e-14);
  CHECK(difference(g[1], 2.0 * m + 1.0) < 1e-14);
  CHECK(difference(g[2], Tensor::zeros({2}, DType::f64)) == 0);
}

TEST_CASE("a gradient can be taken with a cotangent, and again from the same tape") {
  const Tensor x = random({2, 3}, 1), w = random({2, 3}, 2);
  Tape tape;
  const Tensor y = square(x);
  for (int i = 0; i < 2; ++i) CHECK(difference(grad({y}, Tensors{x}, {.cotangents = {w}})[0], 2.0 * x * w) < 1e-15);
}

TEST_CASE("complex gradients are dL/dRe + i dL/dIm; a real input gets the real part") {
  using C = std::complex<double>;
  const Tensor z = Tensor::from<C>({C(1, 2)}, {1}), r = Tensor::from<double>({3}, {1});
  Tape tape;
  const Tensor loss = real(sum(z * conj(z) * r));  // r |z|^2
  const auto [dz, dr] = grad(loss, {z, r});
  CHECK(dz.values<C>()[0] == C(6, 12));
  CHECK(dr.values<double>()[0] == 5);
  CHECK(dr.dtype() == DType::f64);
}

TEST_CASE("errors of grad say what to do") {
  const Tensor x = random({3}, 1);
  CHECK(contains(error_of([&] { grad(sum(x), {x}); }), "there is no tape. Hint: create a Tape before"));
  const Tensor before = sum(x);
  Tape tape;
  CHECK(contains(error_of([&] { grad(before, {x}); }), "computed before this tape began"));
  const std::string scalar = error_of([&] { grad(x * 2, {x}); });
  CHECK(contains(scalar, "f64 (3,)"));
  CHECK(contains(scalar, "Hint: sum() or mean() it"));
  CHECK(contains(scalar, "tests/autodiff/tape_test.cpp:"));
  CHECK(contains(error_of([&] { grad(sum(x), {cast(x, DType::i32)}); }), "only floating point has gradients"));
  CHECK(contains(error_of([&] { grad(sum(x * 1), {Tensor()}); }), "undefined tensor"));
}

TEST_CASE("an op without a derivative is named, with the line that called it, when one is asked for") {
  const Tensor x = random({3}, 1);
  Tape tape;
  const Tensor y = apply(Opaque{}, {&x}, Loc::current());
  const std::string text = error_of([&] { grad(sum(y), {x}); });
  CHECK(contains(text, "[opaque] this op has no derivative"));
  CHECK(contains(text, "tests/autodiff/tape_test.cpp:"));
}

TEST_CASE("an error of an op that a vjp calls names the op of the user and its line first") {
  const Tensor ones = Tensor::full({2, 2}, 1.0);  // it has no inverse, which these gradients need
  const auto told = [&](const std::string& op, const std::function<Tensor()>& f) {
    const Tape tape;
    const Tensor y = sum(f());
    const std::string text = error_of([&] { grad(y, {ones}); });
    CHECK_MESSAGE(text.starts_with("in the gradient of " + op + " (tests/autodiff/tape_test.cpp:"), text);
    CHECK_MESSAGE(contains(text, "singular"), text);
  };
  told("det", [&] { return det(ones); });
  told("slogdet", [&] { return slogdet(ones).log_abs; });
  told("lu", [&] { return lu(ones).U; });
  told("qr", [&] { return qr(ones).R; });
}

TEST_CASE("a vjp that gives another dtype is named, in a scan, too") {
  const auto complex_loss = [](const Tensor& z) { return sum(square(abs(apply(Forgetful{}, {&z}, Loc::current())))); };
  const Tensor x = random({2, 3}, 1), z = complex(x, x);
  Tape tape;
  CHECK(contains(error_of([&] { grad(complex_loss(z), {z}); }),
                 "[forgetful] its vjp gives f64 (2, 3) for input 0, which is c128 (2, 3)"));
  const Step step = [](const Tensors& s, const Tensors&) {
    return Next{{apply(Forgetful{}, {&s[0]}, Loc::current())}, {}};
  };
  const ScanResult r = scan(step, {z}, {}, {.length = 3});
  CHECK(contains(error_of([&] { grad(sum(square(abs(r.last[0]))), {z}); }), "[forgetful] its vjp gives f64 (2, 3)"));
}

TEST_CASE("a vjp that uses what the call does not have, or gives another shape, is named") {
  const Tensor x = random({2, 3}, 1);
  const auto said = [&](Mistaken::Kind kind) {
    Tape tape;
    return error_of([&] { grad(sum(mistaken(kind, x)), {x}); });
  };
  const std::string hint = ", and the call has 1. Hint: they count from 0 (tests/autodiff/tape_test.cpp:";
  CHECK(contains(said(Mistaken::set), "[mistaken] its vjp uses input 1" + hint));
  CHECK(contains(said(Mistaken::in), "[mistaken] its vjp uses input 2" + hint));
  CHECK(contains(said(Mistaken::out), "[mistaken] its vjp uses output 1" + hint));
  CHECK(contains(said(Mistaken::dy), "[mistaken] its vjp uses output 3" + hint));
  CHECK(contains(said(Mistaken::needs), "[mistaken] its vjp uses input 1" + hint));
  CHECK(contains(said(Mistaken::spec), "[mistaken] its vjp uses input 1" + hint));
  CHECK(contains(said(Mistaken::shape), "[mistaken] its vjp gives f64 () for input 0, which is f64 (2, 3)"));
}

TEST_CASE("an op that infers no device has that of its first input, in a scan, too") {
  const Tensor x = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  CHECK(difference(mistaken(Mistaken::no_device, x), x) == 0);
  const Step step = [](const Tensors& s, const Tensors& in) {
    return Next{{s[0] + mistaken(Mistaken::no_device, in[0])}, {}};
  };
  CHECK(difference(scan(step, {x}, {xs}).last[0], x + sum(xs, {0})) < 1e-15);
}

TEST_CASE("a vmap that gives another dtype or shape is named, before a loop and in its gradient") {
  const Tensor x = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  const std::string expected = "f64 (4, 2, 3) expected (tests/autodiff/tape_test.cpp:";
  for (const auto& [kind, given] :
       {std::pair{Mistaken::one_step, "f64 (2, 3)"}, std::pair{Mistaken::other_dtype, "f32 (4, 2, 3)"},
        std::pair{Mistaken::nothing, "an undefined tensor"}}) {
    const std::string text = std::string("[mistaken] its vmap gives ") + given + ", " + expected;
    const auto of_input = [&](const Tensors& s, const Tensors& in) { return Next{{s[0] + mistaken(kind, in[0])}, {}}; };
    CHECK(contains(error_of([&] { scan(of_input, {x}, {xs}); }), text));
    const auto with_gradient = [&](const Tensors& s, const Tensors& in) {
      return Next{{tanh(s[0] + apply(Backwards{kind}, {&in[0]}, Loc::current()))}, {}};
    };
    Tape tape;
    const Tensor y = sum(scan(with_gradient, {x}, {xs}).last[0]);
    CHECK(contains(error_of([&] { grad(y, {xs}); }), text));
  }
}

TEST_CASE("a change in place of a value that a derivative needs is found and named") {
  Tensor x = random({3}, 1), z = random({3}, 2);
  Tape tape;
  const Tensor y = sum(square(x)), w = sum(z + 1);
  x.assign(random({3}, 3));
  z.assign(random({3}, 4));
  const std::string text = error_of([&] { grad(y, {x}); });
  CHECK(contains(text, "[square] input 0 was changed in place"));
  CHECK(contains(text, "tests/autodiff/tape_test.cpp:"));
  CHECK(difference(grad(w, {z})[0], Tensor::full({3}, 1, DType::f64)) == 0);  // add needs no values
}

TEST_CASE("views share storage, so a change through one is seen through the other") {
  Tensor x = random({4, 3}, 1);
  Tensor row = x.at(2);
  row.assign(Tensor::zeros({3}, DType::f64));
  CHECK(difference(slice(x, 0, 2, 3), Tensor::zeros({1, 3}, DType::f64)) == 0);
  CHECK(x.version() == 1);
}

TEST_CASE("tapes nest, and a paused tape records nothing") {
  const Tensor x = random({3}, 1);
  Tape outer;
  {
    Tape inner;
    x * 2;
    CHECK(inner.size() == 1);
  }
  CHECK(outer.size() == 0);
  {
    NoGrad no_grad;
    x * 2;
  }
  CHECK(outer.size() == 0);
  x * 2;
  CHECK(outer.size() == 1);
}

TEST_CASE("op errors name op, rule, values, line and hint") {
  const Tensor a = random({20, 128}, 1), b = random({64, 128}, 2);
  const std::string text = error_of([&] { matmul(a, b); });
  CHECK(contains(
      text, "[matmul] inner dimensions differ: 128 and 64. Hint: pass transpose_b; got f64 (20, 128), f64 (64, 128)"));
  CHECK(
      contains(error_of([&] { matmul(a, transpose(b), {.transpose_b = true}); }), "Hint: leave out transpose_b; got"));
  CHECK(contains(text, "(tests/autodiff/tape_test.cpp:"));
  CHECK(contains(error_of([&] { a + b; }), "[add] shapes do not broadcast"));
  CHECK(contains(error_of([&] { a + cast(a, DType::f32); }), "Hint: cast one"));
  CHECK(
      contains(error_of([&] { cast(a, DType::i32) * 0.5; }), "0.5 is not an integer, and the tensor is i32 (20, 128)"));
  CHECK(contains(error_of([&] { reshape(a, {3, -1}); }), "[reshape] 2560 elements do not fill shape (3, 853)"));
  CHECK(contains(error_of([&] { sum(a, {2}); }), "[sum] axis 2 is out of range for a tensor of rank 2"));
  CHECK(contains(error_of([&] { tanh(Tensor()); }), "[tanh] this argument is an undefined tensor"));
  const std::vector<std::pair<std::string, std::function<void()>>> given_a_number{
      {"transpose", [&] { transpose(2.0); }},
      {"tanh", [&] { reel::tanh(Arg(2.0)); }},
      {"sum", [&] { sum(3.0); }},
      {"matmul", [&] { matmul(a, 2.0); }},
      {"linear", [&] { linear(a, b, 0.0); }},
      {"modrelu", [&] { modrelu(a, 0.5); }},
      {"where", [&] { where(1.0, a, a); }},
      {"index_select", [&] { index_select(a, 0, 1.0); }},
      {"triangular_solve", [&] { triangular_solve(a, 1.0); }}};
  for (const auto& [op, call] : given_a_number)
    CHECK(contains(error_of(call), "[" + op + "] a tensor is expected here, not a number (tests/autodiff/"));
  CHECK(contains(error_of([&] { reel::operator+(Arg(1.0), Arg(2.0)); }),
                 "[add] at least one operand must be a tensor. Hint: full_like(x, 1)"));
  CHECK(contains(error_of([&] { tanh(cast(a, DType::i32)); }),
                 "[tanh] i32 elements are not supported. Hint: cast to f32; got i32"));
  const Tensor i = cast(a, DType::i32);
  CHECK(contains(error_of([&] { maximum(i, 1.5); }), "[maximum] 1.5 is not an integer, and the tensor is i32"));
  CHECK(contains(error_of([&] { i - 1.5; }), "[sub] 1.5 is not an integer, and the tensor is i32"));
  CHECK(contains(error_of([&] { i / i; }), "[div] i32 elements are not supported. Hint: cast to f32; got i32"));
  CHECK(contains(error_of([&] { floor(cast(a, DType::c128)); }), "[floor] c128 elements are not supported; got c128"));
  CHECK(contains(error_of([&] { concat({}, 0); }), "[concat] at least one part is needed"));
  CHECK(contains(error_of([&] { slice(a, 0, 5, 50); }), "[slice] elements 5..50 are not within axis 0"));
  CHECK(contains(error_of([&] { permute(a, {0, 0}); }), "[permute] the order must name each axis once"));
  CHECK(contains(error_of([&] { where(a, a, a); }), "[where] the condition must be bool"));
  CHECK(contains(error_of([&] { split(a, 3); }),
                 "[split] the extent of axis 1, 128, is not divisible by 3; got f64 (20, 128)"));
  CHECK(contains(error_of([&] { split(a, 0); }),
                 "[split] the extent of axis 1, 128, is not divisible by 0; got f64 (20, 128)"));
  CHECK(contains(error_of([&] { max(Tensor::zeros({0})); }), "[max] there is no largest of no elements"));
  const Tensor table = random({4, 2}, 1);
  const std::string index = error_of([&] { embedding(Tensor::from<std::int32_t>({1, 4}, {2}), table); });
  CHECK(contains(index, "[embedding] index 4 at place 1 is not in 0..3"));
  CHECK(contains(index, "tests/autodiff/tape_test.cpp:"));
  CHECK(contains(error_of([&] {
                   pick(table, Tensor::from<std::int32_t>({1, -1, 0, 0}, {4}));
                 }),
                 "[pick] index -1 at place 1"));
  CHECK(contains(error_of([&] { Tensor::from<double>({1, 2}, {3}); }), "[from] 2 values do not fill shape (3,)"));
  CHECK(contains(error_of([&] { a.item(); }), "[item] one element expected, shape is (20, 128)"));
  CHECK(contains(error_of([&] { a.values<float>(); }), "[values] elements are f64, f32 was asked for"));
  for (const char* name : {"tpu", "cp", "cpus", "c"})
    CHECK(contains(error_of([&] { backend(name); }),
                   fmt::format("there is no device \"{}\"; this build has: cpu", name)));
  CHECK(contains(error_of([&] {
                   Tensor::zeros({2, -1});
                 }),
                 "[tensor] the extent of an axis is 0 or more, got -1 for axis 1"));
  CHECK(contains(error_of([&] { stack({Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})}); }), "a tensor has at most 8 axes"));
  CHECK(contains(error_of([&] { uniform({2}, 1, 0, 1, 1); }), "[uniform] low must not be above high"));
}

TEST_CASE("tensors print themselves") {
  CHECK(Tensor::from<double>({1, 2.5, -3, 4}, {2, 2}).str() == "f64 (2, 2) [[1, 2.5], [-3, 4]]");
  CHECK(Tensor::full({20}, 1).str() == "f32 (20,) [1, 1, 1, 1, ..., 1, 1, 1, 1]");
  CHECK(Tensor::from<std::complex<double>>({{1, -2}}, {}).str() == "c128 () 1-2i");
  CHECK(Tensor().str() == "undefined");
  CHECK(Tensor::full({1}, -NAN).str() == "f32 (1,) [nan]");
  // Long texts have a line for each row, and many axes fewer elements of each.
  const std::string line = "[0.333333, 0.333333, 0.333333, 0.333333, ..., 0.333333, 0.333333, 0.333333, 0.333333]";
  CHECK(Tensor::full({2, 9}, 1. / 3).str() == "f32 (2, 9)\n[" + line + ",\n " + line + "]");
  CHECK(Tensor::zeros({10, 10, 10, 10}).str().size() < 1000);
  CHECK(Tensor::zeros({10, 10, 10, 10, 10, 10}).str().size() < 1000);
  CHECK(contains(Tensor::zeros({6, 6, 6}).str(), "[[[0, 0, ..., 0, 0],\n  [0, 0, ..., 0, 0],\n  ...,\n"));
  // The longest that are whole.
  CHECK(Tensor::full({8}, 1).str() == "f32 (8,) [1, 1, 1, 1, 1, 1, 1, 1]");
  CHECK_FALSE(contains(Tensor::zeros({4, 4, 4}).str(), "..."));
  CHECK(contains(Tensor::zeros({5, 4, 4}).str(), "..."));
  const auto with_tens = [](int tens) {  // 89 characters and one more for each
    std::vector<std::int32_t> x(24, 1);
    std::fill_n(x.begin(), tens, 10);
    return Tensor::from<std::int32_t>(x, {3, 8}).str();
  };
  CHECK(with_tens(11).size() == 100);
  CHECK_FALSE(contains(with_tens(11), "\n"));
  CHECK(contains(with_tens(12), "\n"));
}

TEST_CASE("assign takes the elements as they were, also of the tensor itself") {
  for (const bool forward : {true, false}) {
    const Tensor x = arange(1003, DType::f64);
    slice(x, 0, forward ? 1 : 0, forward ? 1003 : 1002).assign(slice(x, 0, forward ? 0 : 1, forward ? 1002 : 1003));
    const auto values = x.values<double>();
    for (int i = 1; i < 1002; ++i) CHECK(values[static_cast<std::size_t>(i)] == i + (forward ? -1 : 1));
  }
}

TEST_CASE("a cotangent has the shape and dtype of its output") {
  Tape tape;
  const Tensor x = Tensor::full({3}, 1), y = x * 2;
  CHECK(contains(error_of([&] {
                   grad({y}, {x}, {.cotangents = {Tensor::full({2, 3}, 1)}});
                 }),
                 "[grad] cotangent 0 is f32 (2, 3), and its output f32 (3,)"));
  CHECK(contains(error_of([&] { grad({y}, {x}, {.cotangents = {Tensor::full({1}, 1)}}); }), "cotangent 0 is f32 (1,)"));
  CHECK(contains(error_of([&] { grad({y}, {x}, {.cotangents = {Tensor::full({3}, 1, DType::f64)}}); }),
                 "[grad] cotangent 0 is f64 (3,), and its output f32 (3,)"));
}

TEST_CASE("memory that is kept for later is counted as it was taken") {
  const auto take = [] { Tensor::empty({DType::f32, {1001}, &backend()}); };
  take();
  const MemoryUse first = backend().memory();
  for (int i = 0; i < 3; ++i) take();
  CHECK(backend().memory().cached_bytes == first.cached_bytes);
  CHECK(backend().memory().live_bytes == first.live_bytes);
  CHECK(backend().memory().system_calls == first.system_calls);
}

TEST_CASE("tapes may end in any order") {
  auto first = std::make_unique<Tape>();
  const Tensor x = Tensor::full({2}, 3);
  auto second = std::make_unique<Tape>();
  first.reset();
  CHECK(Tape::current() == second.get());
  CHECK(difference(grad({sum(square(x))}, {x})[0], 2 * x) == 0);
  second.reset();
  CHECK(Tape::current() == nullptr);
  std::unique_ptr<Tape> tape;
  for (int i = 0; i < 4; ++i) {  // the old one ends when the new one has begun
    tape = std::make_unique<Tape>();
    CHECK(difference(grad({sum(square(x))}, {x})[0], 2 * x) == 0);
  }
}

namespace {
struct TwiceSquare {  // 2 x^2, by other ops
  bool operator==(const TwiceSquare&) const = default;
  static constexpr Traits traits{.name = "twice_square", .saves = Saves::inputs};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out = 2 * in[0] * in[0]; }
  void vjp(Vjp& v) const { v.set(0, v.dy() * 4 * v.in(0)); }
};
}  // namespace

TEST_CASE("ops that run() calls are not recorded") {
  const Tensor x = Tensor::full({}, 3, DType::f64);
  Tape tape;
  const Tensor y = apply(TwiceSquare{}, x), loss = square(y);
  CHECK(tape.size() == 2);
  const auto g = grad({loss}, {x, y});
  CHECK(g[0].item() == 432);
  CHECK(g[1].item() == 36);
}
