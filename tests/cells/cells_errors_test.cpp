// Sizes and settings that cannot be: one clear error each, an SettingError that names the setting.
#include "cells/cell.h"
#include "tests/support/cells.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Given = std::map<std::string, std::string>;

const std::vector<std::string> asked_before_main = activation_names();  // as the list of a REEL_CELL's setting

std::unique_ptr<Cell> make(const std::string& name, std::int64_t input, std::int64_t hidden, const Given& given) {
  Init init(1);
  const CellType& type = cell_type(name);
  return type.make(input, hidden, Settings(name, type.settings, given), init);
}

/// The text of the SettingError that f throws; another exception fails the test.
std::string setting_error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const SettingError& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("no SettingError, but: ") + e.what();
  }
  return "no error";
}

struct BadSize {
  std::string cell;
  std::int64_t hidden;
  Given given;
  std::string text;
};

const std::vector<BadSize> bad_sizes{
    {"eurnn",
     12,
     {},
     "hidden: the fft style needs 2, 4, 8, ... units, a power of two, got 12. Hint: eurnn.style = tunable"},
    {"eurnn",
     1,
     {},
     "hidden: the fft style needs 2, 4, 8, ... units, a power of two, got 1. Hint: eurnn.style = tunable"},
    {"eurnn", 7, {{"style", "tunable"}}, "hidden: the tunable style needs an even number of units, got 7"},
    {"eurnn", 8, {{"style", "tunable"}, {"capacity", "3"}}, "eurnn.capacity: an even number of layers expected, got 3"},
    {"goru",
     12,
     {},
     "hidden: the fft style needs 2, 4, 8, ... units, a power of two, got 12. Hint: goru.style = tunable"},
    {"goru", 7, {{"style", "tunable"}}, "hidden: the tunable style needs an even number of units, got 7"},
    {"goru", 8, {{"style", "tunable"}, {"capacity", "5"}}, "goru.capacity: an even number of layers expected, got 5"},
    {"goru",
     8,
     {{"style", "householder"}, {"reflections", "8"}},
     "goru.reflections: fewer than the 8 units expected, got 8"},
    {"nru",
     8,
     {{"memory", "6"}, {"heads", "4"}},
     "nru.memory: the root of memory times heads must be whole, as a head's vector is an outer product; got 6 times "
     "4"},
    {"nnrnn", 7, {}, "hidden: nnrnn needs an even number of units, got 7"},
    {"enrnn", 8, {{"short", "3"}}, "enrnn.short: an even number is needed, as T starts with blocks of 2, got 3"},
    {"enrnn", 8, {{"short", "8"}}, "enrnn.short: fewer than 8 units expected, got 8"},
    {"enrnn", 2, {}, "hidden: enrnn needs 3 units or more, got 2"},
    {"enrnn", 8, {{"short", "2"}, {"negatives", "7"}}, "enrnn.negatives: at most 6 (the units) expected, got 7"},
    {"enrnn", 8, {{"inputs", "identity"}}, "enrnn.inputs: the identity needs inputs as wide as the state, got 3 and 8"},
    {"scornn", 8, {{"negatives", "9"}}, "scornn.negatives: at most 8 (the units) expected, got 9"},
    {"ornn", 8, {{"reflections", "9"}}, "ornn.reflections: at most 8 (the units) expected, got 9"},
    {"ornn", 7, {{"activation", "oplu"}}, "hidden: oplu works on pairs, so an even number of units is needed, got 7"},
    {"ornn",
     7,
     {{"activation", "modrelu_pairs"}},
     "hidden: modrelu_pairs works on pairs, so an even number of units is needed, got 7"},
    {"spectral_rnn", 8, {{"reflections", "9"}}, "spectral_rnn.reflections: at most 8 (the units) expected, got 9"},
    {"lt_rnn", 8, {{"pool", "3"}}, "lt_rnn.pool: the number of units, 8, is not divisible by 3"},
    {"lt_irnn", 8, {{"pool", "3"}}, "lt_irnn.pool: the number of units, 8, is not divisible by 3"},
    {"r_transformer", 1, {{"heads", "1"}}, "hidden: r_transformer needs 2 units or more, got 1"},
    {"r_transformer", 8, {{"heads", "3"}}, "r_transformer.heads: the number of units, 8, is not divisible by 3"},
    {"rnn",
     8,
     {{"norm", "layer"}},
     "rnn.biases: layer normalisation takes one bias, as it has an offset of its own. Hint: rnn.biases = 1"},
    {"rnn-orth",
     8,
     {{"biases", "2"}},
     "rnn-orth.biases: layer normalisation takes one bias, as it has an offset of its own. Hint: rnn-orth.biases = "
     "1"},
    {"gru",
     8,
     {{"reset", "before"}},
     "gru.biases: two biases are PyTorch's form, which resets after. Hint: gru.biases = 1"},
    {"gru", 8, {{"activation", "modrelu"}}, "gru.biases: modReLU has its bias as a threshold. Hint: gru.biases = 1"},
    {"gru",
     8,
     {{"activation", "modrelu"}, {"biases", "1"}, {"norm", "layer"}},
     "gru.norm: modReLU goes without layer normalisation"},
};

