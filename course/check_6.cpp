// Checks assignment 6 by what the engine counts, never by a clock.
#include "cells/cell.h"
#include "course/check.h"
#include "engine/scan/scan.h"
#include "ops/ops.h"
#include COURSE_ANSWER

using namespace course;
using namespace reel;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed, DType dtype = DType::f64) {
  return uniform(shape, -1, 1, seed, 0, dtype);
}

struct Mistake {
  double value;
  std::string sentence;
};

/// Why a number is wrong; nothing if it is right.
std::string judge(double expected, double got, const std::vector<Mistake>& mistakes) {
  if (same(expected, got)) return "";
  for (const Mistake& m : mistakes)
    if (same(m.value, got)) return differ(expected, got) + ". " + m.sentence;
  return differ(expected, got);
}

/// What the engine counts for a product of [B, k] by [k, n] in f32.
Program::Cost counted_product(std::int64_t B, std::int64_t k, std::int64_t n) {
  const Tensor a = random({B, k}, 1, DType::f32), b = random({k, n}, 2, DType::f32);
  const Program p =
      trace({a.spec(), b.spec()}, [](const Tensors& in) -> Tensors { return {matmul(in[0], in[1])}; }).program;
  return p.cost(p.nodes[0]);
}

std::string ask_operations() {
  for (const auto& [B, k, n] : {std::tuple{20, 128, 64}, {1, 3, 5}}) {
    const double right = counted_product(B, k, n).flops;
    const std::string why = judge(right, answer::product(B, k, n).flops,
                                  {{right / 2, "A multiplication and an addition for each of the k terms are two"},
                                   {2.0 * B * n, "Each of the B n results is a sum of k terms"},
                                   {right - B * n, "By custom the first addition, to 0, counts as well: 2 B k n"}});
    if (!why.empty()) return "[" + std::to_string(B) + ", k] by [k, n]: " + why;
  }
  return "";
}

std::string ask_bytes() {
  const double B = 20, k = 128, n = 64, right = counted_product(20, 128, 64).bytes;
  return judge(right, answer::product(B, k, n).bytes,
               {{4 * (B * k + k * n), "The result is written, too"},
                {right / 4, "Those are numbers; a number of f32 has 4 bytes"},
                {right * 2, "A number of f32 has 4 bytes, not 8"},
                {4 * 2 * B * k * n, "A number that is used many times is read once: it stays in a cache"}});
}

std::string ask_seconds() {
  const double rate = 1e11, bandwidth = 2e10;
  for (const Program::Cost& c : {Program::Cost{1e9, 1e6}, {1e6, 1e9}}) {
    const double a = c.flops / rate, b = c.bytes / bandwidth;
    const std::string why = judge(std::max(a, b), answer::seconds(c, rate, bandwidth),
                                  {{a + b, "Both go on at the same time, so it is the longer of the two, not the sum"},
                                   {std::min(a, b), "It cannot end before the slower of the two does"},
                                   {c.flops * rate, "Seconds are operations divided by operations a second"}});
    if (!why.empty()) return text(c.flops) + " operations, " + text(c.bytes) + " bytes: " + why;
  }
  return "";
}

std::string ask_chain() {
  // the engine's count of calls that run by themselves
  const Tensor x = random({1000}, 3, DType::f32);
  const Program p = trace({x.spec()}, [](const Tensors& in) -> Tensors { return {tanh(exp(relu(in[0])))}; }).program;
  double alone = 0;
  for (const Program::Node& node : p.nodes) alone += p.cost(node).bytes;
  std::string why = judge(alone, answer::chain_bytes(3, 1000, false),
                          {{alone / 2, "Each call reads its argument and writes its result"},
                           {alone / 4, "Those are numbers; a number of f32 has 4 bytes"}});
  if (!why.empty()) return "three calls by themselves: " + why;
  why = judge(8000, answer::chain_bytes(3, 1000, true),
              {{4000, "The group reads x and writes y"},
               {alone, "Between the calls of a group numbers stay in registers or in the nearest cache"}});
  return why.empty() ? "" : "three calls as one group: " + why;
}

/// Operations in the products of a program.
double products(const Program& p) {
  double sum = 0;
  for (const Program::Node& node : p.nodes)
    if (std::string(node.op->traits.name) == "matmul") sum += p.cost(node).flops;
  return sum;
}

/// What the engine does for a training step of an LSTM, in products.
double counted_lstm(std::int64_t T, std::int64_t B, std::int64_t i, std::int64_t n) {
  Init init(1);
  const auto lstm = cell_type("lstm").make(i, n, Settings("lstm", cell_type("lstm").settings), init);
  Tensors weights;
  for (const Parameter& p : lstm->parameters()) weights.push_back(p.value);
  Tape tape;
  const Tensor xs = random({T, B, i}, 4, DType::f32);
  grad({sum(scan(*lstm, lstm->initial(B), xs).hs)}, weights, {.create_graph = true});
  double sum = 0;
  const Op& matmul_op =
      *trace({random({2, 2}, 1).spec()}, [](const Tensors& in) -> Tensors { return {matmul(in[0], in[0])}; })
           .program.nodes[0]
           .op;
  for (std::size_t k = 0; k < tape.size(); ++k) {
    const Tape::Node& node = tape.node(k);
    if (node.op == &op_of<Scan>()) {
      const Loop& loop = node.attrs.as<Scan>().loop();
      sum += static_cast<double>(loop.signature.length) * products(loop.body);
    } else if (node.op == &matmul_op) {
      std::vector<const Tensor*> in;
      const auto of = tape.inputs(node);
      for (const Tensor& t : of) in.push_back(&t);
      sum += node.op->loop.flops(node.attrs, in);
    }
  }
  return sum;
}

