// Sequences of unequal length in one batch, in both directions: each has the outputs and gradients that it has alone.
#include "tasks/training/model.h"
#include "tests/support/cells.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t inputs = 2, outputs = 3, hidden = 8;
const std::vector<std::int32_t> lengths{5, 9, 1, 7};

struct Case {
  std::string cell;
  bool bidirectional = false, every_step = true;
  std::int64_t layers = 1, vocabulary = 0;
  bool between = false;  // layer norm and residual connections
  double zoneout = 0;
  bool unlike = false;  // a GRU and an sRNN of other widths above it
};

Model make(const Case& kind) {
  Model model({.vocabulary = kind.vocabulary,
               .inputs = kind.vocabulary > 0 ? 0 : inputs,
               .outputs = outputs,
               .every_step = kind.every_step},
              {.cell = kind.cell,
               .hidden = hidden,
               .layers = kind.layers,
               .bidirectional = kind.bidirectional,
               .layer_norm = kind.between,
               .residual = kind.between,
               .zoneout = kind.zoneout,
               .dropout = 0.3,
               .variational = true,
               .stack = kind.unlike ? std::vector<LayerOptions>{{kind.cell, hidden}, {"gru", 5}, {"srnn", 6}}
                                    : std::vector<LayerOptions>{}},
              Init(5, DType::f64));
  std::uint64_t seed = 100;
  for (const Parameter& p : model.parameters())
    if (p.group == "norm") Tensor(p.value).assign(random(p.value.shape(), seed++, DType::f64, 0.5, 1.5));
  return model;
}

/// [9, 4, inputs] or [9, 4]; if padded, with numbers that are none, or unknown symbols, behind the end of a sequence.
Tensor batch(const Case& kind, bool padded = true) {
  std::vector<double> numbers = random({9, 4, inputs}, 1).values<double>();
  std::vector<std::int32_t> symbols;
  for (std::size_t i = 0; i < 36; ++i) {
    const bool inside = !padded || static_cast<std::int32_t>(i / 4) < lengths[i % 4];
    symbols.push_back(inside ? static_cast<std::int32_t>(i * 7 % 5) : -1);
    for (std::size_t k = 0; !inside && k < inputs; ++k) numbers[i * inputs + k] = k == 0 ? NAN : INFINITY;
  }
  if (kind.vocabulary == 0) return Tensor::from<double>(numbers, {9, 4, inputs});
  return Tensor::from<std::int32_t>(symbols, {9, 4});
}

/// Sequence b of x [T, B, ...], without its padding.
Tensor alone(const Tensor& x, std::int64_t b) {
  return slice(slice(x, 1, b, b + 1), 0, 0, lengths[static_cast<std::size_t>(b)]);
}

Tensors trained(const Model& model) {
  Tensors out;
  for (const Parameter& p : model.trained()) out.push_back(p.value);
  return out;
}

/// The outputs of a batch with sequences of these lengths, of a weight for each of them, and the gradients.
void check(const Case& kind) {
  CAPTURE(kind.cell);
  CAPTURE(kind.bidirectional);
  CAPTURE(kind.every_step);
  CAPTURE(kind.layers);
  CAPTURE(kind.vocabulary);
  CAPTURE(kind.zoneout);
  CAPTURE(kind.unlike);
  const Model model = make(kind);
  const Tensors wrt = trained(model);
  const Tensor x = batch(kind), told = Tensor::from<std::int32_t>(lengths, {4});
  const Tape tape;
  const Tensor all = model(x, std::nullopt, nullptr, told);
  Tensor together, apart;
  for (std::int64_t b = 0; b < 4; ++b) {
    CAPTURE(b);
    const Tensor got = kind.every_step ? alone(all, b) : slice(all, 0, b, b + 1);
    const Tensor expected = model(alone(x, b));
    CHECK(difference(got, expected) < 1e-12);
    const Tensor weights = random(got.shape(), static_cast<std::uint64_t>(b) + 2);
    together = together.defined() ? together + sum(weights * got) : sum(weights * got);
    apart = apart.defined() ? apart + sum(weights * expected) : sum(weights * expected);
  }
  const Tensors got = grad({together}, wrt), expected = grad({apart}, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    CAPTURE(model.trained()[i].name);
    CHECK(difference(got[i], expected[i]) < 1e-12);
  }
}

}  // namespace

