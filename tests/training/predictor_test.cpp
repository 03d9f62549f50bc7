// A run's model without its program: the same outputs, row by row and whole, and clear errors for damaged folders.
#include "tasks/training/predictor.h"

#include "tasks/io/files.h"
#include "tasks/training/checkpoint.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

ModelConfig config(const std::string& cell, std::int64_t vocabulary = 0) {
  return {.task = "test",
          .shape = {.vocabulary = vocabulary, .inputs = vocabulary ? 0 : 3, .outputs = 2},
          .options = {.cell = cell, .hidden = 8, .layers = 2},
          .dtype = DType::f64};
}

/// A folder with a model whose parameters were drawn from seed 7, and the model.
Model save_run(const std::string& folder, const ModelConfig& c) {
  Model model(c.shape, c.options, Init(7, c.dtype));
  save_model_config(folder + "/model.json", c);
  save_best(folder + "/best.safetensors", model, {3, 0.5});
  return model;
}

std::vector<double> row(const Tensor& x, std::int64_t t) { return x.at(t).values<double>(); }

}  // namespace

TEST_CASE("rows one after another give what the model gives for the whole sequence, for every cell") {
  const TempDir dir;
  for (const CellType& type : cell_registry()) {
    if (type.name == "r_transformer") continue;
    CAPTURE(type.name);
    const Model model = save_run(dir.path, config(type.name));
    Predictor predictor(dir.path);
    const Tensor x = random({9, 1, 3}, 1), expected = model(x);
    CHECK(difference(predictor(x), expected) == 0);
    for (int again = 0; again < 2; ++again) {
      predictor.reset();
      for (std::int64_t t = 0; t < 9; ++t) {
        const auto y = predictor.next(row(x, t));
        const auto wanted = row(expected, t);
        for (std::size_t k = 0; k < 2; ++k) CHECK(y[k] == doctest::Approx(wanted[k]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("symbols, and states that are saved and loaded") {
  const TempDir dir;
  const Model model = save_run(dir.path, config("gru", 5));
  const std::vector<std::int32_t> symbols{3, 0, 4, 1, 1, 2};
  const Tensor expected = model(Tensor::from<std::int32_t>(symbols, {6, 1}));
  Predictor first(dir.path), second(dir.path);
  for (std::int64_t t = 0; t < 6; ++t) {
    Predictor& p = t < 3 ? first : second;
    const auto y = p.next(symbols[static_cast<std::size_t>(t)]);
    const auto wanted = row(expected, t);
    for (std::size_t k = 0; k < 2; ++k) CHECK(y[k] == doctest::Approx(wanted[k]).epsilon(1e-12));
    if (t == 2) {
      first.save_states(dir.path + "/states.safetensors");
      second.load_states(dir.path + "/states.safetensors");
    }
  }
}

TEST_CASE("without best parameters those of the checkpoint are taken") {
  const TempDir dir;
  const ModelConfig c = config("lstm");
  const Model model = save_run(dir.path, c);
  const Optimizer optimizer(model.trained(), {.kind = "adam"});
  const std::string path = dir.path + "/checkpoint.safetensors";
  Progressed at;
  at.step = 3;
  save_checkpoint(path, model, optimizer, Schedule({}), 7, at);
  std::filesystem::remove(dir.path + "/best.safetensors");
  const Predictor predictor(dir.path);
  CHECK(predictor.weights() == path);
  const Tensor x = random({4, 2, 3}, 1);
  CHECK(difference(predictor(x), model(x)) == 0);
  save_checkpoint(path, model, optimizer, Schedule({}), 7, {});
  CHECK(contains(error_of([&] { const Predictor p(dir.path); }), path + "] its run has done no update, so "));
}

TEST_CASE("rows, symbols and states that do not fit are refused") {
  const TempDir dir;
  save_run(dir.path, config("lstm"));
  Predictor p(dir.path);
  for (const std::int32_t wrong : {0, 5, -1})
    CHECK(error_of([&] {
            p(random({4, 2, 3}, 1), Tensor::from<std::int32_t>({4, wrong}, {2}));
          }) == fmt::format("[lengths] 1 to 4 time steps are expected, got {} of sequence 1", wrong));
  CHECK(contains(error_of([&] {
                   p(random({4, 2, 3}, 1), Tensor::from<std::int32_t>({4}, {1}));
                 }),
                 "[lengths] i32 [2] is expected"));
  CHECK(contains(error_of([&] { p.next(std::vector<double>{1, 2}); }), "a row has 3 numbers, got 2"));
  CHECK(contains(error_of([&] { p.next(1); }), "rows of numbers, got the symbol 1"));
  CHECK(contains(error_of([&] { p(random({4, 2, 5}, 1)); }), "[T, B, inputs] with 3 inputs, got f64 (4, 2, 5)"));
  CHECK(contains(error_of([&] { p(random({0, 2, 3}, 1)); }), "1 or more time steps"));
  CHECK(contains(error_of([&] { p.set_states({random({1, 8}, 1)}); }), "the states of this model are f64 (1, 8), "));
  save_run(dir.path, config("lstm", 5));
  Predictor symbols(dir.path);
  CHECK(contains(error_of([&] { symbols.next(5); }), "symbols are 0 to 4, got 5"));
  CHECK(contains(error_of([&] { symbols.next(std::vector<double>{1}); }), "this model reads symbols"));
  ModelConfig both = config("lstm");
  both.options.bidirectional = true;
  save_run(dir.path, both);
  Predictor whole(dir.path);
  CHECK(whole(random({4, 2, 3}, 1)).shape() == Shape{4, 2, 2});
  CHECK(contains(error_of([&] {
                   whole.next(std::vector<double>{1, 2, 3});
                 }),
                 "whole sequences, not row by row: it is"));
}

TEST_CASE("states that are damaged, of another model or not finite are refused with the name of the file") {
  const TempDir dir;
  save_run(dir.path, config("lstm"));
  Predictor p(dir.path);
  const std::string path = dir / "states.safetensors";
  p.next(std::vector<double>{1, 2, 3});
  p.save_states(path);
  const std::string good = read_file(path);
  const TensorFile file = load_safetensors(path);
  const auto error = [&](const TensorFile& other) {
    save_safetensors(path, other);
    return error_of([&] { p.load_states(path); });
  };
  CHECK(error(file).empty());
  CHECK(contains(error({{{"state.7", file.tensors[0].second}}, {}}), path + "] [safetensors] there is no tensor"));
  CHECK(contains(error({{file.tensors[0]}, {}}), path + "] [predictor] the states of this model are f64 (1, 8), "));
  TensorFile wild = file;
  wild.tensors[1].second = full({1, 8}, NAN, DType::f64);
  CHECK(contains(error(wild), path + "] state.1: element 0 is NaN"));
  write_atomically(path, good.substr(0, good.size() - 1));
  CHECK(contains(error_of([&] { p.load_states(path); }), path));
  // a model of the same shapes with other parameters; older versions did not write them down
  const TempDir other;
  save_model_config(other.path + "/model.json", config("lstm"));
  save_best(other.path + "/best.safetensors", Model(config("lstm").shape, config("lstm").options, Init(8, DType::f64)),
            {3, 0.5});
  Predictor of_others(other.path);
  write_atomically(path, good);
  CHECK(contains(error_of([&] { of_others.load_states(path); }),
                 path + "] [predictor] these states belong to a model whose parameters have the checksum "));
  CHECK(difference(of_others.states()[0], Tensor::zeros({1, 8}, DType::f64)) == 0);
  save_safetensors(path, {file.tensors, {}});
  of_others.load_states(path);
  CHECK(difference(of_others.states()[0], p.states()[0]) == 0);
  // states that have become infinite replace no good file
  write_atomically(path, good);
  Tensors endless = p.states();
  endless[0] = full({1, 8}, INFINITY, DType::f64);
  p.set_states(endless);
  CHECK(contains(error_of([&] { p.save_states(path); }), path + "] state.0: element 0 is infinite"));
  CHECK(read_file(path) == good);
}

TEST_CASE("a folder that is damaged or of another model is refused in one line") {
  const TempDir dir;
  const auto error = [&] { return error_of([&] { const Predictor p(dir.path); }); };
  CHECK(contains(error(), "is not the folder of a run"));
  CHECK(contains(error_of([&] { const Predictor p(dir / "none"); }), "] does not exist"));
  write_atomically(dir.path + "/config.toml", "");
  CHECK(contains(error(), "has no model.json"));
  save_run(dir.path, config("lstm"));
  const std::string path = dir.path + "/model.json", good = read_file(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(contains(text, from));
    write_atomically(path, text.replace(text.find(from), from.size(), to));
    return error();
  };
  CHECK(contains(with("\"hidden\": 8", "\"hidden\": 9"), "best.safetensors"));
  CHECK(contains(with("\"hidden\": 8", "\"hidden\": -1"), "hidden is -1, not an integer from 1 to 1000000"));
  CHECK(contains(with("\"hidden\": 8", "\"hidden\": 18446744073709551615"), "hidden is 18446744073709551615, not"));
  CHECK(contains(with("\"hidden\": 8", "\"hidden\": \"8\""), "hidden is \"8\", not an integer"));
  CHECK(contains(with("\"hidden\": 8", "\"height\": 8"), "has no field \"hidden\""));
  CHECK(contains(with("\"hidden\": 8", "\"hidden\": 8, \"later\": 1"), "has a field \"later\", which this version"));
  CHECK(contains(with("\"lstm\"", "\"lsmt\""), "lstm"));
  CHECK(contains(with("\"inputs\": 3", "\"inputs\": 0"), "one of vocabulary and inputs"));
  CHECK(contains(with("\"f64\"", "\"f16\""), "dtype is \"f16\""));
  CHECK(contains(with("{", "["), "is not JSON"));
  CHECK(with("\"hidden\": 8", "\"hidden\": 8").empty());
}