/// Values just outside of a number's range; empty where it has no end that is worth one.
struct Outside {
  std::string below, above;
};
const std::map<std::string, Outside> ranges{
    {"lstm.forget_bias", {}},
    {"lstm.chrono", {"-0.1", "16777217"}},
    {"janet.beta", {}},
    {"janet.chrono", {"1.9", "16777217"}},
    {"sru.p", {"0", "16777217"}},
    {"sru.q", {"-1", "16777217"}},
    {"nru.memory", {"0", "16777217"}},
    {"nru.heads", {"0", "65537"}},
    {"nru.norm_limit", {"-0.1", ""}},
    {"srnn.width", {"0", "16777217"}},
    {"srnn.layers", {"0", "1001"}},
    {"lt_rnn.pool", {"-1", "16777217"}},
    {"lt_rnn.clip", {"-0.1", "3.5e+38"}},
    {"lt_rnn.soft_orthogonal", {"-0.1", ""}},
    {"lt_irnn.soft_orthogonal", {"-0.1", ""}},
    {"lt_irnn.pool", {"-1", "16777217"}},
    {"lt_irnn.clip", {"-0.1", "3.5e+38"}},
    {"eurnn.capacity", {"1", "16777217"}},
    {"goru.capacity", {"1", "16777217"}},
    {"goru.reflections", {"0", "16777217"}},
    {"ornn.reflections", {"-1", "16777217"}},
    {"scornn.negatives", {"-2", "16777217"}},
    {"dtriv.rebase", {"0", "16777217"}},
    {"dtriv.project", {"-1", "16777217"}},
    {"nnrnn.delta", {"-0.1", ""}},
    {"nnrnn.T_decay", {"-0.1", ""}},
    {"spectral_rnn.reflections", {"-1", "16777217"}},
    {"spectral_rnn.rho", {"-0.1", "1.1"}},
    {"enrnn.short", {"-1", "16777217"}},
    {"enrnn.negatives", {"-2", "16777217"}},
    {"enrnn.epsilon", {"-0.1", ""}},
    {"r_transformer.width", {"0", "16777217"}},
    {"r_transformer.window", {"0", "16777217"}},
    {"r_transformer.heads", {"0", "16777217"}},
    {"r_transformer.dropout", {"-0.1", "1"}},
};

/// What must be given, too, for a setting to be read.
const std::map<std::string, Given> read_with{
    {"goru.reflections", {{"style", "householder"}}},
    {"r_transformer.width", {{"cell", "srnn"}}},
};