std::string ask_lstm() {
  const double T = 10, B = 4, i = 20, n = 32, right = counted_lstm(10, 4, 20, 32);
  const double x = 2 * B * i * n, h = 2 * B * n * n;
  return judge(right, answer::lstm_operations(T, B, i, n),
               {{T * 4 * (x + h), "That is the forward step alone; the gradient has products, too"},
                {T * 4 * 3 * (x + h), "The gradient of x is not wanted, so W x has two products, not three"},
                {T * 4 * 2 * (x + h), "R h has three products: forward, the gradient of R, and that of h"},
                {right / 4, "There are four gates"},
                {right / 2, "A multiplication and an addition are two operations"},
                {right / T, "That is one time step; the training step has T of them"}});
}

std::string ask_gpu() {
  const double T = 1000, calls = 5, launch = 4e-6, barriers = 3, barrier = 2e-6, apart = T * calls * launch;
  return judge(
      apart / (launch + T * barriers * barrier), answer::one_kernel_gain(T, calls, launch, barriers, barrier),
      {{apart / (T * (launch + barriers * barrier)), "The one kernel is launched once, not at each step"},
       {apart / (launch + barriers * barrier), "Each of the T steps has its barriers"},
       {apart / (launch + T * barrier), "A step has several barriers"},
       {apart / (T * barriers * barrier), "The one kernel is launched, too, once"},
       {calls * launch / (launch + T * barriers * barrier), "Each of the T steps has its launches"},
       {(launch + T * barriers * barrier) / apart, "That is upside down: the longer time by the shorter one"}});
}

// ---- the step

constexpr std::int64_t batch = 20, n = 64, i = 32, r = 8, T = 50;

Weights weights() {
  return {random({n, n + i}, 11), random({n}, 12), random({n, r}, 13), random({r, n}, 14),
          0.2 * random({2 * n, n}, 15)};
}

using StepOf = Tensor (*)(const Tensor& h, const Tensor& x, const Weights& w);

/// The loop of a step as it runs, after all passes.
Loop loop_of(StepOf step) {
  const Weights w = weights();
  Tape tape;
  const Step next = [&](const Tensors& h, const Tensors& x) -> Next { return {{step(h[0], x[0], w)}, {}}; };
  scan(next, {random({batch, n}, 16)}, {random({T, batch, i}, 17)});
  for (std::size_t k = 0; k < tape.size(); ++k)
    if (tape.node(k).op == &op_of<Scan>()) return tape.node(k).attrs.as<Scan>().loop();
  return {};
}

std::string ask_function() {
  const Tensor h = random({batch, n}, 16), x = random({batch, i}, 17);
  const Tensor right = slow_step(h, x, weights()), got = answer::fast_step(h, x, weights());
  if (!(got.shape() == right.shape()))
    return "expected the shape " + right.shape().str() + ", got " + got.shape().str();
  const double most = max(abs(reshape(got - right, {-1}))).item();
  if (most < 1e-9) return "";
  return "it computes something else than slow_step; the largest difference is " + text(most);
}

std::string ask_cost() {
  if (const std::string why = ask_function(); !why.empty()) return "first it must be the same function";
  const Loop loop = loop_of(answer::fast_step);
  const auto flops = [](double rows, double columns) { return 2.0 * batch * rows * columns; };
  struct Cause {
    double extra;
    std::string sentence;
  };
  const std::vector<Cause> causes{
      {flops(i, n), "the gate multiplies [h, x] as one, so its product with x waits for h: split G"},
      {flops(n, n) - 2 * flops(n, r), "h (A B) is a product with n columns; (h A) B goes through r of them"},
      {flops(n, n), "R has 2 n rows, and half of the product is thrown away: slice the weight, not the result"}};
  const double least = 2 * flops(n, n) + 2 * flops(n, r), now = products(loop.body);
  if (now < least * 1.001) {
    for (const Program::Node& node : loop.body.nodes)
      if (std::string(node.op->traits.name) == "concat")
        return "the products are right; concat still copies the state at each step";
    return "";
  }
  std::string why = text(now) + " operations in products at each step; " + text(least) + " are enough. ";
  for (unsigned some = 1; some < 8; ++some) {
    double extra = 0;
    std::string all;
    for (unsigned c = 0; c < 3; ++c) {
      if (!(some >> c & 1)) continue;
      extra += causes[c].extra;
      all += (all.empty() ? "" : "; ") + causes[c].sentence;
    }
    if (same(least + extra, now)) return why + "Still there: " + all;
  }
  return why + "The body:\n" + loop.body.str(Program::Text::costs);
}

}  // namespace

int main() {
  Check check;
  check.ask("a product: operations", ask_operations);
  check.ask("a product: bytes", ask_bytes);
  check.ask("the roofline", ask_seconds);
  check.ask("a chain of elementwise calls", ask_chain);
  check.ask("an LSTM's training step", ask_lstm);
  check.ask("a loop on a GPU, as a model", ask_gpu);
  check.ask("the step: the same function", ask_function);
  check.ask("the step: its operations", ask_cost);
  return check.done();
}
