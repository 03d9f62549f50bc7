// The passes one at a time: the loop as text before and after, for steps written for one rule, and for whole cells
// (tests/golden/passes). And that a training step is planned once.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cells/cell.h"
#include "engine/scan/plan.h"
#include "tests/support/check.h"
#include "tests/support/golden_order.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t T = 6, B = 4, I = 24, H = 32;

Spec f32(const Shape& shape) { return {DType::f32, shape, &backend()}; }

/// A traced step as a loop, before any pass.
Loop loop_of(const std::vector<Spec>& specs, const Function& step, Signature signature) {
  Traced traced = trace(specs, step);
  traced.consts.clear();  // a loop is about their specs alone
  signature.length = T;
  return Loop::of(std::move(traced), signature);
}

/// The three programs, without costs.
std::string text(const Loop& loop) {
  return "prologue\n" + loop.prologue.program.str() + "body\n" + loop.body.str() + "epilogue\n" +
         loop.epilogue.program.str();
}

/// The loops of a cell's training step after the passes, forwards and of the gradient.
std::string loops_of(const std::string& name, const std::map<std::string, std::string>& given) {
  Init init(3, DType::f32);
  const CellType& type = cell_type(name);
  const auto cell = type.make(I, H, Settings(name, type.settings, given), init);
  Tensors weights;
  for (const Parameter& p : cell->parameters()) {
    if (p.trained) weights.push_back(p.value);
  }
  Tape tape;
  grad({sum(scan(*cell, cell->initial(B), random({T, B, I}, 4, DType::f32)).hs)}, weights, {.create_graph = true});
  std::string loops;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op == &op_of<Scan>()) loops += tape.node(i).attrs.as<Scan>().loop().str() + "\n";
  }
  return loops;
}

}  // namespace

TEST_CASE("the text of a program names all results of an op") {
  const Traced traced = trace({f32({2, 2})}, [](const Tensors& in) -> Tensors {
    const SignAndLog d = slogdet(in[0]);
    return {d.log_abs, exp(d.log_abs)};
  });
  CHECK(traced.program.str() == "inputs %0\n%1 %2 = slogdet(%0) f32 ()\n%3 = exp(%2) f32 ()\noutputs %2 %3\n");
}

TEST_CASE("what descends from a marked value: all results of an op, and what reads one of them") {
  const Program p = trace({f32({3, 3}), f32({3, 3})}, [](const Tensors& in) {
                      return Tensors{tanh(slogdet(in[0]).log_abs), exp(in[1])};
                    }).program;
  std::vector<char> marked(p.values.size(), 0);
  marked[0] = 1;
  mark_descendants(p, marked);
  for (const Program::Node& node : p.nodes) {
    CAPTURE(node.op->traits.name);
    for (int s = node.out; s < node.out + node.num_outputs; ++s) CHECK(marked[s] == (node.in[0] == 1 ? 0 : 1));
  }
  CHECK(std::any_of(p.nodes.begin(), p.nodes.end(), [](const auto& node) { return node.num_outputs == 2; }));
}

TEST_CASE("hoist: a product of x alone is one product before the loop") {
  const Tensor W = Tensor::zeros({I, H}), U = Tensor::zeros({H, H});
  const Loop loop = loop_of({f32({B, H}), f32({B, I})},
                            [&](const Tensors& in) {
                              const Tensor from_h = matmul(in[0], U), from_x = matmul(in[1], W);
                              const Tensor h = tanh(from_x + from_h);
                              return Tensors{h, h};
                            },
                            {.carries = 1});
  CHECK(text(hoist(loop, {})) ==
        "prologue\n"
        "inputs %0..%2\n"
        "%3 = matmul(%0, %2) f32 (6, 4, 32)\n"
        "outputs %0 %3 %1 %2\n"
        "body\n"
        "inputs %0..%2\n"
        "consts %3..%4\n"
        "%5 = matmul(%0, %3) f32 (4, 32)\n"
        "%6 = add(%2, %5) f32 (4, 32)\n"
        "%7 = tanh(%6) f32 (4, 32)\n"
        "outputs %7 %7\n"
        "epilogue\n"
        "inputs %0..%1\n"
        "outputs %0 %1\n");
}