/// A cell whose author has made the mistake that its setting says.
class Mistaken final : public Cell {
 public:
  Mistaken(std::int64_t i, std::int64_t n, const Settings& s, Init& init) : Cell(i, n, init), kind_(s.choice("kind")) {
    if (kind_ == "setting") s.integer("colour", 1);
    if (kind_ == "integer of a real") s.integer("rate", 0);
    if (kind_ == "real of a choice") s.real("kind");
    if (kind_ == "on of a real") s.on("rate");
    if (kind_ == "on of a choice") s.on("kind");
    W_ = parameter("W", init.glorot_uniform({n, i}), kind_ == "group" ? "slow=1,fast" : "");
  }
  std::vector<State> states() const override {
    if (kind_ == "none") return {};
    const std::string second = kind_ == "names" ? "h" : kind_ == "slash" ? "c/d" : "c";
    return {{"h", hidden}, {second, kind_ == "width" ? 0 : hidden}};
  }
  Tensors step(const Tensors& state, const Tensor& x) const override {
    const Tensor h = tanh(state[0] + linear(x, W_));
    if (kind_ == "few") return {h};
    if (kind_ == "shape") return {h, concat({h, h}, 1)};
    if (kind_ == "dtype") return {h, cast(h, DType::f64)};
    if (kind_ == "undefined") return {h, Tensor()};
    return {h, state[1]};
  }
  Tensor output(const Tensors& state) const override {
    if (kind_ == "output rank") return sum(state[0], {0});
    if (kind_ == "output dtype") return complex(state[0], state[1]);
    return kind_ == "output" ? concat(state, 1) : state[0];
  }
  std::int64_t outputs() const override { return kind_ == "outputs" ? 0 : hidden; }
  Tensor penalty() const override {
    if (kind_ == "penalty shape") return square(W_);
    if (kind_ == "penalty dtype") return cast(sum(square(W_)), DType::f64);
    return {};
  }
  Sequence run(const Tensors& state, const CellInput& in, const ScanOptions& options, Loc where) const override {
    if (kind_ == "run") return {};
    Sequence all = Cell::run(state, in, options, where);
    if (kind_ == "run last") all.last[1] = concat(all.last, 1);
    if (kind_ == "run hs") all.hs = sum(state[0], {0});
    if (kind_ == "run dtype" && in.every_step) all.hs = complex(all.hs, all.hs);
    return all;
  }

 private:
  std::string kind_;
  Tensor W_;
};

}  // namespace

TEST_CASE("sizes that do not fit: the whole text") {
  for (const BadSize& b : bad_sizes) {
    CAPTURE(b.cell);
    CHECK(setting_error_of([&] { make(b.cell, 3, b.hidden, b.given); }) == b.text);
  }
}

TEST_CASE("no units and no inputs, for every cell") {
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    for (const std::int64_t n : {0, -3}) {
      CHECK(setting_error_of([&] { make(type.name, 3, n, {}); }) ==
            fmt::format("hidden: 1 or more units are needed, got {}", n));
      CHECK(error_of([&] { make(type.name, n, 8, {}); }) ==
            fmt::format("[cell] 1 or more inputs are needed, got {}", n));
    }
  }
}

TEST_CASE("one to nine units, one input: every cell runs, or its SettingError names hidden or a setting") {
  for (const CellType& type : cell_registry()) {
    int made = 0;
    for (std::int64_t n = 1; n <= 9; ++n) {
      CAPTURE(type.name);
      CAPTURE(n);
      std::unique_ptr<Cell> cell;
      const std::string error = setting_error_of([&] { cell = make(type.name, 1, n, {}); });
      if (!cell) {
        CHECK((error.starts_with("hidden: ") || error.starts_with(type.name + ".")));
        continue;
      }
      ++made;
      const Sequence all = scan(*cell, cell->initial(2), random({3, 2, 1}, 1, DType::f32));
      CHECK(all.hs.shape() == Shape{3, 2, cell->outputs()});
      for (const auto& v : elements(all.hs)) CHECK(std::isfinite(v.real()));
    }
    CHECK(made > 0);
  }
}

