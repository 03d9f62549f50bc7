// The model around the cells: layers, dropout between them, checkpoints over time.
#include "tasks/training/model.h"

#include <algorithm>

#include "cells/registry.h"
#include "tests/cells/distributions.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

Model make(ModelOptions options, std::int64_t outputs = 3) {
  options.hidden = 16;
  return Model({.inputs = 2, .outputs = outputs}, options, Init(5, DType::f64));
}

const Tensor& input() {
  static const Tensor x = random({9, 4, 2}, 1);
  return x;
}

Tensors trained(const Model& model) {
  Tensors out;
  for (const Parameter& p : model.trained()) out.push_back(p.value);
  return out;
}

}  // namespace

TEST_CASE("dropout is between layers, in training, and a function of seed and step") {
  for (const std::string cell : {"srnn", "lstm"}) {
    CAPTURE(cell);
    const Model stack = make({.cell = cell, .layers = 3, .dropout = 0.5});
    const Model plain = make({.cell = cell, .layers = 3});
    const Model one = make({.cell = cell, .layers = 1, .dropout = 0.5});
    const auto differ = [](const Tensor& a, const Tensor& b) { return difference(a, b) > 1e-3; };
    CHECK(elements(stack(input())) == elements(plain(input())));
    CHECK(elements(one(input(), StepContext{1, 1})) == elements(one(input())));
    const Tensor y = stack(input(), StepContext{1, 7});
    CHECK(elements(stack(input(), StepContext{1, 7})) == elements(y));
    CHECK(differ(stack(input(), StepContext{1, 8}), y));
    CHECK(differ(stack(input(), StepContext{2, 7}), y));
    CHECK(differ(stack(input()), y));
  }
}

TEST_CASE("checkpoints change neither outputs nor gradients, last state or every step") {
  for (const bool every_step : {true, false}) {
    CAPTURE(every_step);
    const auto all = [&](std::int64_t every) {
      const Model model({.inputs = 2, .outputs = 3, .every_step = every_step},
                        {.cell = "gru", .hidden = 16, .layers = 2, .checkpoint_every = every}, Init(5, DType::f64));
      Tape tape;
      const Tensor y = model(input());
      Tensors out = grad({sum(square(y))}, trained(model));
      out.push_back(y);
      return out;
    };
    const Tensors expected = all(0);
    for (std::int64_t every : {1, 3, 4, 9, 20}) {
      CAPTURE(every);
      const Tensors got = all(every);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-12);
    }
  }
}

TEST_CASE("without an output at every step, the output is that of the last one, to the same gradients") {
  for (const CellType& type : cell_registry()) {
    for (const std::int64_t layers : {1, 2}) {
      CAPTURE(type.name);
      const auto outputs = [&](bool every_step) {
        const ModelShape shape{.inputs = 2, .outputs = 3, .every_step = every_step};
        const Model model(shape, {.cell = type.name, .hidden = 16, .layers = layers}, Init(5, DType::f64));
        Tape tape;
        const Tensor y = model(input());
        Tensors out{every_step ? at(y, 8) : y};
        for (const Tensor& g : grad({sum(square(out[0]))}, trained(model))) out.push_back(g);
        return out;
      };
      const Tensors last = outputs(false), all = outputs(true);
      for (std::size_t i = 0; i < last.size(); ++i) CHECK(difference(last[i], all[i]) < 1e-12);
    }
  }
}

TEST_CASE("without an output at every step, the last layer's loop computes none") {
  for (const bool every_step : {true, false}) {
    const ModelShape shape{.inputs = 16, .outputs = 3, .every_step = every_step};
    const Model model(shape, {.cell = "sru", .hidden = 16, .layers = 2}, Init(5, DType::f64));
    Tape tape;
    model(random({9, 3, 16}, 1));  // as wide as the first layer's outputs, so that both layers have the same products
    std::vector<std::ptrdiff_t> products;  // in each layer's loop: W_r, W_phi, and W_o of output()
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (tape.node(i).op != &op_of<Scan>()) continue;
      const auto& nodes = tape.node(i).attrs.as<Scan>().loop().body.nodes;
      products.push_back(
          std::ranges::count(nodes, "matmul", [](const auto& n) { return std::string(n.op->traits.name); }));
    }
    REQUIRE(products.size() == 2);
    CHECK(products[0] - products[1] == (every_step ? 0 : 1));
  }
}