TEST_CASE("a padded batch computes what each sequence gives alone, for every cell") {
  for (const CellType& type : cell_registry())
    for (const bool every_step : {true, false}) check({type.name, false, every_step});
}

TEST_CASE("in both directions, for every cell with states") {
  for (const CellType& type : cell_registry()) {
    if (type.name == "r_transformer") continue;
    for (const bool every_step : {true, false}) check({type.name, true, every_step});
  }
}

TEST_CASE("in stacks, and with symbols") {
  for (const std::string cell : {"lstm", "srnn", "urnn"}) {
    for (const bool both : {true, false})
      for (const bool every_step : {true, false})
        for (const bool between : {true, false}) check({cell, both, every_step, 2, 5, between});
  }
}

TEST_CASE("below unlike layers and with zoneout, for every cell and both directions") {
  for (const CellType& type : cell_registry()) {
    if (type.name == "r_transformer") continue;  // has no states
    for (const bool both : {true, false}) {
      check({.cell = type.name, .bidirectional = both, .zoneout = 0.2, .unlike = true});
      check({.cell = type.name, .bidirectional = both, .every_step = false, .zoneout = 0.2});
    }
  }
}

TEST_CASE("in training, with dropout and zoneout: nothing depends on what lies behind the end of a sequence") {
  std::vector<double> inside;
  for (std::int64_t t = 0; t < 9; ++t)
    for (const std::int32_t n : lengths) inside.push_back(t < n ? 1 : 0);
  const Tensor valid = reshape(Tensor::from<double>(inside, {9, 4}), {9, 4, 1});
  const Tensor told = Tensor::from<std::int32_t>(lengths, {4});
  const Tensor x = random({9, 4, inputs}, 1), other = x * valid + random({9, 4, inputs}, 2) * (1.0 - valid);
  for (const CellType& type : cell_registry()) {
    if (type.name == "r_transformer") continue;
    for (const bool variational : {false, true})
      for (const bool both : {false, true})
        for (const bool every_step : {false, true}) {
          CAPTURE(type.name);
          CAPTURE(variational);
          CAPTURE(both);
          CAPTURE(every_step);
          const Model model({.inputs = inputs, .outputs = outputs, .every_step = every_step},
                            {.cell = type.name,
                             .hidden = hidden,
                             .layers = 2,
                             .bidirectional = both,
                             .zoneout = 0.2,
                             .dropout = 0.3,
                             .variational = variational},
                            Init(5, DType::f64));
          const Tensors wrt = trained(model);
          const auto computed = [&](const Tensor& given) {
            const Tape tape;
            const Tensor ys = model(given, StepContext{.seed = 3, .step = 7}, nullptr, told);
            const Tensor y = every_step ? ys * valid : ys;
            Tensors all = grad({sum(y * y)}, wrt);
            all.push_back(y);
            return all;
          };
          const Tensors a = computed(x), b = computed(other);
          for (std::size_t i = 0; i < a.size(); ++i) CHECK(difference(a[i], b[i]) < 1e-13);
        }
  }
}

TEST_CASE("LT-RNN divides its gradients by the length of each sequence") {
  const auto gradient = [](const Tensor& x, const Tensor& told) {
    const Model model({.inputs = inputs, .outputs = outputs, .every_step = false},
                      {.cell = "lt_rnn", .hidden = hidden, .settings = {{"scale_gradient", "on"}}},
                      Init(5, DType::f64));
    const Tape tape;
    const Tensors wrt{model.parameters()[0].value};  // W, below the recurrence
    const Tensor y = model(x, std::nullopt, nullptr, told);
    for (const double value : y.values<double>()) CHECK(std::isfinite(value));
    return grad({sum(y)}, wrt)[0];
  };
  const Tensor x = random({9, 4, inputs}, 1);
  Tensor apart;
  for (const std::int64_t b : {0, 1, 3}) {
    const Tensor g = gradient(alone(x, b), {});
    apart = apart.defined() ? apart + g : g;
  }
  const auto together = [&](const std::vector<std::int32_t>& told) {
    return gradient(x, Tensor::from<std::int32_t>(told, {4}));
  };
  CHECK(difference(together(lengths), apart + gradient(alone(x, 2), {})) < 1e-12);
  CHECK(difference(together({5, 9, 0, 7}), apart) < 1e-12);  // a sequence of no steps adds nothing
}

