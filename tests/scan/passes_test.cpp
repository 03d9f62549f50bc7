// What the passes delay_gathers and rematerialize choose; that they change no result is in scan_test.
#include "cells/cell.h"
#include "engine/scan/passes/min_cut.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t T = 5, B = 4, I = 3, H = 32, symbols = 4;  // as many symbols as rows of the batch

Tensor some_symbols(std::int64_t steps = T) {
  return cast(floor(uniform({steps, B}, 0, static_cast<double>(symbols), 1, 4)), DType::i32);
}

std::unique_ptr<Cell> make(const std::string& name, const std::map<std::string, std::string>& given = {}) {
  Init init(3, DType::f64);
  const CellType& type = cell_type(name);
  return type.make(I, H, Settings(name, type.settings, given), init);
}

Tensors trained(const Cell& cell) {
  Tensors out;
  for (const Parameter& p : cell.parameters()) {
    if (p.trained) out.push_back(p.value);
  }
  return out;
}

/// The names of the ops in the bodies of a run and of its gradient.
std::vector<std::string> ops_in_loops(const Cell& cell, const CellInput& in, const Tensors& wrt, ScanPasses passes) {
  Tape tape;
  grad({sum(scan(cell, cell.initial(B), in, {.passes = passes}).hs)}, wrt, {.create_graph = true});
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op != &op_of<Scan>()) continue;
    bodies.emplace_back();
    for (const Program::Node& n : tape.node(i).attrs.as<Scan>().loop().body.nodes)
      bodies.back() += std::string(bodies.back().empty() ? "" : " ") + n.op->traits.name;
  }
  return bodies;
}

/// The bodies of a loop, h' = tanh(w h + U x), and of its gradient by U, with n units, k inputs and this batch.
std::vector<Program> input_product(std::int64_t batch, std::int64_t k, std::int64_t n) {
  const Tensor h0 = random({batch, n}, 1, DType::f32), xs = random({T, batch, k}, 2, DType::f32),
               U = random({n, k}, 3, DType::f32), w = random({n}, 4, DType::f32);
  const Step step = [&](const Tensors& s, const Tensors& x) -> Next {
    const Tensor h = tanh(w * s[0] + linear(x[0], U));
    return {{h}, {h}};
  };
  Tape tape;
  grad({sum(scan(step, {h0}, {xs}).ys[0])}, {U}, {.create_graph = true});
  std::vector<Program> found;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op == &op_of<Scan>()) found.push_back(tape.node(i).attrs.as<Scan>().loop().body);
  }
  return found;
}

}  // namespace

TEST_CASE("every cell: symbols are rows of a table, whether it is worked on or they are") {
  const Tensor table = random({symbols, I}, 5, DType::f64, -0.5, 0.5), x = some_symbols();
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    const auto cell = make(type.name);
    Tensors wrt = trained(*cell);
    wrt.push_back(table);
    const auto run = [&](bool looked_up, ScanPasses passes) {
      Tape tape;
      const CellInput in = looked_up ? CellInput(x, table) : CellInput(embedding(x, table));
      const Tensor hs = scan(*cell, cell->initial(B), in, {.passes = passes}).hs;
      const Tensors first = grad({sum(square(hs))}, wrt, {.create_graph = true});
      Tensor next = Tensor::zeros({}, DType::f64);
      for (const Tensor& g : first) next = next + sum(real(g * conj(g)));
      Tensors out = grad({next}, wrt);
      out.insert(out.end(), first.begin(), first.end());
      out.push_back(hs);
      return out;
    };
    const Tensors expected = run(false, ScanPasses::none());
    for (bool delayed : {false, true}) {
      CAPTURE(delayed);
      const Tensors got = run(true, {.delay_gathers = delayed});
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-10);
    }
  }
}

TEST_CASE("of a network that sees the symbol alone a lookup is left") {
  const auto srnn = make("srnn");
  const Tensor table = random({symbols, I}, 5);
  Tensors wrt = trained(*srnn);
  wrt.push_back(table);
  const auto bodies = ops_in_loops(*srnn, {some_symbols(), table}, wrt, {});
  REQUIRE(bodies.size() == 2);
  CHECK(bodies[0] == "roll index_select add relu");
  CHECK(bodies[1] == "add relu_backward index_add roll add");
  // A table with more than half as many rows as there are places is left alone.
  CHECK(contains(ops_in_loops(*srnn, {some_symbols(1), table}, wrt, {})[0], "sigmoid"));
}

