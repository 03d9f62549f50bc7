// Checks assignment 5: LEM against plain numbers and differences, passes against programs before and after.
#include <map>

#include "cells/cell.h"
#include "course/check.h"
#include "engine/scan/scan.h"
#include "ops/linalg.h"
#include "ops/ops.h"
#include COURSE_ANSWER

using namespace course;
using namespace reel;

namespace {

using Node = Program::Node;
using std::to_string;

Tensor random(const Shape& shape, std::uint64_t seed) { return uniform(shape, -1, 1, seed, 0, DType::f64); }

Layer layer(std::uint64_t seed, double scale = 1) {
  return {scale * random({3, 3}, seed), scale * random({3, 2}, seed + 1), scale * random({3}, seed + 2)};
}

Lem parameters(double scale = 1) { return {layer(10, scale), layer(20, scale), layer(30, scale), layer(40, scale)}; }

/// A way to write LEM's step: the right one, or one that is often written.
struct Variant {
  const char* sentence;
  bool old_z = false, swapped = false, turned = false, no_tanh = false, no_sigmoid = false, z_by_z = false;
};

/// {y', z'} by plain numbers.
std::vector<std::vector<double>> plain_lem(const Tensors& state, const Tensor& x, const Lem& p, const Variant& v) {
  const auto ys = state[0].values<double>(), zs = state[1].values<double>(), xs = x.values<double>();
  const auto at = [&](const Layer& l, const std::vector<double>& h, std::size_t row, std::size_t j) {
    double sum = l.b.values<double>()[j];
    for (std::size_t k = 0; k < 3; ++k) sum += l.W.values<double>()[j * 3 + k] * h[row * 3 + k];
    for (std::size_t k = 0; k < 2; ++k) sum += l.V.values<double>()[j * 2 + k] * xs[row * 2 + k];
    return sum;
  };
  const auto gate = [&](double a) { return v.no_sigmoid ? a : 1 / (1 + std::exp(-a)); };
  const auto value = [&](double a) { return v.no_tanh ? a : std::tanh(a); };
  const auto mix = [&](double d, double before, double next) {
    return v.turned ? d * before + (1 - d) * next : (1 - d) * before + d * next;
  };
  const std::vector<double> y(ys.begin(), ys.end()), z(zs.begin(), zs.end());
  std::vector<double> y_next(6), z_next(6);
  for (std::size_t i = 0; i < 6; ++i)
    z_next[i] =
        mix(gate(at(v.swapped ? p.two : p.one, y, i / 3, i % 3)), z[i], value(at(p.z, v.z_by_z ? z : y, i / 3, i % 3)));
  for (std::size_t i = 0; i < 6; ++i)
    y_next[i] = mix(gate(at(v.swapped ? p.one : p.two, y, i / 3, i % 3)), y[i],
                    value(at(p.y, v.old_z ? z : z_next, i / 3, i % 3)));
  return {y_next, z_next};
}

bool equal(const std::vector<std::vector<double>>& right, const Tensors& got) {
  for (std::size_t s = 0; s < 2; ++s) {
    const auto is = got[s].values<double>();
    for (std::size_t i = 0; i < 6; ++i)
      if (!same(right[s][i], is[i])) return false;
  }
  return true;
}

std::string ask_lem() {
  const Tensors state{random({2, 3}, 1), random({2, 3}, 2)};
  const Tensor x = random({2, 2}, 3);
  const Lem p = parameters();
  const Tensors got = answer::lem(state, x, p);
  if (got.size() != 2) return "two tensors are expected, the next y and the next z";
  for (const Tensor& t : got)
    if (!(t.defined() && t.shape() == state[0].shape())) return "each state keeps its shape, (2, 3)";
  const auto right = plain_lem(state, x, p, {""});
  if (equal(right, got)) return "";
  if (equal(right, {got[1], got[0]})) return "the states are returned in the wrong order: y comes first";
  for (const Variant& v :
       {Variant{.sentence = "y' reads the new z', not the old z: compute z' first", .old_z = true},
        Variant{.sentence = "the layers one and two are exchanged: one is for z, two for y", .swapped = true},
        Variant{.sentence = "a gate is the wrong way round: d writes, 1 - d keeps", .turned = true},
        Variant{.sentence = "what is written needs its tanh", .no_tanh = true},
        Variant{.sentence = "d needs its sigmoid, which keeps it between 0 and 1", .no_sigmoid = true},
        Variant{.sentence = "z' is made of Wz y, not of Wz z: both gates and z' read y", .z_by_z = true}})
    if (equal(plain_lem(state, x, p, v), got)) return v.sentence;
  // a case for pencil and paper
  const Lem zero = parameters(0);
  const Tensor one = Tensor::full({2, 3}, 1, DType::f64);
  const Tensors half = answer::lem({one, -one}, x, zero);
  return "if all parameters are 0, d1 = d2 = 1/2; y = 1 and z = -1 become y' = 0.5 and z' = -0.5; got " +
         text(half[0].values<double>()[0]) + " and " + text(half[1].values<double>()[0]);
}

/// The loss of five steps by scan, which traces the step, as a function of W_z.
Tensor loss_of(const Tensor& W_z) {
  Lem p = parameters();
  p.z.W = W_z;
  const auto step = [&](const Tensors& state, const Tensors& x) -> Next { return {answer::lem(state, x[0], p), {}}; };
  const ScanResult r = scan(step, {random({2, 3}, 1), random({2, 3}, 2)}, {random({5, 2, 2}, 3)});
  return sum(square(r.last[0])) + sum(r.last[1]);
}

std::string ask_derivative() {
  const Tensor W = parameters().z.W, way = random({3, 3}, 50);
  const double e = 1e-5, right = (loss_of(W + e * way).item() - loss_of(W - e * way).item()) / (2 * e);
  double got = 0;
  try {
    const Tape tape;
    got = sum(grad(loss_of(W), {W})[0] * way).item();
  } catch (const Error& e) {
    return std::string(e.what()) + ". The step is traced: it sees shapes and never numbers, so write it in operations";
  }
  if (same(right, got, 1e-7)) return "";
  return "the slope along a direction: " + differ(right, got) + ". Write the step in operations on tensors alone";
}

// ---- programs

/// What is wrong with how a program is put together; nothing if it can be run.
std::string malformed(const Program& before, const Program& p) {
  if (p.inputs != before.inputs || p.consts != before.consts)
    return "the program had " + to_string(before.inputs) + " inputs and " + to_string(before.consts) +
           " consts and now has " + to_string(p.inputs) + " and " + to_string(p.consts) +
           ": mark them all, callers pass them by position";
  if (p.outputs.size() != before.outputs.size())
    return "the program had " + to_string(before.outputs.size()) + " outputs and now has " +
           to_string(p.outputs.size()) + ": equal outputs stay two outputs, with one id";
  int next = p.inputs + p.consts;
  for (const Node& node : p.nodes) {
    for (const int id : node.in)
      if (id < 0 || id >= next)
        return "%" + to_string(node.out) + " = " + node.op->traits.name +
               " reads a value that was dropped or comes later";
    if (node.out != next) return "the ids of results have gaps: let subset() number them";
    next += node.num_outputs;
  }
  if (p.values.size() != static_cast<std::size_t>(next))
    return "the program lists " + to_string(p.values.size()) + " values and has " + to_string(next) +
           ": let subset() number them";
  for (const int id : p.outputs)
    if (id < 0 || id >= next)
      return "an output is a value that was dropped: rename the outputs, and mark them as needed";
  return "";
}

Tensors arguments(const Program& p, int first, int count, std::uint64_t seed) {
  Tensors all;
  for (int s = first; s < first + count; ++s)
    all.push_back(random(p.values[s].shape, seed + static_cast<std::uint64_t>(s)));
  return all;
}

/// The program on lines of its own.
std::string lines(const Program& p) {
  std::string all = "\n" + p.str();
  all.pop_back();  // the last newline
  return all;
}

/// A call that computes the same as an earlier one, or that no output needs; nothing if there is none.
std::string superfluous(const Program& p, const std::string& twice) {
  std::vector<char> read(p.values.size(), 0);
  for (const int id : p.outputs) read[id] = 1;
  mark_ancestors(p, read);
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    const Node& node = p.nodes[i];
    const std::string call = fmt::format("%{} = {}", node.out, node.op->traits.name);
    if (std::count(read.begin() + node.out, read.begin() + node.out + node.num_outputs, 1) == 0)
      return call + " is still there, and nothing reads it: leave it out by subset()";
    for (std::size_t j = 0; j < i; ++j) {
      const Node& other = p.nodes[j];
      if (other.op == node.op && other.in == node.in && node.op->same(node.attrs, other.attrs))
        return call + " computes the same as %" + to_string(other.out) + (twice.empty() ? "" : ". " + twice) +
               ". What you return:" + lines(p);
    }
  }
  return "";
}

