#include "tasks/explain/cell.h"

#include <algorithm>
#include <mutex>

namespace reel::explain {

namespace {

/// Adds what a user should know about the numbers, and the rates.
void add_facts(Explanation& e, LoopDevice& device, const StepOptions& options, const Spec& state) {
  if (options.measured > 0)
    e.rates =
        measure_rates(device.real(), std::max<std::int64_t>(1, state.shape[0]), state.shape[state.shape.rank() - 1]);
  if (options.product_rate > 0) e.rates.products = options.product_rate;
  if (options.measured == 0) return;
  e.facts.push_back(fmt::format("times: medians of {} runs on {}, {} thread{}; those of shards are added up",
                                options.measured, device.name(), device.threads(), device.threads() == 1 ? "" : "s"));
  e.facts.push_back(fmt::format("rates of a thread: products {} x {} {}/s, {}/s from a cache, {}/s from memory",
                                Shape{e.rates.rows, e.rates.size}.str(), Shape{e.rates.size, e.rates.size}.str(),
                                flops_text(e.rates.products), bytes_text(e.rates.cache), bytes_text(e.rates.memory)));
}

Explanation run(LoopDevice& device, const std::string& title, const ArgumentNames& names, const StepOptions& options,
                const std::function<void()>& step) {
  static std::mutex one_at_a_time;  // the device remembers runs
  const std::lock_guard lock(one_at_a_time);
  device.runs.clear();
  const std::vector<WatchedLoop> loops = watch_loops(device, options.measured, step);
  if (loops.empty()) throw Error("explain", "there is no loop over time, so there is nothing to show: " + title);
  Explanation e = explain_loops(title, loops, names);
  Spec state{DType::f32, {1, 1}, &device};
  for (const WatchedLoop& loop : loops) {
    if (!loop.carries.empty() && loop.carries[0].spec.shape.rank() == 2) state = loop.carries[0].spec;
  }
  add_facts(e, device, options, state);
  return e;
}

Tensor moved(const Tensor& t, Backend& device) {
  Tensor out = Tensor::empty({t.dtype(), t.shape(), &device});
  std::vector<std::byte> bytes(t.bytes());
  t.backend().read(bytes.data(), t.data(), t.bytes());
  device.write(out.data(), bytes.data(), bytes.size());
  return out;
}

Tensors moved(const Tensors& all, Backend& device) {
  Tensors out;
  for (const Tensor& t : all) out.push_back(moved(t, device));
  return out;
}

/// Cotangents for those of the results that have gradients.
void differentiate(const Tensors& results, const Tensors& wrt) {
  Tensors of;
  GradOptions options;
  for (const Tensor& y : results) {
    if (!is_differentiable(y.dtype())) continue;
    of.push_back(y);
    options.cotangents.push_back(Tensor::full(y.shape(), 1, y.dtype(), y.backend()));
  }
  if (!of.empty() && !wrt.empty()) grad(of, wrt, options);
}

}  // namespace

LoopDevice& watched(Backend& device) {
  static std::mutex mutex;
  static auto& devices = *new std::map<Backend*, std::unique_ptr<LoopDevice>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<LoopDevice>& one = devices[&device];
  if (!one) one = std::make_unique<LoopDevice>(device);
  return *one;
}

Explanation explain_cell(LoopDevice& device, const std::string& name, const Cell& cell, const StepOptions& o) {
  ArgumentNames names{.carries = {}, .xs = {"x"}, .consts = {}};
  Tensors trained;
  std::int64_t count = 0;
  for (const State& s : cell.states()) names.carries.push_back(s.name);
  for (const Parameter& p : cell.parameters()) {
    names.consts[p.value.id()] = p.name;
    count += p.count();
    if (p.trained && &p.value.backend() == &device) trained.push_back(p.value);
  }
  const auto& parameters = cell.parameters();
  const DType dtype = parameters.empty() ? DType::f32 : real_of(parameters[0].value.dtype());
  const Tensor x = uniform({o.length, o.batch, cell.input}, -1, 1, 1, 0, dtype, device);
  const std::string title =
      fmt::format("{}: {} units, {} inputs, {} trainable parameters; {} steps of a batch of {}, {}", name, cell.hidden,
                  cell.input, count, o.length, o.batch, name_of(dtype));
  return run(device, title, names, o, [&] {
    Tape tape;
    const Sequence all = scan(cell, cell.initial(o.batch), x, {.passes = o.passes});
    if (o.backward) differentiate({all.hs}, trained);
  });
}

Explanation explain_step(const std::string& title, const Step& step, const Tensors& state, const Tensors& xs,
                         const ArgumentNames& given, const StepOptions& o) {
  std::vector<Spec> specs;
  for (const Tensor& s : state) specs.push_back(s.spec());
  for (const Tensor& x : xs) {
    if (x.rank() == 0) throw Error("explain", "every x needs a leading axis of time, got " + x.spec().str());
    specs.push_back({x.dtype(), x.shape().erase(0), &x.backend()});
  }
  if (specs.empty()) throw Error("explain", "the step takes neither a state nor an input");
  std::size_t states = 0;
  const Traced traced = trace(specs, [&](const Tensors& in) {
    const auto split = in.begin() + std::ssize(state);
    Next next = step(Tensors(in.begin(), split), Tensors(split, in.end()));
    states = next.state.size();
    next.state.insert(next.state.end(), next.y.begin(), next.y.end());
    return next.state;
  });
  // The same program on the watched device, on copies of the tensors that the step uses.
  LoopDevice& device = watched(*specs[0].backend);
  const Tensors first = moved(state, device), inputs = moved(xs, device), consts = moved(traced.consts, device);
  ArgumentNames names{.carries = given.carries, .xs = given.xs, .consts = {}};
  Tensors wrt;
  for (std::size_t k = 0; k < consts.size(); ++k) {
    const auto name = given.consts.find(traced.consts[k].id());
    if (name != given.consts.end()) names.consts[consts[k].id()] = name->second;
    if (is_differentiable(consts[k].dtype())) wrt.push_back(consts[k]);
  }
  const Program& p = traced.program;
  Tensors constants(p.values.size());  // by id: the results of ops without arguments, which are made on a device
  for (const Program::Node& node : p.nodes) {
    if (!node.in.empty()) continue;
    apply_node(node, constants);
    for (int s = node.out; s < node.out + node.num_outputs; ++s)
      constants[static_cast<std::size_t>(s)] = moved(constants[static_cast<std::size_t>(s)], device);
  }
  const Step again = [&](const Tensors& s, const Tensors& x) -> Next {
    Tensors values = constants;
    auto next = std::copy(s.begin(), s.end(), values.begin());
    next = std::copy(x.begin(), x.end(), next);
    std::copy(consts.begin(), consts.end(), next);
    for (const Program::Node& node : p.nodes) {
      if (!node.in.empty()) apply_node(node, values);
    }
    Next out;
    for (std::size_t i = 0; i < p.outputs.size(); ++i)
      (i < states ? out.state : out.y).push_back(values[static_cast<std::size_t>(p.outputs[i])]);
    return out;
  };
  return run(device, title, names, o, [&] {
    Tape tape;
    ScanResult all = scan(again, first, inputs, {.length = o.length, .passes = o.passes});
    if (!o.backward) return;
    all.ys.insert(all.ys.end(), all.last.begin(), all.last.end());
    differentiate(all.ys, wrt);
  });
}

Explanation explain_training(LoopDevice& device, const std::string& title, const std::vector<Parameter>& parameters,
                             const StepOptions& options, const std::function<void()>& step) {
  ArgumentNames names;
  for (const Parameter& p : parameters) names.consts[p.value.id()] = p.name;
  return run(device, title, names, options, step);
}

}  // namespace reel::explain
