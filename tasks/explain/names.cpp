#include "tasks/explain/names.h"

#include <algorithm>
#include <cstring>

namespace reel::explain {

namespace {

std::int64_t bytes_of(const Spec& s) { return s.shape.numel() * static_cast<std::int64_t>(size_of(s.dtype)); }

bool is(const Program::Node& node, const char* op) { return std::strcmp(node.op->traits.name, op) == 0; }

/// Does the op hand on what its first argument is, seen as a value of one time step?
bool transparent(const Program& p, const Program::Node& node) {
  return is(node, "reshape") ||
         (node.op->loop.is_gather && node.op->loop.is_gather(node.attrs, pointers(p.abstract_inputs(node))));
}

/// How often each op of a stage is there, by name, to see what a pass did.
using Count = std::map<std::string, int>;
Count count(const ProgramRows& rows) {
  Count out;
  for (const OpRow& row : rows.rows) {
    if (row.mark != Mark::dropped) ++out[row.name];
  }
  return out;
}

void mark_new(ProgramRows& now, const ProgramRows& before, const Count& in_body, bool outside) {
  Count left = count(before);
  for (OpRow& row : now.rows) {
    if (left[row.name]-- > 0) continue;
    row.mark = outside && in_body.contains(row.name) ? Mark::moved : Mark::added;
  }
}

/// Puts the ops that are gone from a program where they were.
void add_dropped(ProgramRows& now, const ProgramRows& before, const Count& everywhere) {
  std::vector<OpRow> all;
  auto next = now.rows.begin();
  for (const OpRow& old : before.rows) {
    if (old.mark == Mark::dropped) continue;
    const auto same = std::find_if(next, now.rows.end(), [&](const OpRow& r) { return r.name == old.name; });
    if (same != now.rows.end()) {
      all.insert(all.end(), next, same + 1);
      next = same + 1;
    } else if (!everywhere.contains(old.name)) {
      all.push_back(old);
      all.back().mark = Mark::dropped;
      all.back().node = -1;
      all.back().kept = false;
    }
  }
  all.insert(all.end(), next, now.rows.end());
  now.rows = std::move(all);
}

void compare(StageRows& now, const StageRows& before) {
  Count everywhere;
  for (const ProgramRows* p : {&now.prologue, &now.body, &now.epilogue}) everywhere.merge(count(*p));
  const Count body = count(before.body);
  mark_new(now.prologue, before.prologue, body, true);
  mark_new(now.body, before.body, body, false);
  mark_new(now.epilogue, before.epilogue, body, true);
  add_dropped(now.prologue, before.prologue, everywhere);
  add_dropped(now.body, before.body, everywhere);
  add_dropped(now.epilogue, before.epilogue, everywhere);
}

}  // namespace

Namer::Instance& Namer::instance(const Program::Node& node, const std::vector<Value>& values, bool gradient) {
  std::vector<int> keys;
  for (const int s : node.in) keys.push_back(values[static_cast<std::size_t>(s)].key);
  std::vector<Instance>& known = instances_[{node.op, keys}];
  Instance* found = nullptr;
  for (Instance& i : known) {
    if (i.stage == stage_) continue;
    const bool alike = node.op->same(i.attrs, node.attrs);
    if (alike || !found) found = &i;
    if (alike) break;
  }
  if (!found) {
    known.push_back({node.op, node.attrs, {new_key(), fmt::format("%{}", next_name_++)}, node.where, !gradient, 0});
    for (int k = 1; k < node.num_outputs; ++k) new_key();  // of its further results
    found = &known.back();
  }
  found->stage = stage_;
  return *found;
}

std::vector<Namer::Value> Namer::walk(const Traced& traced, std::vector<Value> values, int first_sum, int last_sum,
                                      ProgramRows& rows, bool gradient) {
  const Program& p = traced.program;
  for (const Tensor& own : traced.consts) {  // made by the traced function itself
    Value& value = consts_[own.id()];
    if (value.key < 0) value = {new_key(), fmt::format("%{}", next_name_++)};
    values.push_back(value);
  }
  values.resize(p.values.size());
  const auto at = [&](int s) -> Value& { return values[static_cast<std::size_t>(s)]; };
  for (int s = 0; s < p.inputs + p.consts; ++s) (s < p.inputs ? rows.inputs : rows.consts).push_back(at(s).name);
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    const Program::Node& node = p.nodes[n];
    const Instance& made = instance(node, values, gradient);
    OpRow row{.name = made.value.name,
              .op = node.op->traits.name,
              .spec = p.values[static_cast<std::size_t>(node.out)],
              .cost = p.cost(node),
              .view = node.op->alias != nullptr,
              .again = gradient && made.forward,
              .where = str(made.where),
              .node = static_cast<int>(n)};
    for (const int s : node.in) row.args.push_back(at(s).name);
    rows.rows.push_back(std::move(row));
    for (int k = 0; k < node.num_outputs; ++k)
      at(node.out + k) = {made.value.key + k, k == 0 ? made.value.name : fmt::format("{}.{}", made.value.name, k)};
    // A sum over time is, of one time step, its term.
    if (is(node, "add") && node.in[0] >= first_sum && node.in[0] < last_sum) at(node.out).key = at(node.in[1]).key;
    if (transparent(p, node)) at(node.out).key = at(node.in[0]).key;
  }
  for (const int s : p.outputs) rows.outputs.push_back(at(s).name);
  for (const Value& v : values) rows.values.push_back(v.name);
  return values;
}