TEST_CASE("the head starts as PyTorch's Linear unless another law is chosen, which changes nothing else") {
  constexpr std::int64_t inputs = 2, outputs = 200, units = 64;
  const auto model = [&](const ModelOptions& options) {
    return Model({.inputs = inputs, .outputs = outputs}, options, Init(5, DType::f64));
  };
  const Model plain = model({.cell = "gru", .hidden = units});
  const std::map<std::string, std::pair<Law, Law>> laws{
      {"linear", {linear_of(units), linear_of(units)}},
      {"glorot-normal", {glorot_normal(outputs, units), constant(0)}},
      {"glorot-uniform", {glorot_uniform(outputs, units), constant(0)}},
      {"eunn", {glorot_uniform(outputs, inputs), constant(0.01)}}};
  REQUIRE(laws.size() == ModelOptions::head_inits().size());
  for (const std::string& start : ModelOptions::head_inits()) {
    CAPTURE(start);
    const Model other = model({.cell = "gru", .hidden = units, .head_init = start});
    REQUIRE(other.parameters().size() == plain.parameters().size());
    for (std::size_t i = 0; i < other.parameters().size(); ++i) {
      const Parameter& p = other.parameters()[i];
      CAPTURE(p.name);
      CHECK(p.name == plain.parameters()[i].name);
      CHECK((elements(p.value) == elements(plain.parameters()[i].value)) == (p.group != "head" || start == "linear"));
      if (p.name == "head.V") laws.at(start).first.check(p.value);
      if (p.name == "head.c") laws.at(start).second.check(p.value);
    }
  }
  const std::string text = error_of([&] { model({.head_init = "glorot"}); });
  CHECK_MESSAGE(contains(text, "head-init: one of linear, glorot-normal, glorot-uniform, eunn is needed"), text);
  CHECK(contains(text, "got \"glorot\""));
}

TEST_CASE("the penalty of a stack is the sum of its layers'") {
  const std::map<std::string, std::string> settings{{"delta", "0.5"}, {"T_decay", "0.25"}};
  const Model model({.inputs = 2, .outputs = 3}, {.cell = "nnrnn", .hidden = 4, .layers = 2, .settings = settings},
                    Init(5, DType::f64));
  double expected = 0;
  std::uint64_t seed = 1;
  for (const Parameter& p : model.parameters()) {
    if (!p.name.ends_with(".alpha")) continue;
    Tensor(p.value).assign(random(p.value.shape(), seed++));
    for (const double a : p.value.values<double>()) expected += 0.5 * (a - 1) * (a - 1);
  }
  CHECK(seed == 3);
  CHECK(model.penalty().item() == doctest::Approx(expected).epsilon(1e-14));
}

TEST_CASE("a number of a setting has one form, whoever wrote it: the default, an option, a run's config.toml") {
  const auto settings = [](const std::string& decay) {
    ModelOptions options{.cell = "nnrnn"};
    if (!decay.empty()) options.settings = {{"T_decay", decay}};
    return with_all_settings(options).settings;
  };
  CHECK(settings("").at("T_decay") == "0.0001");
  for (const char* decay : {"1e-4", "0.0001", "0.00010"}) CHECK(settings(decay) == settings(""));
}

TEST_CASE("no two parameters have one name or one tensor, not even those of different layers") {
  struct Own final : Model {
    using Model::add;
  };
  const Tensor w = Tensor::zeros({4, 4});
  Own model;
  model.add({"cell1.W", w});
  CHECK(error_of([&] { model.add({"cell2.W", w}); }) == "[parameter] \"cell1.W\" and \"cell2.W\" are one tensor");
  CHECK(error_of([&] { model.add({"cell1.W", w + 1.0}); }) == "[parameter] two parameters are called \"cell1.W\"");
  CHECK(error_of([&] { model.add({"cell3.W", Tensor()}); }) == "[parameter] \"cell3.W\" has no tensor");
  CHECK(error_of([&] { model.add({"a/b", w + 1.0}); }).find("\"a/b\": a name has") != std::string::npos);
  model.add({"cell2.W", w + 1.0});
  CHECK(model.count() == 32);
}

