// Layout, lookups, reductions and products: what their errors say, what shares storage, how tensors begin.
#include "engine/scan/program.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {
const Tensor& x() {
  static const Tensor t = random({2, 3}, 1);
  return t;
}
/// The text of the error has this in it, and the line here.
void check_error(const std::function<void()>& f, const std::string& part) {
  const std::string text = error_of(f);
  CHECK_MESSAGE(contains(text, part), text);
  CHECK_MESSAGE(contains(text, "tests/ops/shapes_test.cpp:"), text);
}
}  // namespace

TEST_CASE("errors of reductions") {
  check_error([] { sum(x(), {0, -2}); }, "[sum] axis -2 is named twice");
  check_error([] { mean(Tensor::zeros({2, 0}), {1}); }, "[mean] there is no mean of no elements");
  check_error([] { mean(cast(x(), DType::i32)); }, "[mean] i32 elements are not supported. Hint: cast to f32");
  check_error([] { min(Tensor::zeros({2, 0}), {1}); }, "[min] there is no smallest of no elements");
  check_error([] { any(x()); }, "[any] bool elements expected, not f64");
  check_error([] { argmax(Tensor::zeros({3, 0})); }, "[argmax] axis 1 has no elements");
  check_error([] { argmin(x(), 2); }, "[argmin] axis 2 is out of range for a tensor of rank 2");
  check_error([] { cumsum(x() > 0); }, "[cumsum] bool elements are not supported");
  check_error([] { prod(x() > 0); }, "[prod] bool elements are not supported. Hint: all()");
  check_error([] { norm(x(), 0.5); }, "[norm] p is 1 or more, or infinity, got 0.5");
  check_error([] { norm(x(), NAN); }, "[norm] p is 1 or more, or infinity, got nan");
  check_error([] { norm(cast(x(), DType::i32), 1); }, "[norm] i32 elements are not supported");
  check_error([] { var(x(), {0}, false, 2); }, "[var] 2 elements, minus the correction 2, leave nothing to divide by");
  check_error([] { std_dev(Tensor::zeros({0})); },
              "[std_dev] 0 elements, minus the correction 0, leave nothing to divide by");
  check_error([] { softmax(cast(x(), DType::c128)); }, "[softmax] c128 elements are not supported; got c128");
  check_error([] { logsumexp(cast(x(), DType::i32)); },
              "[logsumexp] i32 elements are not supported. Hint: cast to f32; got");
  check_error([] { softmax(Tensor::zeros({})); }, "[softmax] axis -1 is out of range");
  check_error([] { standardize(x(), 0); }, "[standardize] epsilon is above 0, got 0");
  check_error([] { layer_norm(x(), at(x(), 0), Tensor::zeros({2})); },
              "[layer_norm] gain and bias must have one element for each of the last axis");
}

TEST_CASE("errors of layout") {
  check_error([] { squeeze(x(), {1}); }, "[squeeze] only axes of extent 1 can go, axis 1 has 3");
  check_error([] { unsqueeze(x(), 3); }, "[unsqueeze] axis 3 is out of range for a tensor of rank 3");
  check_error([] { movedim(x(), 0, 2); }, "[movedim] axis 2 is out of range");
  check_error([] { unstack(x(), 2); }, "[unstack] axis 2 is out of range");
  check_error([] { flip(x(), 2); }, "[flip] axis 2 is out of range");
  check_error(
      [] {
        split_with_sizes(x(), {1, 1});
      },
      "[split_with_sizes] the sizes add up to 2, the extent of axis 1 is 3; got f64 (2, 3)");
  check_error([] { split_with_sizes(x(), {4, -1}); }, "[split_with_sizes] sizes are 0 or more, got -1");
  check_error([] { tile(x(), {2, -1}); }, "[tile] counts are 0 or more, got -1");
  check_error([] { repeat(x(), -1); }, "[repeat] the count is 0 or more, got -1");
  check_error([] { slice(x(), 0, 1, 3); }, "[slice] elements 1..3 are not within axis 0");
  check_error([] { at(x(), 2); }, "[at] there is no element 2 along axis 0; got f64 (2, 3)");
  check_error([] { at(Tensor::zeros({}), 0); }, "[at] there is no element 0 along axis 0; got f32 ()");
  check_error([] { stack({x(), at(x(), 0)}); }, "[stack] all parts must have one shape; got f64 (2, 3), f64 (3,)");
  check_error([] { stack({x(), cast(x(), DType::f32)}); }, "[stack] all parts must have one dtype");
  check_error([] { full_like(x(), {0, 1}); }, "[full_like] 0 + 1i is complex, and the dtype is f64");
  check_error([] { skew_from_vector(at(x(), 0), -2); }, "[skew_from_vector] a matrix has 0 rows or more, got -2");
  check_error([] { skew_from_vector(at(x(), 0), std::int64_t{1} << 40); }, "[skew_from_vector] a skew");
  check_error([] { linspace(0, 1, std::int64_t{1} << 62); }, "[linspace] a tensor has at most 2^58 elements");
  check_error([] { eye(std::int64_t{1} << 31); }, "[eye] a tensor has at most 2^58 elements");
  check_error([] { arange(-1); }, "[arange] the number of elements is 0 or more, got -1");
}