TEST_CASE("delay_gathers: a function of a row is computed on the table") {
  const Tensor table = Tensor::zeros({3, H});
  const Loop loop = loop_of({f32({B, H}), {DType::i32, {B}, &backend()}},
                            [&](const Tensors& in) {
                              const Tensor h = in[0] + tanh(embedding(in[1], table));
                              return Tensors{h};
                            },
                            {.carries = 1});
  CHECK(text(delay_gathers(loop, {})) ==
        "prologue\n"
        "inputs %0..%1\n"
        "%2 = named_rows(%1, %0) f32 (3, 32)\n"
        "%3 = tanh(%2) f32 (3, 32)\n"
        "outputs %0 %1 %1 %3\n"
        "body\n"
        "inputs %0..%1\n"
        "consts %2..%4\n"
        "%5 = index_select(%4, %1) f32 (4, 32)\n"
        "%6 = add(%0, %5) f32 (4, 32)\n"
        "outputs %6\n"
        "epilogue\n"
        "inputs %0\n"
        "outputs %0\n");
}

TEST_CASE("sink_reductions: the gradient of a weight is one product after the loop") {
  const Tensor U = Tensor::zeros({H, H});
  const Loop loop = loop_of({f32({B, H}), f32({I, H}), f32({B, I}), f32({B, H})},
                            [&](const Tensors& in) {
                              const Tensor dz = in[0] * in[3];
                              return Tensors{matmul(dz, U), in[1] + matmul(in[2], dz, {.transpose_a = true})};
                            },
                            {.carries = 2, .accumulators = 1, .gradient = true});
  CHECK(text(sink_reductions(loop, {})) ==
        "prologue\n"
        "inputs %0..%2\n"
        "outputs %0 %1 %2 %0 %1 %2\n"
        "body\n"
        "inputs %0..%2\n"
        "consts %3\n"
        "%4 = mul(%0, %2) f32 (4, 32)\n"
        "%5 = matmul(%4, %3) f32 (4, 32)\n"
        "outputs %5 %4\n"
        "epilogue\n"
        "inputs %0..%4\n"
        "%5 = reshape(%1) f32 (24, 24)\n"
        "%6 = reshape(%4) f32 (24, 32)\n"
        "%7 = matmul(%5, %6) f32 (24, 32)\n"
        "outputs %0 %7\n");
  Loop forward = loop;
  forward.signature.gradient = false;
  CHECK(text(sink_reductions(forward, {})) == text(forward));
}

TEST_CASE("dce: what no result needs is dropped, and a value is returned once") {
  const Tensor W = Tensor::zeros({I, H});
  const Loop loop = loop_of({f32({B, H}), f32({B, I}), f32({B, H})},
                            [&](const Tensors& in) {
                              const Tensor unused = matmul(in[1], W), y = in[0] * in[2];
                              return Tensors{y, y, y};
                            },
                            {.carries = 1});
  CHECK(text(dce(loop, {})) ==
        "prologue\n"
        "inputs %0..%1\n"
        "outputs %1\n"
        "body\n"
        "inputs %0..%1\n"
        "%2 = mul(%0, %1) f32 (4, 32)\n"
        "outputs %2 %2\n"
        "epilogue\n"
        "inputs %0..%1\n"
        "outputs %0 %1 %1\n");
}

TEST_CASE("rematerialize: a product is saved, and what is cheap is computed again") {
  const Tensor U = Tensor::zeros({H, H});
  const Loop loop = loop_of({f32({B, H}), f32({B, H})},
                            [&](const Tensors& in) {
                              const Tensor g = sigmoid(matmul(in[0], U));
                              const Tensor kept = (1.0 - g) * in[0], taken = g * in[1];
                              return Tensors{taken + kept};
                            },
                            {.carries = 1, .save_carries = true});
  CHECK(text(rematerialize(loop, {})) ==
        "prologue\n"
        "inputs %0..%1\n"
        "outputs %0 %1\n"
        "body\n"
        "inputs %0..%1\n"
        "consts %2\n"
        "%3 = matmul(%0, %2) f32 (4, 32)\n"
        "%4 = sigmoid(%3) f32 (4, 32)\n"
        "%5 = affine(%4) f32 (4, 32)\n"
        "%6 = mul(%5, %0) f32 (4, 32)\n"
        "%7 = mul(%4, %1) f32 (4, 32)\n"
        "%8 = add(%7, %6) f32 (4, 32)\n"
        "outputs %8 %4\n"
        "epilogue\n"
        "inputs %0\n"
        "outputs %0\n");
}