/// What `common` makes of a program. `changed` is said if it computes something else, `twice` if a call is left twice.
std::string judge(const Program& before, const std::string& changed, const std::string& twice) {
  const Program after = answer::common(before);
  if (const std::string why = malformed(before, after); !why.empty()) return why + ". The program:" + lines(before);
  const Tensors in = arguments(before, 0, before.inputs, 60),
                consts = arguments(before, before.inputs, before.consts, 60);
  const Tensors right = eval(before, in, consts), got = eval(after, in, consts);
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!(got[i].shape() == right[i].shape()) || max(abs(reshape(got[i] - right[i], {-1}))).item() > 1e-9)
      return "output " + to_string(i) + " has another value than before" + (changed.empty() ? "" : ". " + changed) +
             ". The program:" + lines(before);
  return superfluous(after, twice);
}

Program traced(int inputs, const Function& f) {
  return trace(std::vector<Spec>(static_cast<std::size_t>(inputs), random({3, 3}, 1).spec()), f).program;
}

std::string ask_needed() {
  // %0 and %1 come in; %2 feeds the output by %3; %4 and %5 feed nothing
  Program p = traced(2, [](const Tensors& in) -> Tensors {
    const Tensor sum = in[0] + in[0], good = tanh(sum), dead = exp(in[1]);
    return {good, square(dead)};
  });
  p.outputs.pop_back();
  const std::vector<char> right{1, 0, 1, 1, 0, 0}, got = answer::needed(p);
  if (got.size() != right.size())
    return "one mark for each value is expected, " + to_string(right.size()) + ", got " + to_string(got.size());
  std::string why;
  for (std::size_t s = 0; s < right.size() && why.empty(); ++s) {
    if ((right[s] != 0) == (got[s] != 0)) continue;  // any mark that is not 0 is one
    why = "%" + to_string(s) + (right[s] ? " is needed, and not marked. " : " is marked, and no output needs it. ");
    if (static_cast<int>(s) == p.outputs[0])
      why += "An output is needed itself";
    else if (right[s])
      why += "Go backwards: whether a call is needed is known only after its readers";
    else
      why += "Mark what a call reads only if a result of the call is marked";
  }
  return why.empty() ? "" : why + lines(p);
}