TEST_CASE("errors of lookups") {
  const auto index = [](std::initializer_list<std::int32_t> v) {
    return Tensor::from(v, {static_cast<std::int64_t>(v.size())});
  };
  check_error([&] { index_select(x(), 1, index({0, 3})); }, "[index_select] index 3 at place 1 is not in 0..2");
  check_error([&] { index_select(x(), 1, x()); }, "[index_select] indices must be i32");
  check_error(
      [&] {
        index_select(Tensor::zeros({0, 2}), 0, index({0}));
      },
      "[index_select] index 0 at place 0, but there is nothing to look up");
  check_error(
      [&] {
        index_add(x(), 1, index({0, 1}), 4);
      },
      "[index_add] from axis 1 on, the values must have the axes of the index");
  check_error(
      [&] {
        segment_sum(Tensor::zeros({2, 2}, DType::i32), at(x(), 0), 4);
      },
      "[segment_sum] the values must have the axes of the index, which is i32 (2, 2)");
  check_error([&] { index_add(x(), 0, index({0, 4}), 4); }, "[index_add] index 4 at place 1 is not in 0..3");
  check_error([&] { segment_sum(index({0, -1}), x(), 4); }, "[segment_sum] index -1 at place 1 is not in 0..3");
  check_error([&] { index_add(x(), 0, index({0, 1}), -1); }, "the extent of an axis is 0 or more, got -1");
  check_error(
      [&] {
        take_along(x(), index({0, 1}));
      },
      "[take_along] the index must have the extents of the tensor, but for axis 1");
  check_error([&] { scatter_add(x(), index({0, 1}), 0, 3); }, "[scatter_add] there must be one index for each value");
  check_error([&] { pick(x(), x()); }, "[pick] there must be one index for each place along the last axis");
  check_error([&] { one_hot(index({0, 5}), 5); }, "[one_hot] index 5 at place 1 is not in 0..4");
  check_error([&] { one_hot(x(), 5); }, "[one_hot] indices must be i32");
  check_error([&] { place(x(), x(), 5); }, "[place] indices must be i32");
  check_error([&] { embedding(index({2}), x()); },
              "[embedding] index 2 at place 0 is not in 0..1; got i32 (1,), f64 (2, 3)");
  check_error([&] { embedding(x(), index({2})); }, "[embedding] indices must be i32; got f64 (2, 3), i32 (1,)");
  check_error([&] { segment_sum(at(x(), 0), index({2}), 4); },
              "[segment_sum] indices must be i32; got f64 (3,), i32 (1,)");
  check_error([&] { pick(x(), index({0, 3})); }, "[pick] index 3 at place 1 is not in 0..2");
  check_error([&] { masked_fill(x(), x(), 0); }, "[masked_fill] the condition must be bool");
}