std::optional<Namer::Value> Namer::saved_at(const Argument& argument) const {
  if (!argument.address) return std::nullopt;
  const auto found =
      std::find_if(saved_.rbegin(), saved_.rend(), [&](const Saved& s) { return s.address == argument.address; });
  return found == saved_.rend() ? std::nullopt : std::optional(found->value);
}

/// Keeps where a forward loop had its arguments and left its results.
void Namer::remember(const WatchedLoop& loop, const std::vector<Value>& body, const std::vector<Value>& inputs) {
  if (!loop.lowered) return;
  const Program& p = loop.plan->loop.body;
  for (std::size_t b = 0; b < loop.buffers.size(); ++b) {
    const LoopBuffer& buffer = loop.lowered->buffers[b];
    const auto index = static_cast<std::size_t>(buffer.index);
    using Kind = LoopBuffer::Kind;
    if (buffer.kind == Kind::input) saved_.push_back({loop.buffers[b], inputs[index]});
    if (buffer.kind == Kind::output)
      saved_.push_back({loop.buffers[b], body[static_cast<std::size_t>(p.outputs[index])]});
    const Signature& s = loop.plan->loop.signature;
    if (buffer.kind != Kind::state || !s.save_carries) continue;
    // [T + 1, ...] in the order of time: the states before all steps, and those after them.
    const Value after{body[static_cast<std::size_t>(p.outputs[index])].key, inputs[index].name + "'"};
    saved_.push_back({loop.buffers[b], s.reverse ? after : inputs[index]});
    saved_.push_back({loop.buffers[b] + bytes_of(p.values[index]), s.reverse ? inputs[index] : after});
  }
}

Namer::Value Namer::fresh(const std::string& name) {
  std::string own = name;
  for (int n = 2; !names_.insert(own).second; ++n) own = fmt::format("{}_{}", name, n);
  return {new_key(), own};
}