TEST_CASE("what is no function of a row by itself is not done to the table") {
  const Tensor table = random({symbols, H}, 5), h = random({B, H}, 6), x = some_symbols(), W = random({B, H}, 7);
  const Step mixes = [&](const Tensors& s, const Tensors& in) {
    const Tensor e = tanh(embedding(in[0], table));                           // by row
    const Tensor shifted = e - mean(e, {0});                                  // over the batch
    const Tensor places = reshape(e, {B, 2, H / 2});                          // the batch is named, and is as long
    const Tensor other = embedding(maximum(in[0] - 1.0, 0.0), table);         // by another symbol
    return Next{{tanh(s[0] + shifted * W + other * e)}, {sum(places, {1})}};  // W has rows of its own
  };
  const auto run = [&](bool unrolled) {
    Tape tape;
    const ScanResult r = unrolled ? unroll(mixes, {h}, {x}) : scan(mixes, {h}, {x});
    Tensors out = grad({sum(square(r.last[0])) + sum(square(r.ys[0]))}, Tensors{table, h, W});
    out.push_back(r.ys[0]);
    return out;
  };
  const Tensors expected = run(true), got = run(false);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-12);
}

TEST_CASE("a symbol that is not in the table is an error") {
  const auto rnn = make("rnn");
  const Tensor table = random({2, I}, 5);  // the symbols go up to 3
  const std::string error = error_of([&] { scan(*rnn, rnn->initial(B), CellInput(some_symbols(), table)); });
  CHECK(contains(error, "is not in 0..1"));
}

TEST_CASE("no product is made again for the gradient, and what it does not read is not kept") {
  const Tensor x = random({T, B, I}, 8);
  for (const char* name : {"rnn", "gru", "lstm", "janet", "nru", "goru", "urnn"}) {
    CAPTURE(name);
    const auto cell = make(name, std::string(name) == "nru" ? std::map<std::string, std::string>{{"memory", "16"}}
                                                            : std::map<std::string, std::string>{});
    Tape tape;
    scan(*cell, cell->initial(B), x);
    const Program* body = nullptr;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (tape.node(i).op == &op_of<Scan>()) body = &tape.node(i).attrs.as<Scan>().loop().body;
    }
    REQUIRE(body);
    // The forward loop puts out what is to be kept; asked again, the pass wants nothing more.
    CHECK(choose_residuals(*body).empty());
    std::vector<int> outputs(body->outputs);
    std::sort(outputs.begin(), outputs.end());
    for (int s : outputs) CHECK(is_differentiable(body->values[s].dtype));
  }
  const auto kept = [&](const char* name, std::size_t states) {
    const auto cell = make(name);
    Tape tape;
    scan(*cell, cell->initial(B), x);
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (tape.node(i).op == &op_of<Scan>())
        return tape.node(i).attrs.as<Scan>().loop().body.outputs.size() - states - 1;
    }
    return std::size_t{99};
  };
  CHECK(kept("rnn", 1) == 0);   // tanh reads its result, which is the state
  CHECK(kept("lstm", 2) == 4);  // four gates; the cell's tanh is made again
  CHECK(kept("gru", 1) == 3);
}

TEST_CASE("an input product stays in the loop if it is narrow, its result is wide, and a shard has rows enough") {
  struct Case {
    std::int64_t batch, k, n;
    bool inside;  // in the loop: U x, and in the gradient's the product for U
  };
  for (const Case& c : {Case{20, 1, 128, true},
                        {20, 8, 128, true},
                        {20, 20, 128, true},
                        {20, 21, 128, false},
                        {100, 36, 128, true},
                        {100, 37, 128, false},
                        {100, 48, 512, true},
                        {100, 49, 512, false},
                        {1, 2, 128, true},
                        {1, 3, 128, false},
                        {20, 16, 16, false},
                        {20, 2, 1, true}}) {
    CAPTURE(c.batch);
    CAPTURE(c.k);
    CAPTURE(c.n);
    const std::vector<Program> loops = input_product(c.batch, c.k, c.n);
    REQUIRE(loops.size() == 2);
    const auto products = [](const Program& body) {
      return std::count_if(body.nodes.begin(), body.nodes.end(),
                           [](const Program::Node& node) { return std::string(node.op->traits.name) == "matmul"; });
    };
    CHECK(products(loops[0]) == (c.inside ? 1 : 0));
    CHECK(products(loops[1]) == (c.inside ? 1 : 0));
  }
}

TEST_CASE("the gradient of a layer with few outputs leaves the loop, unless these fit in a vector") {
  const auto products = [](std::int64_t k) {  // in the gradient's loop of h' = tanh(h + (V h) w), with V [k, 256]
    const Tensor h0 = random({100, 256}, 1, DType::f32), V = random({k, 256}, 2, DType::f32, -0.1, 0.1),
                 w = random({k, 256}, 3, DType::f32, -0.1, 0.1);
    const Step step = [&](const Tensors& s, const Tensors&) -> Next {
      return {{tanh(s[0] + matmul(linear(s[0], V), w))}, {}};
    };
    Tape tape;
    grad({sum(scan(step, {h0}, {}, {.length = T}).last[0])}, {V}, {.create_graph = true});
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (tape.node(i).op != &op_of<Scan>()) continue;
      const Loop& loop = tape.node(i).attrs.as<Scan>().loop();
      for (const Program::Node& node : loop.body.nodes)
        count += loop.signature.gradient && std::string(node.op->traits.name) == "matmul";
    }
    return count;
  };
  CHECK(products(16) == 3);  // by w', by V, and the gradient of V
  CHECK(products(17) == 2);
}