TEST_CASE("what the passes make of cells is in tests/golden/passes" * doctest::skip(!order_of_gcc)) {
  const std::string update = std::getenv("REEL_UPDATE_GOLDEN") ? "yes" : "";
  const std::map<std::string, std::map<std::string, std::string>> cells{
      {"lstm", {}}, {"srnn", {}}, {"nru", {{"memory", "16"}}}, {"goru", {}}};
  for (const auto& [name, settings] : cells) {
    const std::string path = std::string(REEL_SOURCE_DIR "/tests/golden/passes/") + name + ".txt";
    const std::string loops = loops_of(name, settings);
    if (!update.empty()) std::ofstream(path) << loops;
    std::ostringstream expected;
    expected << std::ifstream(path).rdbuf();
    CHECK_MESSAGE(loops == expected.str(), name,
                  ": see what changed with REEL_UPDATE_GOLDEN=1 build/bin/pipeline_test; git diff tests/golden/passes");
  }
}

TEST_CASE("every cell: only the first training step plans") {
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    Init init(3, DType::f32);
    const auto cell = type.make(I, H, Settings(type.name, type.settings, {}), init);
    Tensors weights;
    for (const Parameter& p : cell->parameters()) {
      if (p.trained) weights.push_back(p.value);
    }
    const Tensor x = random({T, B, I}, 4, DType::f32);
    const auto step = [&] {
      Tape tape;
      return grad({sum(scan(*cell, cell->initial(B), x).hs)}, weights);
    };
    const Tensors first = step();
    const std::int64_t before = plans_made();
    const Tensors second = step();
    CHECK(plans_made() == before);
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(difference(first[i], second[i]) == 0);
  }
}

TEST_CASE("a gradient's plan is found by what is asked for and what is given") {
  const Tensor W = random({I, H}, 1), U = random({H, H}, 2), x = random({T, B, I}, 3), h0 = random({B, H}, 4);
  const Step step = [&](const Tensors& state, const Tensors& in) -> Next {
    const Tensor h = tanh(matmul(in[0], W) + matmul(state[0], U));
    return {{h}, {square(h)}};
  };
  const auto gradients = [&](bool unrolled, bool last, bool ys, const Tensors& wrt) {
    Tape tape;
    const ScanResult r = unrolled ? unroll(step, {h0}, {x}) : scan(step, {h0}, {x});
    Tensor loss = Tensor::zeros({}, DType::f64);
    if (last) loss = loss + sum(r.last[0]);
    if (ys) loss = loss + sum(r.ys[0] * r.ys[0]);
    return grad({loss}, wrt);
  };
  for (int round = 0; round < 2; ++round) {
    for (const auto& [last, ys] : {std::pair{true, false}, {false, true}, {true, true}}) {
      for (const Tensors& wrt : {Tensors{W}, Tensors{U}, Tensors{W, U}, Tensors{x}, Tensors{h0, x, U}}) {
        CAPTURE(last);
        CAPTURE(ys);
        const std::int64_t before = plans_made();
        const Tensors got = gradients(false, last, ys, wrt), expected = gradients(true, last, ys, wrt);
        if (round == 1) CHECK(plans_made() == before);
        for (std::size_t i = 0; i < wrt.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-12);
      }
    }
  }
}

TEST_CASE("a gradient's plan lasts as long as that of its loop, however many others are made meanwhile") {
  const Tensor x = random({T, B, H}, 1), h0 = random({B, H}, 2);
  const auto loop = [&](double factor) {
    return scan(
        [&](const Tensors& s, const Tensors& in) {
          return Next{{tanh(s[0] * factor + in[0])}, {}};
        },
        {h0}, {x});
  };
  const auto differentiated = [&] {
    Tape tape;
    return grad({sum(loop(0.5).last[0])}, Tensors{x})[0];
  };
  const Tensor first = differentiated();
  for (int i = 0; i < 100; ++i) {  // more than the list of last plans holds
    Tape tape;
    loop(1 + i);
    loop(0.5);
  }
  const std::int64_t before = plans_made();
  CHECK(difference(differentiated(), first) == 0);
  CHECK(plans_made() == before);
}