Namer::Leaves Namer::leaves(const WatchedLoop& loop, const ArgumentNames& names) {
  const Signature& s = loop.stages.front().loop.signature;
  Leaves out;
  const int sum = new_key();  // all sums over time are told apart by their terms
  const auto named = [&](const std::vector<std::string>& list, std::size_t i, const char* other, std::size_t n) {
    return i < list.size() ? list[i] : n == 1 ? std::string(other) : fmt::format("{}{}", other, i + 1);
  };
  const auto carries = static_cast<std::size_t>(s.carries), states = carries - static_cast<std::size_t>(s.accumulators);
  for (std::size_t i = 0; i < carries; ++i)
    out.carries.push_back(i < states ? fresh(named(names.carries, i, s.gradient ? "dh" : "h", states))
                                     : Value{sum, fmt::format("sum{}", i - states + 1)});
  std::vector<std::optional<Value>> known;
  for (const Argument& a : loop.xs) known.push_back(s.gradient ? saved_at(a) : std::nullopt);
  const auto unknown = static_cast<std::size_t>(std::count(known.begin(), known.end(), std::nullopt));
  for (std::size_t i = 0, k = 0; i < known.size(); ++i) {
    if (known[i])
      out.xs.push_back(*known[i]);
    else
      out.xs.push_back(fresh(s.gradient ? named({}, k, "dout", unknown) : named(names.xs, k, "x", unknown))), ++k;
  }
  const std::size_t consts = loop.consts.size();
  for (std::size_t i = 0; i < consts; ++i) {
    const Argument& a = loop.consts[i];
    Value& value = consts_[a.id];
    if (value.key < 0) {
      const auto found = names.consts.find(a.id);
      const std::optional<Value> saved = s.gradient ? saved_at(a) : std::nullopt;
      value = found != names.consts.end() ? fresh(found->second)
              : saved                     ? *saved
                                          : fresh(fmt::format("const{}", i + 1));
    }
    out.consts.push_back(value);
  }
  return out;
}

std::vector<StageRows> Namer::stages(const WatchedLoop& watched, const ArgumentNames& names) {
  const Leaves given = leaves(watched, names);
  const bool gradient = watched.stages.front().loop.signature.gradient;
  std::vector<StageRows> out;
  std::string last;
  for (const PassStage& at : watched.stages) {
    ++stage_;
    const Loop& loop = at.loop;
    StageRows rows{at.pass, at.rule, true, loop.signature.carries, {}, {}, {}};
    const auto carries = static_cast<std::ptrdiff_t>(loop.signature.carries);
    const auto states = carries - loop.signature.accumulators;

    std::vector<Value> in = given.xs;
    in.insert(in.end(), given.consts.begin(), given.consts.end());
    const std::vector<Value> before = walk(loop.prologue, in, 0, 0, rows.prologue, gradient);
    std::vector<Value> results;
    for (const int s : loop.prologue.program.outputs) results.push_back(before[static_cast<std::size_t>(s)]);
    const auto passed = results.begin() + loop.xs() + loop.body.consts;

    in.assign(given.carries.begin(), given.carries.begin() + states);
    for (auto k = states; k < carries; ++k)
      in.push_back({given.carries.back().key, fmt::format("sum{}", k - states + 1)});
    in.insert(in.end(), results.begin(), passed);
    const std::vector<Value> inputs = in;
    const std::vector<Value> body =
        walk({loop.body, {}}, in, static_cast<int>(states), static_cast<int>(carries), rows.body, gradient);

    in.clear();
    const auto output = [&](std::ptrdiff_t i) {
      return body[static_cast<std::size_t>(loop.body.outputs[static_cast<std::size_t>(i)])];
    };
    for (std::ptrdiff_t i = 0; i < carries; ++i) in.push_back(output(i));
    in.insert(in.end(), passed, results.end());
    for (std::ptrdiff_t i = carries; std::ssize(in) < loop.epilogue.program.inputs; ++i) in.push_back(output(i));
    walk(loop.epilogue, in, 0, 0, rows.epilogue, gradient);

    std::string text = loop.str();
    rows.changed = text != last;
    last = std::move(text);
    if (!out.empty()) compare(rows, out.back());
    out.push_back(std::move(rows));
    if (!gradient && &at == &watched.stages.back()) remember(watched, body, inputs);
  }
  return out;
}

}  // namespace reel::explain