/// A hundred programs of twelve calls, many of which are there twice.
std::string ask_random_programs() {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto pick = integers({36}, 0, 1 << 20, seed, 7).values<std::int32_t>();
    const Program p = traced(2, [&](const Tensors& in) -> Tensors {
      Tensors values = in;
      for (std::size_t k = 0; k < 36; k += 3) {
        const auto at = [&](std::size_t i) { return values[static_cast<std::size_t>(pick[i]) % values.size()]; };
        const int op = pick[k + 2] % 4;
        values.push_back(op == 0 ? at(k) - at(k + 1) : op == 1 ? tanh(at(k)) : roll(at(k), op));
      }
      return {values.end() - 4, values.end()};
    });
    if (const std::string why = judge(p, "", ""); !why.empty()) return "program " + to_string(seed) + ": " + why;
  }
  return "";
}

/// The gradient of an LSTM ends with the sums for its biases, two a gate, as in PyTorch: they are equal.
std::string ask_lstm() {
  Init init(1, DType::f64);
  const auto lstm = cell_type("lstm").make(20, 32, Settings("lstm", cell_type("lstm").settings), init);
  Tensors weights;
  for (const Parameter& p : lstm->parameters()) weights.push_back(p.value);
  Tape tape;
  grad({sum(scan(*lstm, lstm->initial(4), random({5, 4, 20}, 1)).hs)}, weights, {.create_graph = true});
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op != &op_of<Scan>()) continue;
    const Loop& loop = tape.node(i).attrs.as<Scan>().loop();
    for (const Program* p : {&loop.body, &loop.epilogue.program})
      if (const std::string why = judge(*p, "", ""); !why.empty()) return why;
    if (!loop.signature.gradient) continue;
    std::printf("       an LSTM's gradient: %zu calls after the loop, %zu with your pass\n",
                loop.epilogue.program.nodes.size(), answer::common(loop.epilogue.program).nodes.size());
  }
  return "";
}

}  // namespace