TEST_CASE("errors of products") {
  const Tensor v = random({3}, 2), w = random({4}, 3);
  check_error([&] { matmul(v, w); }, "[matmul] inner dimensions differ: 3 and 4");
  check_error([&] { matmul(Tensor::zeros({}, DType::f64), v); }, "[matmul] both sides need one axis or more");
  check_error([&] { linear(w, x()); }, "[linear] x must be [..., i] and W [o, i]; got x f64 (4,), W f64 (2, 3)");
  check_error([&] { linear(v, v); }, "[linear] x must be [..., i] and W [o, i]; got x f64 (3,), W f64 (3,)");
  check_error(
      [&] {
        linear(x(), random({1, 3}, 4), w);
      },
      "[linear] b must have one element for each row of W; got W f64 (1, 3), b f64 (4,)");
  check_error([&] { linear(x(), x(), random({2, 1}, 4)); }, "[linear] b must have one element for each row of W");
  check_error([&] { linear(x(), cast(x(), DType::f32)); }, "[linear] both sides must have one dtype");
  check_error([&] { dot(v, w); }, "[dot] inner dimensions differ: 3 and 4");
  check_error([&] { matrix_trace(v); }, "[matrix_trace] ");
  check_error([&] { householder_apply(v, random({4, 1}, 5)); }, "[householder_apply] inner dimensions differ");
  check_error([&] { dot(v, x()); }, "[dot] two vectors expected; got f64 (3,), f64 (2, 3)");
  check_error([&] { outer(x(), v); }, "[outer] two vectors expected");
  check_error([&] { einsum("ij,jk->ik", x(), x()); }, "[einsum] 'j' stands for extents 3 and 2");
  for (const Shape& shape : {Shape{1, 3}, Shape{3, 1}})
    check_error(
        [&] { einsum("ii->", Tensor::zeros(shape)); },
        fmt::format("[einsum] 'i' is twice in one term, where it stands for extents {} and {}", shape[0], shape[1]));
  check_error([&] { einsum("ij->ik", x()); }, "[einsum] 'k' is in the output of \"ij->ik\" but in no input");
  check_error([&] { einsum("ij->ii", x()); }, "[einsum] 'i' is twice in the output of \"ij->ii\"");
  check_error([&] { einsum("ij,j", x()); }, "[einsum] \"ij,j\" names 2 tensors, got 1");
  check_error([&] { einsum("ij,jk", x(), v); }, "[einsum] \"jk\" in \"ij,jk\" names 2 axes, the tensor has 1");
  check_error([&] { einsum("ij", x(), x()); }, "[einsum] \"ij\" names 1 tensor, got 2");
  check_error([&] { einsum("i", x()); }, "[einsum] \"i\" in \"i\" names 1 axis, the tensor has 2");
  check_error([&] { einsum("i1->i", x()); }, "[einsum] axes are named by letters, got '1' in \"i1->i\"");
  check_error([&] { einsum("\u00e4b->b", x()); }, "[einsum] axes are named by letters, got '\u00e4' in \"\u00e4b->b\"");
  check_error([&] { einsum("..i", x()); }, "[einsum] axes are named by letters, got '.'");
  check_error([&] { einsum("...i...", x()); }, "[einsum] axes are named by letters, got '.'");
  check_error([&] { einsum("...ijk->...", x()); },
              "[einsum] \"...ijk\" in \"...ijk->...\" names 3 axes, the tensor has 2");
  check_error([&] { einsum("...i->i", x()); },
              "[einsum] \"...\" stands for axes in \"...i->i\", so the output needs it, too");
  check_error(
      [&] {
        einsum("...i,...i->...", x(), Tensor::zeros({4, 3}, DType::f64));
      },
      "[einsum] an axis of \"...\" stands for extents 2 and 4");
  check_error([&] { einsum("i->i->i", v); }, "[einsum] axes are named by letters, got '-'");
  check_error([&] { einsum("ii", x()); }, "[einsum] 'i' stands for extents 2 and 3");
  check_error([&] { einsum("ij,j->i", x(), cast(v, DType::f32)); },
              "[einsum] all tensors must have one dtype, f64 and f32");
}

TEST_CASE("einsum without an output has the letters that occur once, in the order of the alphabet") {
  const Tensor y = random({3, 4}, 2);
  CHECK(difference(einsum("ij,jk", x(), y), matmul(x(), y)) == 0);
  CHECK(difference(einsum("ba", x()), transpose(x())) == 0);
  CHECK(difference(einsum("k j, i k", y, x()), matmul(x(), y)) < 1e-15);
  CHECK(difference(einsum("ij", x()), x()) == 0);
}

TEST_CASE("products that need no copy make none") {
  const Tensor a = random({2, 3, 4}, 1), b = random({2, 5, 4}, 2);
  const Traced t =
      trace({a.spec(), b.spec()}, [](const Tensors& in) { return Tensors{einsum("bik,bjk->bij", in[0], in[1])}; });
  for (const Program::Node& node : t.program.nodes)
    CHECK_MESSAGE((node.op->alias || std::string(node.op->traits.name) == "matmul"), t.program.str());
}