TEST_CASE("the states that are left are those of each sequence's end") {
  const Model model = make({"lstm"});
  const Tensor x = random({9, 4, inputs}, 1);
  Tensors left;
  model(x, std::nullopt, &left, Tensor::from<std::int32_t>(lengths, {4}));
  for (std::int64_t b = 0; b < 4; ++b) {
    Tensors expected;
    model(alone(x, b), std::nullopt, &expected);
    REQUIRE(left.size() == 2);
    for (std::size_t s = 0; s < 2; ++s) CHECK(difference(slice(left[s], 0, b, b + 1), expected[s]) < 1e-12);
  }
}

TEST_CASE("a sequence of no steps changes no other one, with states or without") {
  for (const char* cell : {"gru", "r_transformer"}) {
    CAPTURE(cell);
    const Model model = make({.cell = cell, .every_step = false});
    const Tensor x = random({9, 4, inputs}, 1);
    const Tensor some = model(x, std::nullopt, nullptr, Tensor::from<std::int32_t>({5, 1, 1, 7}, {4})),
                 none = model(x, std::nullopt, nullptr, Tensor::from<std::int32_t>({5, 0, 1, 7}, {4}));
    for (const std::int64_t b : {0, 2, 3}) CHECK(difference(slice(some, 0, b, b + 1), slice(none, 0, b, b + 1)) == 0);
    for (const double y : none.values<double>()) CHECK(std::isfinite(y));
  }
}

TEST_CASE("both directions are two cells, the second from the end, side by side") {
  const Model model = make({"gru", true});
  const Tensor x = random({9, 4, inputs}, 1);
  const Cell &forward = *model.cells()[0], &backward = *model.cells()[1];
  Tensor V, c;
  for (const Parameter& p : model.parameters()) {
    if (p.name == "head.V") V = p.value;
    if (p.name == "head.c") c = p.value;
  }
  Tensors outputs_forward(9), outputs_backward(9);
  Tensors f = forward.initial(4), b = backward.initial(4);
  for (std::int64_t t = 0; t < 9; ++t) {
    f = forward.step(f, x.at(t));
    outputs_forward[static_cast<std::size_t>(t)] = f[0];
    b = backward.step(b, x.at(8 - t));
    outputs_backward[static_cast<std::size_t>(8 - t)] = b[0];
  }
  const Tensor ys = model(x);
  for (std::int64_t t = 0; t < 9; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const Tensor h = concat({outputs_forward[at], outputs_backward[at]}, -1);
    CHECK(difference(ys.at(t), linear(h, V, c)) < 1e-13);
  }
  CHECK(difference(forward.parameters()[0].value, backward.parameters()[0].value) > 1e-3);
}

TEST_CASE("between layers: x + cell(gain (x - mean) / deviation + bias), by hand") {
  const Model model = make({"gru", false, true, 2, 0, true});
  const Tensor x = random({9, 4, inputs}, 1);
  std::map<std::string, Tensor> value;
  for (const Parameter& p : model.parameters()) value[p.name] = p.value;
  const Cell &first = *model.cells()[0], &second = *model.cells()[1];
  Tensors a = first.initial(4), b = second.initial(4);
  const Tensor ys = model(x);
  for (std::int64_t t = 0; t < 9; ++t) {
    a = first.step(a, x.at(t));
    const Tensor centred = a[0] - mean(a[0], {-1}, true);
    const Tensor normed = centred / sqrt(mean(square(centred), {-1}, true) + 1e-5);
    b = second.step(b, value.at("norm2.gain") * normed + value.at("norm2.bias"));
    CHECK(difference(ys.at(t), linear(a[0] + b[0], value.at("head.V"), value.at("head.c"))) < 1e-12);
  }
}