TEST_CASE("a narrow product is made again for the gradient, a wider one is kept") {
  const auto kept = [](std::int64_t k) {
    const std::int64_t batch = 100, n = 256;
    const Tensor h0 = random({batch, n}, 1, DType::f32), xs = random({T, batch, k}, 2, DType::f32),
                 U = random({n, k}, 3, DType::f32);
    const Step step = [&](const Tensors& s, const Tensors& x) -> Next { return {{s[0] * linear(x[0], U)}, {}}; };
    Tape tape;
    scan(step, {h0}, {xs});
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (tape.node(i).op == &op_of<Scan>()) return std::ssize(tape.node(i).attrs.as<Scan>().loop().body.outputs) - 1;
    }
    return std::ptrdiff_t{99};
  };
  CHECK(kept(8) == 0);
  CHECK(kept(32) == 0);
  CHECK(kept(48) == 1);
}

TEST_CASE("the gradient of a weight is one product for all times, also where no state has a part in it") {
  const auto sru =
      make("sru", {{"p", "6"}});  // W_o [H, 5 p] sees the states of all times, which are inputs of the gradient
  const Tensor x = random({T, B, I}, 5);
  Tape tape;
  grad({sum(square(scan(*sru, sru->initial(B), {x}, {}).hs))}, trained(*sru), {.create_graph = true});
  int gradients = 0;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op != &op_of<Scan>()) continue;
    const Loop& loop = tape.node(i).attrs.as<Scan>().loop();
    if (!loop.signature.gradient) continue;
    ++gradients;
    for (const Spec& value : loop.prologue.program.values) CHECK(value.shape != Shape{T, H, 30});
    const auto is_whole = [](const Spec& value) { return value.shape == Shape{H, 30}; };
    CHECK(std::any_of(loop.epilogue.program.values.begin(), loop.epilogue.program.values.end(), is_whole));
  }
  CHECK(gradients == 1);
}

TEST_CASE("what mixes the rows of a batch is done to the rows, not to their table") {
  const Tensor table = random({symbols, I}, 5), x = some_symbols(), h0 = random({B, I}, 6);  // as many symbols as rows
  const Step step = [&](const Tensors& state, const Tensors& in) -> Next {
    const Tensor h = tanh(state[0] + cumsum(embedding(in[0], table), 0));
    return {{h}, {h}};
  };
  const Tensor expected = unroll(step, {h0}, {x}).ys[0];
  for (const bool delayed : {false, true})
    CHECK(difference(scan(step, {h0}, {x}, {.passes = {.delay_gathers = delayed}}).ys[0], expected) < 1e-14);
}

TEST_CASE("a block of a fusion group is not written while its value is read") {
  const Tensor h0 = random({B, H}, 7), w = random({H}, 8);
  const Step step = [&](const Tensors& state, const Tensors&) -> Next {
    const Tensor a = state[0] * w;
    const Tensor t = tanh(a), rolled = roll(a, 1);  // in this order; roll cannot be done in place
    return {{t + rolled}, {}};
  };
  CHECK(difference(scan(step, {h0}, {}, {.length = T}).last[0], unroll(step, {h0}, {}, {.length = T}).last[0]) < 1e-14);
}

TEST_CASE("the cheapest cut of a graph") {
  MinCut graph(6);  // the example of Cormen, Leiserson, Rivest and Stein, 26.1: a flow of 23
  graph.edge(0, 1, 16);
  graph.edge(0, 2, 13);
  graph.edge(1, 3, 12);
  graph.edge(2, 1, 4);
  graph.edge(2, 4, 14);
  graph.edge(3, 2, 9);
  graph.edge(3, 5, 20);
  graph.edge(4, 3, 7);
  graph.edge(4, 5, 4);
  CHECK(graph.source_side(0, 5) == std::vector<char>{1, 1, 1, 0, 1, 0});  // cuts 1-3, 4-3 and 4-5: 12 + 7 + 4
  MinCut detour(7);  // the shortest path, 0-1-2-6, has to give 1-2 back: from 0 to 6 go two paths, by 3-2 and by 1-4-5
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 6}, {0, 3}, {3, 2}, {1, 4}, {4, 5}, {5, 6}})
    detour.edge(static_cast<std::size_t>(from), static_cast<std::size_t>(to), 1);
  CHECK(detour.source_side(0, 6) == std::vector<char>{1, 0, 0, 0, 0, 0, 0});  // both edges of 0 are full
  MinCut apart(3);
  apart.edge(0, 1, 5);
  CHECK(apart.source_side(0, 2) == std::vector<char>{1, 1, 0});
}