TEST_CASE("tensors from nothing") {
  CHECK(arange(4).values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(arange(0, DType::f64).shape() == Shape{0});
  CHECK(arange(3, DType::c64).values<std::complex<float>>()[2] == std::complex<float>(2));
  CHECK(linspace(-1, 1, 5, DType::f64).values<double>() == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  CHECK(linspace(3, 4, 1, DType::f64).values<double>() == std::vector<double>{3});
  CHECK(linspace(0.1, 0.7, 7, DType::f64).values<double>().back() == 0.7);
  const std::vector<double> of_nan = linspace(NAN, 1, 3, DType::f64).values<double>();
  CHECK(std::isnan(of_nan[0]));
  CHECK(std::isnan(of_nan[1]));
  CHECK(of_nan[2] == 1);
  const std::vector<double> of_infinity = linspace(INFINITY, 0, 3, DType::f64).values<double>();
  CHECK(of_infinity.front() == INFINITY);
  CHECK(of_infinity.back() == 0);
  CHECK(zeros_like(x()).spec() == x().spec());
  CHECK(difference(ones_like(x()), Tensor::full({2, 3}, 1, DType::f64)) == 0);
  CHECK(full_like(Tensor::zeros({2}, DType::c128), {1, 2}).values<std::complex<double>>()[1] ==
        std::complex<double>(1, 2));
  Tape tape;
  arange(3, DType::f64);
  linspace(0, 1, 3);
  zeros_like(x());
  CHECK(tape.size() == 0);
}

TEST_CASE("all of nothing is true, any of nothing is false, and both are 0 or 1") {
  const Tensor nothing = Tensor::zeros({0, 3}, DType::boolean);
  CHECK(elements(cast(all(nothing, {0}), DType::i32)) == std::vector<std::complex<double>>{1, 1, 1});
  CHECK(elements(cast(any(nothing, {0}), DType::i32)) == std::vector<std::complex<double>>{0, 0, 0});
}

TEST_CASE("what can share storage does") {
  const auto shares = [](const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); };
  CHECK(shares(squeeze(unsqueeze(x(), 1)), x()));
  CHECK(shares(unstack(x())[1], x()));
  CHECK(shares(split_with_sizes(x(), {1, 1}, 0)[1], x()));
  CHECK(shares(permute(x(), {0, 1}), x()));
  CHECK(shares(movedim(x(), 1, -1), x()));
  CHECK(shares(tile(x(), {1, 1}), x()));
  CHECK(split_with_sizes(x(), {0, 3}).size() == 2);
}

TEST_CASE("large transposes, which go past the caches, move every element") {
  for (const Shape& shape : {Shape{2064, 1030}, Shape{2, 1040, 1029}, Shape{2051, 1030}}) {
    const Tensor numbers = reshape(arange(shape.numel()), {shape.begin(), shape.end()});
    const auto y = transpose(numbers).values<std::int32_t>();
    const std::int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < shape.numel(); ++k) {
      const std::int64_t matrix = k / (m * n), i = k % (m * n) / m, j = k % m;
      wrong += y[static_cast<std::size_t>(k)] != matrix * m * n + j * n + i;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rolls of more rows than a cache holds move every element, either way") {
  const Shape shape{700, 130};  // some hundred rows are moved at a time
  const Tensor numbers = reshape(arange(shape.numel()), {shape.begin(), shape.end()});
  for (const std::int64_t shift : {3, -3, 127, -260}) {
    CAPTURE(shift);
    const auto y = roll(numbers, shift, 1).values<std::int32_t>();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j)
        wrong += y[static_cast<std::size_t>(i * shape[1] + ((j + shift) % shape[1] + shape[1]) % shape[1])] !=
                 i * shape[1] + j;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("lookups in a time loop: the table, the index or both may change from step to step") {
  constexpr std::int64_t steps = 4;
  const Tensor table = random({5, 3}, 1), order = Tensor::from<std::int32_t>({2, 0, 1}, {3});
  const Tensor tokens = Tensor::from<std::int32_t>({0, 4, 1, 1, 3, 2, 2, 0}, {steps, 2});
  const auto step = [&](const Tensors& s, const Tensors& in) {
    const Tensor turned = index_select(s[0], -1, order);  // a fixed permutation of the state
    const Tensor row = embedding(in[0], table * in[1]);
    const Tensor h = tanh(turned + layer_norm(row, at(table, 0), at(table, 1)) +
                          softmax(take_along(row, index_select(in[2], 0, in[0]))));
    return Next{{h}, {norm(h, 5, {-1})}};
  };
  const Tensor start = random({2, 3}, 2), scales = random({steps}, 3, DType::f64, 0.5, 1);
  const Tensor places = cast(random({steps, 5, 3}, 4, DType::f64, 0, 2.99), DType::i32);
  const auto run = [&](auto&& loop, const Tensors& v) {
    const ScanResult r =
        loop([&](const Tensors& s, const Tensors& in) { return step(s, in); }, {v[0]}, {tokens, v[1], places});
    return sum(r.last[0]) + sum(r.ys[0] * r.ys[0]);
  };
  const auto result = [&](auto&& loop) {
    Tape tape;
    const Tensors v{start, scales, table};
    const Tensor loss = run(loop, v);
    Tensors out = grad(Tensors{loss}, v, {.create_graph = true});
    const Tensors second = grad(Tensors{sum(out[1])}, v);
    out.insert(out.end(), second.begin(), second.end());
    out.push_back(loss);
    return out;
  };
  const Tensors a = result([](const Step& s, const Tensors& c, const Tensors& xs) { return scan(s, c, xs); });
  const Tensors b = result([](const Step& s, const Tensors& c, const Tensors& xs) { return unroll(s, c, xs); });
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(difference(a[i], b[i]) < 1e-13);
}

TEST_CASE("errors name the op that was called, and show the tensors that were passed") {
  const auto says = [](const std::function<void()>& call, const std::string& what) {
    INFO(error_of(call));
    CHECK(contains(error_of(call), what + " (tests/ops/shapes_test.cpp:"));
  };
  const Tensor m = Tensor::zeros({2, 3}, DType::f64), v = Tensor::zeros({2}, DType::f64);
  says([&] { permute(m, {1}); }, "[permute] the order names 1 axis, the tensor has 2; got f64 (2, 3)");
  says([&] { permute(m, Axes(9, 0)); }, "[permute] the order names 9 axes, the tensor has 2; got f64 (2, 3)");
  says([&] { tile(m, std::vector<std::int64_t>(9, 1)); },
       "[tile] a tensor has at most 8 axes, got counts for 9; got f64 (2, 3)");
  says([&] { polar(v, m); },
       "[polar] shapes do not broadcast: aligned at the last axis, extents must agree or be 1; got f64 (2,), f64 (2, "
       "3)");
  says([&] { householder_product(m); },
       "[householder_product] column 0 is 0, so it has no reflection; got f64 (2, "
       "3)");
  says([&] { householder_apply(v, m); },
       "[householder_apply] column 0 is 0, so it has no reflection; got f64 (2, "
       "3)");
  says([&] { where(Tensor::zeros({1}, DType::boolean), m, Tensor::zeros({1}, DType::i32)); },
       "[where] both choices must have one dtype. Hint: cast one; got bool (1,), f64 (2, 3), i32 (1,)");
  says([&] { m + Tensor::zeros({3}, DType::c64); },
       "[add] both sides must have one dtype. Hint: cast one; got f64 (2, 3), c64 (3,)");
  const Tensor index = Tensor::from<std::int32_t>({0, 7}, {2});
  const auto got = [&](const std::function<void()>& call) {
    const std::string text = error_of(call);
    return text.substr(0, text.find(']') + 1) + text.substr(std::min(text.size(), text.rfind("; got")));
  };
  CHECK(contains(got([&] { one_hot(index, 3); }), "[one_hot]; got i32 (2,) ("));
  CHECK(contains(got([&] { pick(m, index); }), "[pick]; got f64 (2, 3), i32 (2,) ("));
  CHECK(contains(got([&] { place(v, index, 3); }), "[place]; got f64 (2,), i32 (2,) ("));

  const Tensor ints = cast(m, DType::i32), single = cast(m, DType::f32), square = Tensor::zeros({2, 2}, DType::f64);
  says([&] { einsum("ij,kj->ik", ints, ints); }, "[einsum] i32 elements are not supported; got i32 (2, 3), i32 (2, 3)");
  says([&] { einsum("ij->i", cast(m, DType::boolean)); },
       "[einsum] bool elements are not supported. Hint: cast to i32; got bool (2, 3)");
  says([&] { lstsq(square, single); },
       "[lstsq] both sides must have one dtype. Hint: cast one; got f64 (2, 2), f32 (2, 3)");
  says([&] { cayley(square, Tensor::zeros({2}, DType::f32)); },
       "[cayley] both sides must have one dtype. Hint: cast one; got f64 (2, 2), f32 (2,)");
  says([&] { polar(m, single); }, "[polar] both sides must have one dtype. Hint: cast one; got f64 (2, 3), f32 (2, 3)");
  says([&] { householder_apply(single, eye(3, DType::f64)); },
       "[householder_apply] both sides must have one dtype. Hint: cast one; got f32 (2, 3), f64 (3, 3)");
}
