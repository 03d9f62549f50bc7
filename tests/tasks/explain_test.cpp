// explain: its numbers are the engine's and those that one counts by hand; its names mean one value each; its texts are
// those of tests/golden/explain.
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "engine/scan/scan.h"
#include "tasks/explain/cell.h"
#include "tasks/explain/render.h"
#include "tests/support/check.h"
#include "tests/support/golden_order.h"

using namespace reel;
using namespace reel::test;
using namespace reel::explain;

namespace {

constexpr std::int64_t T = 50, B = 20, I = 20, N = 32;

std::unique_ptr<Cell> cell_on(Backend& device, const std::string& name, std::int64_t inputs, std::int64_t hidden,
                              const std::map<std::string, std::string>& given = {}) {
  Init init(1, DType::f32, device);
  const CellType& type = cell_type(name);
  return type.make(inputs, hidden, Settings(name, type.settings, given), init);
}

Explanation explained(const std::string& name, const std::map<std::string, std::string>& given = {},
                      StepOptions options = {.batch = B, .length = T, .backward = true}) {
  LoopDevice& device = watched(backend());
  const auto cell = cell_on(device, name, I, N, given);
  return explain_cell(device, name, *cell, options);
}

std::vector<std::string> ops_of(const ProgramRows& p, Mark mark) {
  std::vector<std::string> out;
  for (const OpRow& row : p.rows) {
    if (row.mark == mark) out.emplace_back(row.op);
  }
  return out;
}

const StageRows& stage_of(const LoopReport& loop, const std::string& pass) {
  return *std::find_if(loop.stages.begin(), loop.stages.end(), [&](const StageRows& s) { return s.pass == pass; });
}

/// The forward loop of the same cell as the engine plans it on its own device.
PlanPtr planned(const std::string& name, const std::map<std::string, std::string>& given) {
  const auto cell = cell_on(backend(), name, I, N, given);
  const Tape tape;
  scan(*cell, cell->initial(B), random({T, B, I}, 1, DType::f32));
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op == &op_of<Scan>()) return tape.node(i).attrs.as<Scan>().plan;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("LSTM, counted by hand") {
  const Explanation e = explained("lstm");
  REQUIRE(e.loops.size() == 2);
  const LoopReport &forward = e.loops[0], &gradient = e.loops[1];
  constexpr double values = B * N;
  // As traced: 4 products with x and 4 with h; 17 additions and multiplications, 5 functions of 4 additions each.
  Program::Cost traced;
  for (const OpRow& row : forward.stages[0].body.rows) traced.flops += row.cost.flops;
  CHECK(traced.flops == 4 * 2 * B * N * (I + N) + 16 * values + 5 * 4 * values);
  // Hoist takes the products with x out of the loop.
  CHECK(ops_of(stage_of(forward, "hoist").prologue, Mark::moved) == std::vector<std::string>(4, "matmul"));
  CHECK(forward.prologue.flops == 4.0 * T * 2 * B * I * N);
  CHECK(forward.step_products == 4.0 * 2 * B * N * N);
  CHECK(forward.step.flops == 4.0 * 2 * B * N * N + 16 * values + 5 * 4 * values);
  CHECK(forward.whole().flops == T * forward.step.flops + forward.prologue.flops);
  // 13 additions of three arguments' worth of memory, 8 of them with a bias; 3 multiplications; 5 functions; products.
  const double bytes =
      4 * (8 * (2 * values + N) + (13 - 8 + 3) * 3 * values + 5 * 2 * values + 4 * (2 * values + N * N));
  CHECK(forward.step.bytes == bytes);
  // Kept: h and c, and the four gates.
  CHECK(forward.states_bytes == 2 * values * 4);
  REQUIRE(forward.kept.size() == 4);
  std::vector<std::string> kept;
  for (const KeptRow& k : forward.kept) {
    kept.push_back(k.op);
    CHECK(k.bytes == values * 4);
    CHECK(k.save_price == 16 * values);
    CHECK(k.again_flops == 2 * B * N * N + 3 * values + 4 * values);  // W h, three additions, the function
    CHECK(k.again_ops == 5);
  }
  CHECK(kept == std::vector<std::string>{"sigmoid", "sigmoid", "tanh", "sigmoid"});
  // The gradient computes the tanh of the cell's state again, and nothing else.
  CHECK(gradient.again_ops == 1);
  CHECK(gradient.again_flops == 4 * values);
  // Four products alone, then everything else at once: it reads 4 products with x, 4 with h, c, 8 biases, and writes
  // h, c and the kept values.
  REQUIRE(forward.groups.size() == 5);
  for (std::size_t g = 0; g < 4; ++g) {
    CHECK(!forward.groups[g].fused);
    CHECK(forward.groups[g].flops == 2.0 * B * N * N);
    CHECK(forward.groups[g].bytes == 4 * (2 * values + N * N));
  }
  CHECK(forward.groups[4].fused);
  CHECK(forward.groups[4].nodes.size() == 21);
  CHECK(forward.groups[4].bytes == 4 * ((4 + 4 + 1 + 2 + 4) * values + 8 * N));
  CHECK(forward.calls.size() == 5);
  CHECK(forward.calls[0].sizes == "f32 10x32 32x32");  // of a shard
  // After the gradient's loop: a product for each of the matrices R, and two sums for each gate.
  const std::vector<std::string> moved = ops_of(stage_of(gradient, "sink_reductions").epilogue, Mark::moved);
  CHECK(std::count(moved.begin(), moved.end(), "matmul") == 4);
  CHECK(std::count(moved.begin(), moved.end(), "sum") == 8);
  CHECK(gradient.epilogue_products == 4.0 * T * 2 * B * N * N);
}

TEST_CASE("SRNN, counted by hand") {
  const Explanation e = explained("srnn", {{"width", "32"}});
  REQUIRE(e.loops.size() == 2);
  const LoopReport& forward = e.loops[0];
  constexpr double values = B * N;
  CHECK(forward.step_products == 0);
  CHECK(forward.prologue_products == T * 2.0 * B * (I * 32 + 32 * N + I * N));
  // What is left: the additions of two biases and of the input, the sigmoid, its product, relu; the shift is free.
  CHECK(forward.step.flops == (3 + 1 + 1 + 4) * values);
  REQUIRE(forward.groups.size() == 1);
  CHECK(forward.groups[0].nodes.size() == 7);
  CHECK(forward.groups[0].bytes == 4 * (4 * values + 2 * N));  // two inputs, h, h'; two biases
  CHECK(forward.kept.empty());
  CHECK(forward.states_bytes == 4 * values);
  CHECK(forward.shards == std::vector<std::int64_t>{B / 2, B / 2});
  REQUIRE(e.loops[1].groups.size() == 3);  // and the sums of rows for the biases
  CHECK(e.loops[1].groups[0].fused);
  CHECK(e.loops[1].groups[1].ops == std::vector<std::string>{"sum_rows"});
}

TEST_CASE("every cell: the engine's loop, groups, calls and residuals; names mean one value each") {
  const std::map<std::string, std::map<std::string, std::string>> all{
      {"lstm", {}}, {"srnn", {}},   {"goru", {}},     {"enrnn", {{"short", "12"}}},
      {"gru", {}},  {"exprnn", {}}, {"own_leaky", {}}};
  for (const auto& [name, given] : all) {
    CAPTURE(name);
    const Explanation e = explained(name, given);
    REQUIRE(!e.loops.empty());
    const LoopReport& forward = e.loops[0];
    const PlanPtr plan = planned(name, given);
    REQUIRE(plan);
    const Loop& loop = plan->loop;
    Program::Cost step;
    for (const Program::Node& node : loop.body.nodes) {
      step.flops += loop.body.cost(node).flops;
      step.bytes += loop.body.cost(node).bytes;
    }
    CHECK(forward.step.flops == step.flops);
    CHECK(forward.step.bytes == step.bytes);
    Program unsaved = loop.body;  // before rematerialize
    unsaved.outputs.resize(static_cast<std::size_t>(loop.epilogue.program.inputs - loop.passed()));
    CHECK(forward.kept.size() == choose_residuals(unsaved).size());
    const auto lowering = plan->lowering();
    REQUIRE(forward.groups.size() == lowering->groups.size());
    for (std::size_t g = 0; g < lowering->groups.size(); ++g) {
      CHECK(forward.groups[g].nodes == lowering->groups[g].nodes);
      CHECK(forward.groups[g].fused == lowering->groups[g].fused);
    }
    CHECK(forward.batch == lowering->rows.rows);
    for (const LoopReport& report : e.loops) {
      std::int64_t rows = 0;
      for (const std::int64_t n : report.shards) rows += n;
      CHECK(rows == report.batch);
      double flops = 0;
      std::size_t call = 0;
      for (const GroupRow& group : report.groups) {
        flops += group.flops;
        CHECK(group.first_call == call);
        call = group.end_call;
      }
      CHECK(flops == doctest::Approx(report.step.flops));
      CHECK(call <= report.calls.size());
      for (const StageRows& stage : report.stages) {
        for (const ProgramRows* p : {&stage.prologue, &stage.body, &stage.epilogue}) {
          std::set<std::string> known(p->inputs.begin(), p->inputs.end());
          known.insert(p->consts.begin(), p->consts.end());
          if (p == &stage.body && &stage == &report.stages.front())
            CHECK(known.size() == p->inputs.size() + p->consts.size());
          for (const OpRow& row : p->rows) {
            if (row.mark == Mark::dropped) continue;
            for (const std::string& arg : row.args) CHECK_MESSAGE(known.contains(arg), arg);
            CHECK_MESSAGE(!known.contains(row.name), row.name);
            for (const std::string& value : p->values) {
              if (value == row.name || value.starts_with(row.name + ".")) known.insert(value);
            }
          }
          for (const std::string& out : p->outputs) CHECK_MESSAGE(known.contains(out), out);
        }
      }
    }
  }
}

TEST_CASE("shards follow from the batch, whatever the number of threads; a step that mixes rows has none") {
  backend().set_threads(3);
  const Explanation e = explained("lstm");
  backend().set_threads(1);
  CHECK(e.loops[0].shards == std::vector<std::int64_t>{B / 2, B / 2});
  const Step mixing = [](const Tensors& s, const Tensors& x) -> Next {
    const Tensor h = tanh(s[0] - mean(s[0], {0}, true) + x[0]);
    return {{h}, {h}};
  };
  const Tensor h = random({B, N}, 1, DType::f32), xs = random({T, B, N}, 2, DType::f32);
  const Explanation mixed = explain_step("mixing", mixing, {h}, {xs}, {}, {.length = T});
  CHECK(mixed.loops[0].batch == 0);
  CHECK(contains(text(mixed), "rows of the batch are not independent"));
  CHECK(shards_text(explained("lstm", {}, {.batch = 1, .length = T}).loops[0]) == "the batch is one row");
}

TEST_CASE("a step of one's own: its tensors have names, and constants that it makes are there") {
  const Tensor W = random({N, N}, 1, DType::f32), h = random({B, N}, 2, DType::f32),
               xs = random({T, B, N}, 3, DType::f32);
  const Step step = [&](const Tensors& s, const Tensors& x) -> Next {
    const Tensor next = tanh(linear(s[0], W) + x[0] * arange(N, DType::f32));
    return {{next}, {}};
  };
  const ArgumentNames names{.carries = {"state"}, .xs = {"u"}, .consts = {{W.id(), "W"}}};
  const Explanation e = explain_step("own", step, {h}, {xs}, names, {.length = T, .backward = true});
  REQUIRE(e.loops.size() == 2);
  const ProgramRows& body = e.loops[0].stages[0].body;
  CHECK(body.inputs == std::vector<std::string>{"state", "u"});
  CHECK(std::count(body.consts.begin(), body.consts.end(), "W") == 1);
  CHECK(e.loops[1].stages[0].body.inputs[0] == "dstate");
  CHECK(contains(body.rows[0].where, "explain_test.cpp:"));
}

TEST_CASE("names that a step's tensors share are told apart") {
  const Tensor y = random({N, N}, 1, DType::f32), h = random({B, N}, 2, DType::f32),
               xs = random({T, B, N}, 3, DType::f32);
  const Step step = [&](const Tensors& s, const Tensors& x) -> Next { return {{linear(s[0], y) * x[0]}, {s[0]}}; };
  const ArgumentNames names{.carries = {"y"}, .xs = {"y"}, .consts = {{y.id(), "y"}}};
  const Explanation e = explain_step("own", step, {h}, {xs}, names, {.length = T, .backward = true});
  const ProgramRows& body = e.loops[0].stages[0].body;
  CHECK(body.inputs == std::vector<std::string>{"y", "y_2"});
  CHECK(body.consts == std::vector<std::string>{"y_3"});
  CHECK(e.loops[1].stages[0].body.inputs[0] == "dy");
}

TEST_CASE("what is left out stays in the loop") {
  StepOptions options{.batch = B, .length = T};
  options.passes.hoist = options.passes.fuse = false;
  const LoopReport forward = explained("lstm", {}, options).loops[0];
  CHECK(forward.prologue.flops == 0);
  CHECK(forward.step_products == 4.0 * 2 * B * N * (I + N));
  CHECK(std::none_of(forward.groups.begin(), forward.groups.end(), [](const GroupRow& g) { return g.fused; }));
}

TEST_CASE("measured: each group has a time, and what runs is still the same loop") {
  const Explanation e = explained("lstm", {}, {.batch = B, .length = T, .backward = true, .measured = 2});
  for (const LoopReport& loop : e.loops) {
    for (const GroupRow& group : loop.groups) CHECK(group.seconds > 0);
    CHECK(loop.seconds() > loop.body_seconds());
    CHECK(loop.seconds() < 10);
  }
  CHECK(e.rates.products > 1e8);
  CHECK(e.rates.cache > e.rates.memory / 4);
  CHECK(bound_seconds(e.loops[0], e.rates) > 0);
  CHECK(contains(text(e), "of what was measured"));
  CHECK(contains(roofline(e), "<circle class=\"gradient\""));
  CHECK(roofline(explained("lstm")).empty());
}

TEST_CASE("the texts of tests/golden/explain" * doctest::skip(!order_of_gcc)) {
  const bool update = std::getenv("REEL_UPDATE_GOLDEN") != nullptr;
  for (const std::string name : {"lstm", "srnn", "goru", "enrnn"}) {
    const Explanation e = explained(name, {}, {.batch = 4, .length = 6, .backward = true});
    // Lines of source move with every edit of the files: here it matters that there are some.
    const std::string whole = text(e);
    const std::string now = std::regex_replace(whole, std::regex(R"( +[a-z]+/[a-z_/]+\.(cpp|h):\d+)"), "");
    CHECK(contains(whole, "cells/" + name + ".cpp:"));
    const std::string path = std::string(REEL_SOURCE_DIR "/tests/golden/explain/") + name + ".txt";
    if (update) std::ofstream(path) << now;
    std::ostringstream expected;
    expected << std::ifstream(path).rdbuf();
    CHECK_MESSAGE(now == expected.str(), name,
                  ": see what changed with REEL_UPDATE_GOLDEN=1 build/bin/explain_test; git diff tests/golden/explain");
  }
}
