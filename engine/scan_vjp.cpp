// The gradient of a scan is a scan in the other direction. Its carries are the gradients of the states; its body is the
// derivative of the forward body, taken by the ordinary tape on shapes. Values that the forward loop put out (states,
// products) come in ready; the others the body computes again, which for elementwise ops costs less than fetching them.
#include <map>

#include "engine/primitives.h"
#include "engine/scan.h"

namespace reel {

namespace {

/// The inputs of the backward body besides its carries, each one step of a slab.
struct Slabs {
  Tensors slabs;
  int add(const Tensor& slab) {
    slabs.push_back(slab);
    return static_cast<int>(slabs.size()) - 1;
  }
};

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return primitive::add(a, b);
}

}  // namespace

void Scan::vjp(Vjp& v) const {
  REEL_ASSERT(keep);
  const Program& p = *body;
  const int n = carries, first_capture = p.inputs;
  const auto slice = [&](const Tensor& all, bool before) {  // of [T + 1, ...]: the values before or after each step
    const std::int64_t first = before == reverse ? 1 : 0;
    return primitive::slice_leading(all, first, first + length);
  };
  const std::int64_t end = reverse ? 0 : length;  // where in a carry's values the last one lies

  // What comes in: states before each step, inputs, values put out by the forward loop, gradients of all that.
  Slabs in;
  std::vector<int> state_in(ix(n)), x_in, dstate_in(ix(n), -1), dy_in(ix(ys()), -1);
  std::map<int, int> ready;  // forward slot -> slab
  std::vector<int> carried;  // the states that have gradients
  for (int i = 0; i < n; ++i) {
    const Tensor& all = v.out(ix(n + ys() + i));
    state_in[ix(i)] = in.add(slice(all, true));
    if (p.maker(p.outputs[ix(i)]) >= 0) ready.emplace(p.outputs[ix(i)], in.add(slice(all, false)));
    if (!is_differentiable(all.dtype())) continue;
    carried.push_back(i);
    if (const Tensor& d = v.dy(ix(n + ys() + i)); d.defined()) dstate_in[ix(i)] = in.add(slice(d, true));
  }
  for (int j = 0; j < xs(); ++j) x_in.push_back(in.add(v.in(ix(n + j))));
  for (int j = 0; j < ys(); ++j) {
    const int slot = p.outputs[ix(n + j)];
    if (p.maker(slot) >= 0 && !ready.contains(slot)) ready.emplace(slot, in.add(v.out(ix(n + j))));
    if (const Tensor& d = v.dy(ix(n + j)); d.defined()) dy_in[ix(j)] = in.add(d);
  }

  // What is wanted besides the states' gradients.
  std::vector<int> wanted_xs, wanted_captures;
  for (int j = 0; j < xs(); ++j) {
    if (v.needs(ix(n + j))) wanted_xs.push_back(j);
  }
  for (int k = 0; k < p.captures; ++k) {
    if (v.needs(ix(first_capture + k))) wanted_captures.push_back(k);
  }

  ScanCall call;
  call.length = length;
  call.reverse = !reverse;
  call.passes = passes;
  std::vector<Spec> specs;
  for (int i : carried) {
    Tensor d = v.dy(ix(i));
    if (const Tensor& all = v.dy(ix(n + ys() + i)); all.defined()) d = sum_of(d, primitive::at(all, end));
    if (!d.defined()) d = Tensor::zeros(v.spec(ix(i)).shape, v.spec(ix(i)).dtype, *v.spec(ix(i)).backend);
    specs.push_back(d.spec());
    call.carry.push_back(d);
  }
  for (const Tensor& s : in.slabs) specs.push_back({s.dtype(), s.shape().erase(0), &s.backend()});

  Traced traced = trace(specs, [&](const Tensors& all) {
    const auto slab = [&](int i) -> const Tensor& { return all[carried.size() + ix(i)]; };
    Tensors value(p.slots.size());
    for (int i = 0; i < n; ++i) value[ix(i)] = slab(state_in[ix(i)]);
    for (int j = 0; j < xs(); ++j) value[ix(n + j)] = slab(x_in[ix(j)]);
    for (int k = 0; k < p.captures; ++k) value[ix(first_capture + k)] = v.in(ix(first_capture + k));
    for (const Program::Node& node : p.nodes) {
      bool known = true;
      for (int s = node.out; s < node.out + node.outs; ++s) known = known && ready.contains(s);
      if (!known) {
        apply_node(node, value);
        continue;
      }
      std::vector<const Tensor*> arguments;
      for (int s : node.in) arguments.push_back(&value[ix(s)]);
      for (int s = node.out; s < node.out + node.outs; ++s) value[ix(s)] = slab(ready.at(s));
      Tape::current()->record(*node.op, node.attrs, arguments, {&value[ix(node.out)], ix(node.outs)}, node.where, true);
    }

    Tensors outputs, wrt;
    GradOptions options;
    for (std::size_t k = 0; k < carried.size(); ++k) {
      outputs.push_back(value[ix(p.outputs[ix(carried[k])])]);
      options.cotangents.push_back(all[k]);
      wrt.push_back(value[ix(carried[k])]);
    }
    for (int j = 0; j < ys(); ++j) {
      if (dy_in[ix(j)] < 0) continue;
      outputs.push_back(value[ix(p.outputs[ix(n + j)])]);
      options.cotangents.push_back(slab(dy_in[ix(j)]));
    }
    for (int j : wanted_xs) wrt.push_back(value[ix(n + j)]);
    for (int k : wanted_captures) wrt.push_back(value[ix(first_capture + k)]);
    Tensors gradients = grad(outputs, wrt, options);
    for (std::size_t k = 0; k < carried.size(); ++k) {
      const int d = dstate_in[ix(carried[k])];
      if (d >= 0) gradients[k] = primitive::add(gradients[k], slab(d));
    }
    return gradients;
  });

  call.body = std::move(traced.program);
  call.captures = std::move(traced.captures);
  call.xs = std::move(in.slabs);
  const ScanResult result = run_with_sums(std::move(call), static_cast<int>(wanted_captures.size()), Where::current());

  for (std::size_t k = 0; k < carried.size(); ++k) v.set(ix(carried[k]), result.last[k]);
  auto y = result.ys.begin();
  for (int j : wanted_xs) v.set(ix(n + j), *y++);
  for (int k : wanted_captures) v.set(ix(first_capture + k), *y++);
}

}  // namespace reel
