// Layers of unlike cells and widths, and states that keep their values at random (zoneout), against loops by hand.
#include <algorithm>
#include <map>

#include "tasks/training/predictor.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t steps = 9, batch = 4, inputs = 2;

std::map<std::string, Tensor> values_of(const Model& model) {
  std::map<std::string, Tensor> out;
  for (const Parameter& p : model.parameters()) out[p.name] = p.value;
  return out;
}

Model make(const ModelOptions& options, std::int64_t outputs = 3) {
  return Model({.inputs = inputs, .outputs = outputs}, options, Init(5, DType::f64));
}

/// A model of one layer that shows its outputs: the head is the identity.
Model shown(ModelOptions options) {
  options.hidden = 8;
  const Model probe = make(options);
  const std::int64_t width = probe.cells()[0]->outputs();
  Model model = make(options, width);
  std::map<std::string, Tensor> value = values_of(model);
  value["head.V"].assign(eye(width, DType::f64));
  value["head.c"].assign(value["head.c"] * 0.0);
  return model;
}

}  // namespace

TEST_CASE("a stack of unlike layers is one cell after another") {
  const Model model = make({.stack = {{"gru", 6}, {"lstm", 5, {{"biases", "1"}}}, {"srnn", 7}}});
  REQUIRE(model.cells().size() == 3);
  const auto value = values_of(model);
  CHECK(value.at("cell1.U_z").shape() == Shape{6, 2});
  CHECK(value.at("head.V").shape() == Shape{3, 7});
  CHECK_FALSE(value.contains("cell2.b2_i"));
  const Tensor x = random({steps, batch, inputs}, 1), ys = model(x);
  std::vector<Tensors> states;
  for (const auto& cell : model.cells()) states.push_back(cell->initial(batch));
  for (std::int64_t t = 0; t < steps; ++t) {
    Tensor h = x.at(t);
    for (std::size_t l = 0; l < 3; ++l) {
      states[l] = model.cells()[l]->step(states[l], h);
      h = model.cells()[l]->output(states[l]);
    }
    CHECK(difference(ys.at(t), linear(h, value.at("head.V"), value.at("head.c"))) < 1e-12);
  }
}

TEST_CASE("residual connections need layers of one width") {
  const std::string text = error_of([] { make({.residual = true, .stack = {{"gru", 6}, {"gru", 6}, {"rnn", 5}}}); });
  CHECK(contains(text, "layer 3 has 6 inputs and 5 outputs"));
  make({.residual = true, .stack = {{"gru", 6}, {"rnn", 6}}});
}

TEST_CASE("zoneout: in training each value is the one before or the cell's, in the share that was asked for") {
  const double rate = 0.3;
  for (const std::string cell : {"rnn", "gru", "srnn"}) {
    CAPTURE(cell);
    const Model model = shown({.cell = cell, .zoneout = rate});
    const Tensor x = random({50, 20, inputs}, 1);
    const auto hs = [&](const StepContext& at) { return model(x, at); };
    const Tensor all = hs({3, 1});
    CHECK(elements(hs({3, 1})) == elements(all));
    CHECK(elements(hs({3, 2})) != elements(all));
    CHECK(elements(hs({4, 1})) != elements(all));
    Tensor before = model.cells()[0]->initial(20)[0];
    std::int64_t kept = 0, count = 0, neither = 0;
    for (std::int64_t t = 0; t < 50; ++t) {
      const Tensor after = model.cells()[0]->step({before}, x.at(t))[0], got = all.at(t);
      const auto b = before.values<double>(), a = after.values<double>(), g = got.values<double>();
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (a[i] == b[i]) continue;
        ++count;
        if (g[i] == b[i])
          ++kept;
        else if (std::abs(g[i] - a[i]) > 1e-12)
          ++neither;
      }
      before = got;
    }
    CHECK(neither == 0);
    CHECK(count > 3000);
    CHECK(static_cast<double>(kept) / static_cast<double>(count) == doctest::Approx(rate).epsilon(0.1));
  }
}

TEST_CASE("zoneout: each state of a cell, each layer and each step of training has its own random numbers") {
  // h = c of an identity: with the same numbers for both layers, they would keep the same values
  const Model model = make({.zoneout = 0.5, .stack = {{"lstm", 8}, {"lstm", 8}}});
  const Tensor x = random({1, 50, inputs}, 1);
  std::vector<std::vector<double>> kept;  // where a state is still at its start, 0
  for (const std::int64_t step : {1, 2}) {
    Tensors carry, again;
    model(x, StepContext{3, step}, &carry);
    REQUIRE(carry.size() == 4);
    for (const Tensor& s : carry) kept.push_back(cast(equal(s, 0.0), DType::f64).values<double>());
    model(x, StepContext{3, step, Tensor::full({}, static_cast<double>(step), DType::f64)}, &again);
    for (std::size_t i = 0; i < carry.size(); ++i) CHECK(elements(again[i]) == elements(carry[i]));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    double share = 0;
    for (const double k : kept[i]) share += k / static_cast<double>(kept[i].size());
    CHECK(share == doctest::Approx(0.5).epsilon(0.15));
    for (std::size_t j = 0; j < i; ++j) CHECK(kept[i] != kept[j]);
  }
}