TEST_CASE("options out of range, and states that are not those of the layers, are refused") {
  const auto model = [](const ModelOptions& options) { return Model({.inputs = 2, .outputs = 3}, options, Init(5)); };
  const auto said = [&](const ModelOptions& options) { return error_of([&] { model(options); }); };
  CHECK(said({.cell = "gru", .dropout = -1}) == "dropout: a share from 0 to below 1 is needed, got -1");
  CHECK(said({.cell = "gru", .zoneout = 1}) == "zoneout: a share from 0 to below 1 is needed, got 1");
  CHECK(said({.cell = "gru", .layers = 0}) == "layers: 1 or more is needed, got 0");
  CHECK(said({.cell = "gru", .input = "foo"}) == "input: \"foo\" is not one of embedding, one-hot");
  const Model lstm = model({.cell = "lstm", .hidden = 4, .layers = 2});
  const Tensor x = random({5, 3, 2}, 1, DType::f32);
  Tensors states;
  const Tensor y = lstm.step(x.at(0), states), whole = lstm(x);  // from the first states
  CHECK(states.size() == 4);
  CHECK(difference(y, whole.at(0)) < 1e-6);
  states.pop_back();
  CHECK(error_of([&] { lstm.step(x.at(1), states); }) == "[model] its layers have 4 states, got 3");
  CHECK(error_of([&] { lstm(x, std::nullopt, &states); }) == "[model] its layers have 4 states, got 3");
}

TEST_CASE("an input that is not what the model's shape says is refused, of sequences and of one step") {
  const ModelOptions gru{.cell = "gru", .hidden = 4};
  const Model numbers({.inputs = 2, .outputs = 3}, gru, Init(5)),
      symbols({.vocabulary = 3, .outputs = 3}, gru, Init(5)),
      levels({.inputs = 1, .outputs = 3, .levels = Tensor::zeros({4, 1})}, gru, Init(5));
  const auto said = [](const Model& model, const Tensor& x) { return error_of([&] { model(x); }); };
  const auto step = [](const Model& model, const Tensor& x) {
    Tensors states;
    return error_of([&] { model.step(x, states); });
  };
  const auto f32 = [](const Shape& shape) { return Tensor::zeros(shape); };
  const auto i32 = [](const Shape& shape) { return Tensor::zeros(shape, DType::i32); };
  const std::string wide = "[model] x must be numbers [T, B, inputs] with 2 inputs, got ";
  CHECK(said(numbers, f32({5, 3, 2})).empty());
  CHECK(said(numbers, f32({5, 3, 3})) == wide + "f32 (5, 3, 3)");
  CHECK(said(numbers, f32({5, 2})) == wide + "f32 (5, 2)");
  CHECK(said(numbers, f32({0, 3, 2})) == "[model] 1 or more time steps are needed, got f32 (0, 3, 2)");
  CHECK(said(numbers, Tensor()) == wide + "an undefined tensor");
  CHECK(said(symbols, i32({5, 3})).empty());
  CHECK(said(symbols, i32({5, 3, 1})) == "[model] x must be symbols, i32 [T, B], got i32 (5, 3, 1)");
  CHECK(said(symbols, f32({5, 3})) == "[model] x must be symbols, i32 [T, B], got f32 (5, 3)");
  CHECK(said(symbols, Tensor()) == "[model] x must be symbols, i32 [T, B], got an undefined tensor");
  CHECK(said(levels, i32({5, 3})).empty());
  CHECK(said(levels, f32({5, 3, 1})).empty());
  CHECK(said(levels, i32({5, 3, 1})) == "[model] x must be levels, i32 [T, B], got i32 (5, 3, 1)");
  CHECK(step(numbers, f32({3, 2})).empty());
  CHECK(step(numbers, f32({3, 4})) == "[model] x must be numbers [B, inputs] with 2 inputs, got f32 (3, 4)");
  CHECK(step(numbers, f32({5, 3, 2})) == "[model] x must be numbers [B, inputs] with 2 inputs, got f32 (5, 3, 2)");
  CHECK(step(symbols, i32({3})).empty());
  CHECK(step(symbols, i32({5, 3})) == "[model] x must be symbols, i32 [B], got i32 (5, 3)");
  CHECK(error_of([&] { Model({.vocabulary = 0, .inputs = 0}, gru, Init(5)); }) ==
        "inputs: inputs (numbers at each step) or vocabulary (different symbols) is 1 or more, got inputs = 0, "
        "vocabulary = 0");
}