TEST_CASE("every setting of every cell: words, other kinds of numbers, numbers out of range") {
  for (const CellType& type : cell_registry()) {
    for (const Setting& s : type.settings) {
      const std::string name = type.name + "." + s.name;
      CAPTURE(name);
      const auto error = [&](const std::string& value) {
        Given given{{s.name, value}};
        if (const auto more = read_with.find(name); more != read_with.end())
          given.insert(more->second.begin(), more->second.end());
        return setting_error_of([&] { make(type.name, 3, 8, given); });
      };
      const auto rule = [&](const std::string& rule, const std::vector<std::string>& values) {
        for (const std::string& v : values) CHECK(error(v) == fmt::format("{}: \"{}\" {}", name, v, rule));
      };
      const auto is = [&](const std::string& start, const std::string& value) {
        const std::string text = error(value);
        CAPTURE(text);
        CHECK(text.starts_with(fmt::format("{}: {} in ", name, start)));
        CHECK(text.ends_with(fmt::format(" expected, got {}", value)));
      };
      if (s.kind == Setting::Kind::choice) {
        for (const std::string v : {"", "nothing", "1.5"}) {
          CHECK(error(v).starts_with(fmt::format("{}: \"{}\" is not one of {}", name, v, s.choices.at(0))));
        }
        continue;
      }
      if (!ranges.contains(name) && !needs_row(type, "the table of ranges")) continue;
      REQUIRE(ranges.contains(name));  // a new number has its range in the table
      const bool whole = s.kind == Setting::Kind::integer;
      if (whole) {
        rule("is not an integer", {"", "few", "1.5", "1e3", "8 ", "0x8", "+8", "99999999999999999999"});
      } else {
        rule("is not a number", {"", "few", "1,5", "0.1 ", "1e999"});
        for (const std::string v : {"nan", "inf", "-inf", "1e+301"}) is("a number", v);
      }
      const auto& [below, above] = ranges.at(name);
      for (const std::string& v : {below, above}) {
        if (!v.empty()) is(whole ? "an integer" : "a number", v);
      }
    }
  }
}

TEST_CASE("the activations have names before main()") {
  CHECK(asked_before_main == activation_names());
  CHECK(asked_before_main.size() == 7);
}

TEST_CASE("cells and settings that do not exist") {
  CHECK(setting_error_of([] { cell_type("lstmm"); }).starts_with("cell: there is no cell \"lstmm\"; known are "));
  for (const CellType& type : cell_registry())
    CHECK(setting_error_of([&] {
            make(type.name, 3, 8, {{"colour", "1"}});
          }) == fmt::format("{0}.colour: the cell {0} has no such setting", type.name));
}