TEST_CASE("variational dropout drops the same values at all steps") {
  const auto dropped = [](bool variational) {
    // the second layer is the identity of its first inputs, so that its outputs tell what was dropped
    Model model({.inputs = inputs, .outputs = hidden},
                {.cell = "rnn",
                 .hidden = hidden,
                 .layers = 2,
                 .dropout = 0.5,
                 .variational = variational,
                 .settings = {{"activation", "identity"}}},
                Init(5, DType::f64));
    for (const Parameter& p : model.parameters()) {
      Tensor v = p.value;
      const bool matrix = p.name == "head.V" || p.name == "cell2.U";
      if (p.name.starts_with("cell2.") || p.name.starts_with("head."))
        v.assign(matrix ? eye(hidden, DType::f64) : v * 0.0);
    }
    const Tensor x = random({9, 4, inputs}, 1);
    return cast(equal(model(x, StepContext{3, 1}), 0.0), DType::f64);
  };
  const Tensor same = dropped(true), each = dropped(false);
  for (std::int64_t t = 1; t < 9; ++t) CHECK(elements(same.at(t)) == elements(same.at(0)));
  CHECK(elements(each.at(1)) != elements(each.at(0)));
  const double share = mean(same.at(0)).item();  // of 32 values
  CHECK(share > 0.2);
  CHECK(share < 0.8);
}

TEST_CASE("what both directions cannot do is refused") {
  const Tensor x = random({9, 4, inputs}, 1);
  const Model both = make({"gru", true});
  Tensors carry;
  both(x, std::nullopt, &carry);
  CHECK(carry.empty());
  carry = {random({4, hidden}, 1), random({4, hidden}, 2)};
  CHECK(contains(error_of([&] { both(x, std::nullopt, &carry); }), "no states carry over"));
  CHECK(contains(error_of([&] { both.step(x.at(0), carry); }), "a bidirectional model has no single step"));
  CHECK(contains(error_of([] { make({"r_transformer", true}); }), "r_transformer has no states"));
}

TEST_CASE("single steps give what a scan gives") {
  for (const CellType& type : cell_registry()) {
    if (type.name == "r_transformer") continue;
    for (const bool symbols : {false, true}) {
      CAPTURE(type.name);
      const Case kind{type.name, false, true, 2, symbols ? 5 : 0, symbols};
      const Model model = make(kind);
      const Tensor x = batch(kind, false), ys = model(x);
      Tensors states = model.initial(4);
      for (std::int64_t t = 0; t < 9; ++t) CHECK(difference(model.step(x.at(t), states), ys.at(t)) < 1e-12);
    }
  }
}

TEST_CASE("lengths that no sequence can have are refused") {
  const Model model({.inputs = 2, .outputs = 3}, {.cell = "gru", .hidden = 4}, Init(5));
  const Tensor x = random({5, 3, 2}, 1, DType::f32);
  const auto said = [&](const Tensor& n) { return error_of([&] { model(x, std::nullopt, nullptr, n); }); };
  CHECK(said(Tensor::from<std::int32_t>({0, 5, 1}, {3})).empty());
  CHECK(said(Tensor::from<std::int32_t>({5, -1, 2}, {3})) ==
        "[lengths] 0 to 5 time steps are expected, got -1 of sequence 1");
  CHECK(said(Tensor::from<std::int32_t>({5, 1, 6}, {3})) ==
        "[lengths] 0 to 5 time steps are expected, got 6 of sequence 2");
  CHECK(said(Tensor::from<std::int32_t>({5}, {1})) == "[lengths] i32 [3] is expected, got i32 (1,)");
  CHECK(said(Tensor::from<float>({5, 5, 5}, {3})) == "[lengths] i32 [3] is expected, got f32 (3,)");
}