int main() {
  Check check;
  check.ask("LEM's step", ask_lem);
  check.ask("LEM's derivative, through scan", ask_derivative);
  check.ask("needed values", ask_needed);
  check.ask("common: a call that is there twice", [] {
    return judge(traced(2, [](const Tensors& in) -> Tensors { return {exp(in[0] + in[1]) - tanh(in[0] + in[1])}; }),
                 "Readers of the second call must read the first", "Let all that reads the second read the first");
  });
  check.ask("common: what follows from it", [] {
    return judge(traced(2, [](const Tensors& in) -> Tensors { return {tanh(in[0] + in[1]) - tanh(in[0] + in[1])}; }),
                 "Readers of the second call must read the first",
                 "It shows only when its inputs are renamed: rename the inputs of a call before you compare it");
  });
  check.ask("common: other attributes", [] {
    return judge(traced(1, [](const Tensors& in) -> Tensors { return {sum(in[0], {0}) - sum(in[0], {1})}; }),
                 "These are sums along different axes: compare the attributes, too", "");
  });
  check.ask("common: another order", [] {
    return judge(traced(2, [](const Tensors& in) -> Tensors { return {(in[0] - in[1]) * tanh(in[1] - in[0])}; }),
                 "a - b is not b - a: the order of the inputs counts", "");
  });
  check.ask("common: outputs", [] {
    return judge(traced(1,
                        [](const Tensors& in) -> Tensors {
                          return {tanh(in[0]), tanh(in[0])};
                        }),
                 "An output must be the first of equal calls",
                 "An output still is the second: rename the outputs, too");
  });
  check.ask("common: inputs that nothing reads", [] {
    return judge(traced(3, [](const Tensors& in) -> Tensors { return {exp(in[2])}; }), "Each input stays at its place",
                 "");
  });
  check.ask("common: calls with two results", [] {
    return judge(traced(1,
                        [](const Tensors& in) -> Tensors {
                          return {slogdet(in[0]).sign, slogdet(in[0]).log_abs};
                        }),
                 "The second result is another value than the first",
                 "Rename all its results, from node.out to node.out + node.num_outputs - 1");
  });
  check.ask("common: a hundred programs at random", ask_random_programs);
  check.ask("common: the loops of an LSTM", ask_lstm);
  return check.done();
}