TEST_CASE(
    "dropout within cells: each place in a cell, each layer and each step of training has its own random numbers") {
  // The levels add what is left of these biases to x = 0, and nothing else: 2 of each that is kept, 0 of the others.
  const auto kept = [](std::int64_t layers, const std::vector<std::string>& ones, std::int64_t step) {
    constexpr std::int64_t width = 8;
    const Model model =
        make({.cell = "r_transformer", .hidden = width, .layers = layers, .settings = {{"dropout", "0.5"}}}, width);
    for (auto& [name, value] : values_of(model)) {
      const bool one = std::any_of(ones.begin(), ones.end(), [&](const auto& bias) { return name.ends_with(bias); });
      Tensor(value).assign(name == "head.V" ? eye(width, DType::f64) : zeros_like(value) + (one ? 1.0 : 0.0));
    }
    const Tensor x = Tensor::zeros({50, 1, inputs}, DType::f64), ys = model(x, StepContext{3, step});
    const Tensor number = Tensor::full({}, static_cast<double>(step), DType::f64);
    CHECK(elements(model(x, StepContext{3, step, number})) == elements(ys));
    return ys.values<double>();
  };
  const auto half_is_two = [](const std::vector<double>& sums) {  // one of both is kept
    const auto twos = static_cast<double>(std::count(sums.begin(), sums.end(), 2.0));
    CHECK(twos / static_cast<double>(sums.size()) == doctest::Approx(0.5).epsilon(0.2));
  };
  half_is_two(kept(1, {".b_o", ".b_2"}, 1));
  half_is_two(kept(2, {".b_2"}, 1));
  half_is_two([&] {
    std::vector<double> sums = kept(1, {".b_2"}, 1);
    const std::vector<double> next = kept(1, {".b_2"}, 2);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += next[i];
    return sums;
  }());
}

TEST_CASE("zoneout: outside of training states move to the mean, row by row as well") {
  const TempDir dir;
  const ModelConfig config{.task = "test",
                           .shape = {.inputs = inputs, .outputs = 3},
                           .options = {.zoneout = 0.2, .stack = {{"lstm", 5}, {"eurnn", 8}, {"gru", 4}}},
                           .dtype = DType::f64};
  Model model(config.shape, config.options, Init(5, DType::f64));
  save_model_config(dir.path + "/model.json", config);
  const ModelConfig read = load_model_config(dir.path + "/model.json");
  CHECK(model_config_text(read) == model_config_text(config));
  CHECK(read.options.stack[1].cell == "eurnn");
  CHECK(read.options.layers == 3);

  const auto value = values_of(model);
  const Tensor x = random({steps, 1, inputs}, 1), ys = model(x);
  save_safetensors(dir.path + "/best.safetensors", [&] {
    TensorFile file;
    for (const auto& [name, v] : value) file.tensors.emplace_back(name, v);
    return file;
  }());
  Predictor predictor(dir.path);
  std::vector<Tensors> states;
  for (const auto& cell : model.cells()) states.push_back(cell->initial(1));
  for (std::int64_t t = 0; t < steps; ++t) {
    Tensor h = x.at(t);
    for (std::size_t l = 0; l < 3; ++l) {
      const Tensors next = model.cells()[l]->step(states[l], h);
      for (std::size_t i = 0; i < next.size(); ++i) states[l][i] = 0.2 * states[l][i] + 0.8 * next[i];
      h = model.cells()[l]->output(states[l]);
    }
    const Tensor wanted = linear(h, value.at("head.V"), value.at("head.c"));
    CHECK(difference(ys.at(t), wanted) < 1e-12);
    const auto row = predictor.next(x.at(t).values<double>());
    for (std::size_t k = 0; k < 3; ++k) CHECK(std::abs(row[k] - wanted.values<double>()[k]) < 1e-12);
  }
}

TEST_CASE("zoneout and padding: a sequence has the outputs that it has alone") {
  const Model model = make({.hidden = 8, .bidirectional = true, .zoneout = 0.2});
  const Tensor x = random({steps, 2, inputs}, 1), lengths = Tensor::from<std::int32_t>({5, 9}, {2});
  const Tensor both = model(x, std::nullopt, nullptr, lengths);
  const auto alone = [&](const Tensor& all) { return slice(slice(all, 1, 0, 1), 0, 0, 5); };
  CHECK(difference(alone(both), model(alone(x))) < 1e-12);
}

TEST_CASE("zoneout of a cell without states is refused") {
  CHECK(contains(error_of([] { make({.cell = "r_transformer", .zoneout = 0.1}); }), "r_transformer has no states"));
}
