// Every cell against NumPy and PyTorch: the files of tests/support/golden/cells.tsv, and the parameter counts of the
// papers.
#include "cells/cell.h"
#include "tests/support/cells.h"
#include "tests/support/golden.h"
#include "tests/support/table.h"

using namespace reel;
using namespace reel::test;

namespace {

/// "a=1 b=2" or "-".
std::map<std::string, std::string> settings(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (const std::size_t at = word.find('='); at != std::string::npos) out[word.substr(0, at)] = word.substr(at + 1);
  }
  return out;
}

bool knows(const CellType& type, const std::string& setting) {
  return std::any_of(type.settings.begin(), type.settings.end(), [&](const Setting& s) { return s.name == setting; });
}

/// A cell of a row; its first state is not trained unless the row says so.
std::unique_ptr<Cell> make(const Row& row, std::int64_t input, std::map<std::string, std::string> given) {
  const CellType& type = cell_type(row.at("cell"));
  if (knows(type, "initial") && !given.contains("initial")) given["initial"] = "zero";
  if (knows(type, "normalise") && !given.contains("normalise")) given["normalise"] = "on";
  Init init(1, DType::f64);
  return type.make(input, std::stoll(row.at("hidden")), Settings(type.name, type.settings, given), init);
}

}  // namespace

TEST_CASE("cells agree with NumPy and PyTorch: outputs, last state, gradients, Hessian-vector products") {
  std::set<std::string> seen;
  double worst[3] = {};
  for (const Row& row : table("cells.tsv")) {
    CAPTURE(row.at("file"));
    seen.insert(row.at("cell"));
    Golden g(row.at("file"));
    const auto cell = make(row, std::stoll(row.at("input")), settings(row.at("settings")));
    std::vector<std::string> names;
    Tensors variables;
    for (const Parameter& p : cell->parameters()) {
      CAPTURE(p.name);
      Tensor value = p.value;
      if (!p.trained) {
        if (g.has("fixed." + p.name)) value.assign(cast(g["fixed." + p.name], value.dtype()));
        continue;
      }
      const Tensor given = g[p.name];
      REQUIRE(given.spec() == value.spec());
      value.assign(given);
      names.push_back(p.name);
      variables.push_back(value);
    }
    names.push_back("x");
    variables.push_back(g["x"]);
    Tensors state;
    for (const State& s : cell->states()) {
      names.push_back("state." + s.name);
      variables.push_back(g["state." + s.name]);
      state.push_back(variables.back());
    }

    Tape tape;
    const Sequence out = scan(*cell, state, variables[names.size() - 1 - state.size()]);
    const auto hold = [&](int order, const Tensor& got, const Tensor& expected) {
      const double error = difference(got, expected);
      worst[order] = std::max(worst[order], error);
      CHECK(error < tolerance);
    };
    hold(0, out.hs, g["y"]);
    Tensor loss = inner(g["dy"], out.hs);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const std::string s = cell->states()[i].name;
      hold(0, out.last[i], g["last." + s]);
      loss = loss + inner(g["dlast." + s], out.last[i]);
    }
    const Tensors first = grad({loss}, variables, {.create_graph = true});
    Tensor along = Tensor::zeros({}, DType::f64);
    for (std::size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      hold(1, first[i], g["grad." + names[i]]);
      along = along + inner(g["v." + names[i]], first[i]);
    }
    const Tensors second = grad({along}, variables);
    for (std::size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      hold(2, second[i], g["hvp." + names[i]]);
    }
    for (const std::string& name : g.unseen()) FAIL_CHECK("not looked at: " << name);
  }
  fmt::print("{} kinds of cells: worst error of values {:.1e}, gradients {:.1e}, Hessian-vector products {:.1e}\n",
             seen.size(), worst[0], worst[1], worst[2]);
  // The other names of the registry are the same classes with other settings.
  const std::map<std::string, std::string> same{
      {"irnn", "rnn"}, {"rnn-id", "rnn"}, {"rnn-orth", "rnn"}, {"lt_irnn", "lt_rnn"}};
  for (const CellType& type : cell_registry())
    if (!seen.contains(type.name) && needs_row(type, "golden/cells.tsv"))
      CHECK_MESSAGE(same.contains(type.name), type.name);
}

TEST_CASE("parameter counts are those of the papers") {
  for (const Row& row : table("counts.tsv")) {
    auto given = settings(row.at("settings"));
    std::string text = row.at("cell") + " " + row.at("settings");
    CAPTURE(text);
    std::int64_t layers = 1, input = std::stoll(row.at("input")), count = 0, outputs = 0;
    for (const char* name : {"stack", "levels"}) {
      if (given.contains(name)) layers = std::stoll(given[name]);
      given.erase(name);
    }
    const std::int64_t output = std::stoll(row.at("output")), embedding = std::stoll(row.at("embedding")) * input;
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto cell = make(row, input, given);
      for (const Parameter& p : cell->parameters()) count += p.count();
      input = outputs = cell->outputs();
    }
    CHECK(count + outputs * output + output + embedding + std::stoll(row.at("extra")) == std::stoll(row.at("total")));
  }
}

TEST_CASE("the retraction of full-capacity uRNN is the published update") {
  Golden g("full_urnn_update");
  const CellType& type = cell_type("full_urnn");
  Init init(1, DType::f64);
  const auto cell = type.make(1, g["W"].dim(0), Settings(type.name, type.settings), init);
  const Parameter& p = cell->parameters().front();
  REQUIRE(p.name == "W");
  Tensor W = p.value;
  W.assign(g["W"]);
  p.retract(W, g["G"], g["eta"].item());
  CHECK(difference(W, g["W_next"]) < 1e-13);
}
