// What a training step has to do at least, counted from the traced program of a model's forward pass: of the cell as it
// is written, not of the best way to write it.
//
// Operations. Matrix products alone: one forward, and one more for the gradient of each of its sides that a trained
// parameter reaches (three in all for W h; two for W x when x is data). Those that wait for the state - forward and the
// gradient with respect to the state - are apart from those that can be done for all times at once: input projections,
// the head, gradients of weights. Fourier transforms, plane rotations, solvers, reductions and elementwise functions
// are not counted, so the bound of a cell that consists of these is far below what any program reaches.
//
// Bytes. Each carried state [T, B, n] is written once forward and read once backward, data are read in both directions,
// and a parameter moves seven times (read forward and backward; gradient written and read; RMSProp's mean read and
// written; its new value). All other stacked values could stay in a cache in chunks, so they are not counted.
#pragma once
#include <algorithm>
#include <cstring>
#include <set>

#include "engine/scan/scan.h"
#include "tasks/training/model.h"

namespace reel::bench {

struct Work {
  double serial_flops = 0;    // of products that wait for the state
  double parallel_flops = 0;  // of those that could be one product for all times
  double bytes = 0;           // to and from memory
  double saved_bytes = 0;     // that the engine now keeps for the gradient: what its loops put out
  double values_bytes = 0;    // of everything that the forward pass makes
};

inline double bytes_of(const Spec& s) {
  return static_cast<double>(s.shape.numel()) * static_cast<double>(size_of(s.dtype));
}

class Counter {
 public:
  /// Adds the work of a program that is run `times` times; marks say which values a parameter reaches and, inside a
  /// loop, which differ from step to step. Marks of inputs and consts are the caller's.
  void count(const Program& p, double times, std::vector<char>& reached, std::vector<char>& varying, bool in_loop) {
    for (const Program::Node& node : p.nodes) {
      if (node.op == &op_of<Scan>()) {
        loop(p, node, times, reached);
      } else {
        mark(node, reached);
        if (!std::strcmp(node.op->traits.name, "matmul")) product(p, node, times, reached, varying, in_loop);
      }
      mark(node, varying);
    }
  }
  Work work;

 private:
  static void mark(const Program::Node& node, std::vector<char>& marks) {
    bool any = false;
    for (int s : node.in) any = any || marks[s];
    for (int s = node.out; s < node.out + node.num_outputs; ++s) marks[s] = marks[s] || any;
  }

  void product(const Program& p, const Program::Node& node, double times, const std::vector<char>& reached,
               const std::vector<char>& varying, bool in_loop) {
    const Spec &a = p.values[node.in[0]], &c = p.values[node.out];
    const int rank = a.shape.rank();
    const std::int64_t rows = c.shape[c.shape.rank() - 2], last = a.shape[rank - 1], before = a.shape[rank - 2];
    const std::int64_t inner = last == rows ? before : last;  // a is [rows, inner] or its transpose
    const double flops = times * 2 * static_cast<double>(c.shape.numel() * inner) * (is_complex(c.dtype) ? 4 : 1);
    const auto add = [&](bool waits) { (waits ? work.serial_flops : work.parallel_flops) += flops; };
    add(in_loop);
    for (int s : node.in) {
      if (reached[s]) add(in_loop && varying[s]);  // the gradient of a weight can wait until after the loop
    }
  }

  void loop(const Program& p, const Program::Node& node, double times, std::vector<char>& reached) {
    const Loop& loop = node.attrs.as<Scan>().loop();
    const Program& body = loop.body;
    const int carries = loop.signature.carries;
    const double steps = static_cast<double>(loop.signature.length) * times;
    std::vector<char> inside(body.values.size(), 0), varying(body.values.size(), 0);
    for (std::size_t i = 0; i < node.in.size(); ++i) inside[i] = reached[node.in[i]];
    std::fill(varying.begin(), varying.begin() + body.inputs, 1);
    Counter unused;  // what a parameter reaches in one step it reaches from there in the next
    for (int round = 0; round < carries; ++round) {
      unused.count(body, 1, inside, varying, true);
      for (int i = 0; i < carries; ++i) inside[i] = inside[i] || inside[body.outputs[i]];
    }
    count(body, steps, inside, varying, true);
    for (int i = 0; i < carries; ++i) work.bytes += 2 * steps * bytes_of(body.values[i]);
    for (int s = node.out; s < node.out + node.num_outputs; ++s) {
      const int k = s - node.out,
                made = static_cast<int>(body.outputs.size());  // behind these: the carries at all times
      const auto next = body.outputs.begin(), end = next + carries;
      const bool view = k >= carries && k < made && std::find(next, end, body.outputs[k]) != end;
      if (!view) work.saved_bytes += times * bytes_of(p.values[s]);
      reached[s] = inside[body.outputs[k < made ? k : k - made]];
    }
  }
};

inline Work work_of(const Model& model, const Tensor& x) {
  const Traced traced = trace({x.spec()}, [&](const Tensors& in) { return Tensors{model(in[0])}; });
  const Program& p = traced.program;
  std::set<std::uint64_t> parameters;
  Counter counter;
  for (const Parameter& parameter : model.trained()) {
    parameters.insert(parameter.value.id());
    counter.work.bytes += 7 * bytes_of(parameter.value.spec());
  }
  std::vector<char> reached(p.values.size(), 0), varying(p.values.size(), 0);
  for (std::size_t k = 0; k < traced.consts.size(); ++k)
    reached[p.inputs + k] = parameters.contains(traced.consts[k].id());
  counter.count(p, 1, reached, varying, false);
  counter.work.bytes += 2 * bytes_of(x.spec());
  for (const Spec& s : p.values) counter.work.values_bytes += bytes_of(s);
  return counter.work;
}

}  // namespace reel::bench