TEST_CASE("mistakes of a cell's author name the cell, and the setting or the state") {
  const std::vector<std::string> kinds{"fine",
                                       "setting",
                                       "integer of a real",
                                       "real of a choice",
                                       "on of a real",
                                       "on of a choice",
                                       "none",
                                       "names",
                                       "few",
                                       "shape",
                                       "dtype",
                                       "undefined",
                                       "output",
                                       "output rank",
                                       "output dtype",
                                       "group",
                                       "slash",
                                       "width",
                                       "outputs",
                                       "run",
                                       "run last",
                                       "run hs",
                                       "run dtype",
                                       "penalty shape",
                                       "penalty dtype"};
  register_cell({"mistaken",
                 "",
                 "",
                 "",
                 {{"kind", Setting::Kind::choice, "fine", "the mistake", kinds},
                  {"rate", Setting::Kind::real, "1", "a number", {}}},
                 [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
                   return std::make_unique<Mistaken>(i, n, s, init);
                 }},
                "mine/mistaken.cpp");
  const CellType type = cell_registry().back();
  cell_registry().pop_back();
  for (const bool every_step : {true, false}) {
    const auto said = [&](const std::string& kind) {
      return error_of([&] {
        Init init(1);
        const auto cell = type.make(2, 3, Settings(type.name, type.settings, {{"kind", kind}}), init);
        CellInput in = random({5, 4, 2}, 1, DType::f32);
        in.every_step = every_step;
        scan(*cell, cell->initial(4), in);
      });
    };
    CHECK(said("fine").empty());
    CHECK(said("setting") == "[mistaken] reads the setting \"colour\", which REEL_CELL does not list");
    CHECK(said("none").starts_with("[mistaken] states() is empty. Hint: "));
    CHECK(said("names") == "[mistaken] two states are called \"h\"");
    CHECK(said("few") == "[mistaken] step() gives 1 state, 2 expected");
    CHECK(said("shape") == "[mistaken] step() gives f32 (4, 6) as the state c, f32 (4, 3) expected");
    CHECK(said("dtype") == "[mistaken] step() gives f64 (4, 3) as the state c, f32 (4, 3) expected");
    CHECK(said("undefined") == "[mistaken] step() gives an undefined tensor as the state c, f32 (4, 3) expected");
    CHECK(said("output") == "[mistaken] output() gives f32 (4, 6), [B, outputs()] = (4, 3) expected");
    CHECK(said("output rank") == "[mistaken] output() gives f32 (3,), [B, outputs()] = (4, 3) expected");
    CHECK(said("output dtype") ==
          "[mistaken] output() gives c64 (4, 3), f32 is expected. Hint: concat({real(y), imag(y)}, -1)");
    CHECK(said("group") ==
          "[parameter] \"W\" is in the group \"slow=1,fast\": the name of a group has no = and no comma");
    CHECK(said("slash").starts_with("[mistaken] a state is called \"c/d\": the name of a state is part of a file's"));
    CHECK(said("width") == "[mistaken] the state c has 0 values, 1 or more are needed");
    CHECK(said("outputs") == "[mistaken] outputs() is 0, 1 or more is needed");
    CHECK(said("run").starts_with("[mistaken] run() gives 0 last states, 2 expected"));
    CHECK(said("run last").starts_with("[mistaken] run() gives f32 (4, 6) as the last state c, f32 (4, 3) expected"));
    CHECK(said("run hs").starts_with("[mistaken] run() gives f32 (3,) as hs, [T, B, outputs()] = (5, 4, 3) expected") ==
          every_step);
    CHECK(said("run dtype").starts_with("[mistaken] run() gives c64 (5, 4, 3) as hs, f32 is expected") == every_step);
    // The default of the real setting, 1, is an integer: the kind counts, not the text.
    CHECK(said("integer of a real") ==
          "[mistaken] reads the setting \"rate\" as an integer, and REEL_CELL lists it as a real");
    CHECK(said("real of a choice") ==
          "[mistaken] reads the setting \"kind\" as a real, and REEL_CELL lists it as a choice");
    CHECK(said("on of a real") ==
          "[mistaken] reads the setting \"rate\" as on or off, and REEL_CELL lists it as a real");
    CHECK(said("on of a choice") ==
          "[mistaken] reads the setting \"kind\" as on or off, and REEL_CELL lists it as a choice");
  }
  for (const auto& [kind, got] : {std::pair{"penalty shape", "f32 (3, 2)"}, {"penalty dtype", "f64 ()"}}) {
    Init start(1);
    const auto made = type.make(2, 3, Settings(type.name, type.settings, {{"kind", kind}}), start);
    CHECK(error_of([&] { penalty_of(*made); }) ==
          fmt::format("[mistaken] penalty() gives {}, a scalar of f32 expected. Hint: sum() of it", got));
  }
  Init init(1);
  const auto cell = type.make(2, 3, Settings(type.name, type.settings, {}), init);
  const Tensor x = random({5, 4, 2}, 1, DType::f32), h = Tensor::zeros({4, 3});
  for (const auto& [before, text] : std::vector<std::pair<Tensors, std::string>>{
           {{}, "2 states are needed before the first step, got 0"},
           {{h}, "2 states are needed before the first step, got 1"},
           {{h, Tensor()}, "the state c before the first step is an undefined tensor, f32 (4, 3) is needed"},
           {{Tensor::zeros({3}), h}, "the state h before the first step is f32 (3,), f32 (4, 3) is needed"},
           {{h, Tensor::zeros({4, 3}, DType::f64)},
            "the state c before the first step is f64 (4, 3), f32 (4, 3) is needed"}}) {
    const std::string said = error_of([&, &state = before] { scan(*cell, state, x); });
    CHECK_MESSAGE(said.starts_with("[mistaken] " + text), said);
  }
}
