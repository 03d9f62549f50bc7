// One thread's part of a scan: its rows of the batch, all time steps. Every buffer and every call is made ready before
// the loop; a step then moves pointers along the slabs and makes the calls.
#include <memory>

#include "engine/loop_plan.h"

namespace reel {

namespace {

class RowLoop {
 public:
  RowLoop(const LoopPlan& plan, RowRange range);
  void run();

 private:
  /// A value that is another element of a slab at each step: at time t element t + shift, or in step i element
  /// (i + shift) % turns; elements lie `stride` bytes apart.
  struct Walk {
    Tensor* value;
    Tensor first;
    std::size_t stride;
    std::int64_t turns, shift;
    std::size_t skip(std::int64_t i, std::int64_t t) const {
      return static_cast<std::size_t>(turns > 0 ? (i + shift) % turns : t + shift) * stride;
    }
  };
  struct Copy {
    const Tensor* from;
    std::unique_ptr<Tensor> to;
  };
  struct Call {
    const Op* op;
    const Attrs* attrs;
    std::vector<const Tensor*> in;
    std::span<Tensor> out;
  };
  struct FusedRun {
    std::int64_t rows = 1, columns = 1;
    std::vector<FusedCall> calls;
    std::vector<FusedOperand> operands;
    std::vector<const Tensor*> values;  // of operands; null: a block
  };

  Tensor& value(int slot) { return value_[ix(slot)]; }
  bool splits(int slot) const { return range_.count > 0 && plan_.rows.share[ix(slot)] == Share::rows; }
  Spec part_spec(int slot) const {
    Spec spec = body_.slots[ix(slot)];
    if (splits(slot)) spec.shape.set(0, range_.count);
    return spec;
  }
  /// This loop's rows of a value [B, ...].
  Tensor rows_of(const Tensor& whole) const {
    if (range_.count == 0) return whole;
    Shape shape = whole.shape();
    shape.set(0, range_.count);
    return whole.view(shape, range_.first * shape.product(1, shape.rank()));
  }
  Tensor mine(int slot, const Tensor& whole) const { return splits(slot) ? rows_of(whole) : whole; }
  /// The values of a carry over time; of a sum over the batch those of this part.
  Tensor states(int carry) const {
    const Tensor& all = plan_.states[ix(carry)];
    return plan_.is_partial(carry) ? all.at(range_.part) : all;
  }
  static void copy(const Tensor& from, Tensor to) {
    REEL_ASSERT(from.shape() == to.shape());
    Loop<2> loop;
    loop.push(from.numel(), {1, 1});
    from.backend().copy({size_of(from.dtype()), loop, from.data(), to.data()});
  }
  std::int64_t turns() const { return scan_.keep ? 0 : 2; }
  /// Where in its slab a state is at the start of the step of time t, seen from t; and after it.
  std::int64_t shift(bool after) const { return scan_.keep && scan_.reverse ? !after : after; }

  void follow(int slot, const Tensor& slab, bool split, std::int64_t turns, std::int64_t shift);
  int origin(int slot) const;
  void settle(int slot, const Tensor& slab, bool split, std::int64_t turns, std::int64_t shift);
  /// Its address while the loop lives.
  const Tensor* keep(Tensor t) { return kept_.emplace_back(std::make_unique<Tensor>(std::move(t))).get(); }
  const Tensor* argument(int node, std::size_t k);
  const Tensor* repeated(const Tensor& row, std::int64_t times, std::int64_t columns);
  void add_call(int node);
  void add_run(const std::vector<int>& nodes);
  void step(std::int64_t i, std::int64_t t);

  const LoopPlan& plan_;
  const Scan& scan_;
  const Program& body_;
  RowRange range_;
  Tensors value_;
  std::vector<char> homed_;  // by slot: has its place in a slab
  std::vector<Walk> walks_;
  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<Tensor>> kept_;  // rows of captures, and rows repeated
  std::vector<Call> calls_;
  std::vector<FusedRun> runs_;
  std::vector<std::byte> blocks_;
};

RowLoop::RowLoop(const LoopPlan& plan, RowRange range)
    : plan_(plan),
      scan_(plan.scan),
      body_(plan.body),
      range_(range),
      value_(body_.slots.size()),
      homed_(body_.slots.size(), 0) {
  for (int k = 0; k < body_.captures; ++k) value(body_.inputs + k) = plan.in[ix(body_.inputs + k)];
  for (int i = 0; i < scan_.carries; ++i) {
    const Tensor first = states(i).at(scan_.keep && scan_.reverse ? scan_.length : 0);
    follow(i, states(i), splits(i), turns(), shift(false));
    if (plan.is_partial(i) && range.part > 0)
      first.backend().fill({first.dtype(), first.numel(), 0, const_cast<void*>(first.data())});
    else
      copy(mine(i, plan.in[ix(i)]), mine(i, first));
  }
  for (int k = scan_.carries; k < body_.inputs; ++k) follow(k, plan.in[ix(k)], splits(k), 0, 0);
  for (int i = 0; i < scan_.carries; ++i) settle(body_.outputs[ix(i)], states(i), splits(i), turns(), shift(true));
  for (int j = scan_.carries; j < scan_.carries + scan_.ys(); ++j) {
    if (!plan.is_view(j)) settle(body_.outputs[ix(j)], plan.out[ix(j)], true, 0, 0);
  }
  for (const Program::Node& node : body_.nodes) {
    for (int s = node.out; s < node.out + node.outs; ++s) {
      if (node.op->alias)
        value(s) = Tensor::abstract(part_spec(s));
      else if (!homed_[ix(s)] && plan.placed[ix(s)])
        value(s) = Tensor::empty(part_spec(s));
    }
  }
  for (const Stage& stage : plan.stages) {
    if (stage.fused)
      add_run(stage.nodes);
    else
      add_call(stage.nodes[0]);
  }
}

void RowLoop::follow(int slot, const Tensor& slab, bool split, std::int64_t turns, std::int64_t shift) {
  const Tensor whole = slab.at(0);
  walks_.push_back({&value(slot), split ? rows_of(whole) : whole, whole.bytes(), turns, shift});
  value(slot) = walks_.back().first;
}

/// The value that a slot is all of, seen by views; -1: no call makes it, or its rows lie in other places.
int RowLoop::origin(int slot) const {
  const int node = body_.maker(slot);
  if (node < 0) return -1;
  if (!body_.nodes[ix(node)].op->alias) return slot;
  const int from = body_.nodes[ix(node)].in[0];
  const Shape &seen = body_.slots[ix(slot)].shape, &shape = body_.slots[ix(from)].shape;
  const bool all = seen.numel() == shape.numel() && splits(slot) == splits(from);
  return all && (!splits(slot) || seen[0] == shape[0]) ? origin(from) : -1;
}

/// Where a result goes: it is made there if a call makes it and it has no place yet, and copied else.
void RowLoop::settle(int slot, const Tensor& slab, bool split, std::int64_t turns, std::int64_t shift) {
  if (const int made = origin(slot); made >= 0 && !homed_[ix(made)]) {
    homed_[ix(made)] = 1;
    follow(made, slab.view(body_.slots[ix(made)].shape.insert(0, slab.dim(0))), split, turns, shift);
    return;
  }
  const Tensor whole = slab.at(0);
  const Tensor own = split ? rows_of(whole) : whole;
  copies_.push_back(
      {split && body_.is_capture(slot) ? keep(rows_of(value(slot))) : &value(slot), std::make_unique<Tensor>(own)});
  walks_.push_back({copies_.back().to.get(), own, whole.bytes(), turns, shift});
}

/// An argument of a node: the value, what the plan put in its place, or this loop's rows of a capture.
const Tensor* RowLoop::argument(int node, std::size_t k) {
  const Tensors& replaced = plan_.replaced[ix(node)];
  if (k < replaced.size() && replaced[k].defined()) return &replaced[k];
  const int slot = body_.nodes[ix(node)].in[k];
  const bool part = body_.is_capture(slot) && range_.count > 0 && plan_.rows.arguments[ix(node)][k];
  return part ? keep(rows_of(value(slot))) : &value(slot);
}

void RowLoop::add_call(int n) {
  const Program::Node& node = body_.nodes[ix(n)];
  Call call{node.op, &plan_.attrs[ix(n)], {}, {&value(node.out), ix(node.outs)}};
  for (std::size_t k = 0; k < node.in.size(); ++k) call.in.push_back(argument(n, k));
  calls_.push_back(std::move(call));
}

/// A row that is the same for all, as often as a block has rows.
const Tensor* RowLoop::repeated(const Tensor& row, std::int64_t times, std::int64_t columns) {
  Tensor out = Tensor::empty({row.dtype(), Shape{times, columns}, &row.backend()});
  Loop<2> loop;
  loop.push(times, {0, columns});
  loop.push(columns, {1, 1});
  row.backend().copy({size_of(row.dtype()), loop, row.data(), out.data()});
  return keep(std::move(out));
}

/// Numbers the values of a fused run as its operands. Those that nobody else reads live in blocks, which are used again
/// once their value has been read for the last time.
void RowLoop::add_run(const std::vector<int>& nodes) {
  FusedRun run;
  const Shape shape = part_spec(body_.nodes[ix(nodes[0])].out).shape;
  if (shape.rank() > 0) run.columns = shape[shape.rank() - 1];
  run.rows = run.columns == 0 ? 0 : shape.numel() / run.columns;

  std::vector<int> operand(body_.slots.size(), -1);
  std::vector<std::size_t> last_use(body_.slots.size(), 0), block_of(body_.slots.size(), 0), spare;
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int s : body_.nodes[ix(nodes[i])].in) last_use[ix(s)] = i;
  }
  const auto add = [&](int slot, const Tensor* t, Strides steps, bool local) {
    operand[ix(slot)] = static_cast<int>(run.operands.size());
    run.operands.push_back({nullptr, steps.row, steps.column, size_of(body_.slots[ix(slot)].dtype), local});
    run.values.push_back(t);
  };
  const Strides full{run.columns, 1};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Program::Node& node = body_.nodes[ix(nodes[i])];
    FusedCall call = *node.op->fuse(plan_.attrs[ix(nodes[i])], pointers(body_.stand_ins(node)));
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      if (operand[ix(s)] < 0) {
        const Tensor* t = argument(nodes[i], k);
        const Strides steps = *fused_steps(t->shape(), shape);
        if (t->backend().runs_in_blocks() && body_.is_capture(s) && steps.row == 0 && steps.column == 1 &&
            2 * run.columns <= FusedArgs::block)
          add(s, repeated(*t, FusedArgs::block / run.columns, run.columns), full, true);
        else
          add(s, t, steps, false);
      }
      call.in[k] = operand[ix(s)];
    }
    if (plan_.placed[ix(node.out)]) {
      add(node.out, &value(node.out), full, false);
    } else {
      if (spare.empty()) spare.push_back(blocks++);
      block_of[ix(node.out)] = spare.back();
      spare.pop_back();
      add(node.out, nullptr, full, true);
    }
    call.out = operand[ix(node.out)];
    value_[0].backend().resolve(call);
    run.calls.push_back(call);
    for (int s : node.in) {  // the result may not take the place of an argument: kernels read some of it again
      const bool block = operand[ix(s)] >= 0 && !run.values[ix(operand[ix(s)])];
      if (block && last_use[ix(s)] == i) {
        spare.push_back(block_of[ix(s)]);
        last_use[ix(s)] = nodes.size();  // once
      }
    }
  }
  // Blocks lie a little off multiples of a page, so that no two of them compete for the same lines of a cache.
  constexpr std::size_t block_bytes = FusedArgs::block * 16 + 192;
  if (blocks_.size() < blocks * block_bytes + 64) blocks_.resize(blocks * block_bytes + 64);
  for (const int n : nodes) {
    const int s = body_.nodes[ix(n)].out, at = operand[ix(s)];
    if (!run.values[ix(at)]) run.operands[ix(at)].data = reinterpret_cast<std::byte*>(block_of[ix(s)] * block_bytes);
  }
  calls_.push_back({nullptr, nullptr, {}, {}});
  runs_.push_back(std::move(run));
}

void RowLoop::step(std::int64_t i, std::int64_t t) {
  for (const Walk& w : walks_) w.value->look_at(w.first, w.skip(i, t));
  auto run = runs_.begin();
  for (const Call& call : calls_) {
    if (!call.op) {
      for (std::size_t k = 0; k < run->values.size(); ++k) {
        if (run->values[k]) run->operands[k].data = static_cast<std::byte*>(const_cast<void*>(run->values[k]->data()));
      }
      value_[0].backend().fused({run->rows, run->columns, run->calls, run->operands});
      ++run;
    } else if (call.op->alias) {
      const auto skip = static_cast<std::size_t>(call.op->alias(*call.attrs, call.in));
      call.out[0].look_at(*call.in[0], skip * size_of(call.out[0].dtype()));
    } else {
      call.op->run(*call.attrs, call.in, call.out);
    }
  }
  for (const Copy& c : copies_) copy(*c.from, *c.to);
}

void RowLoop::run() {
  // The blocks have their place now that all runs have said how many they need.
  std::byte* first = blocks_.data() + (64 - reinterpret_cast<std::uintptr_t>(blocks_.data()) % 64) % 64;
  for (FusedRun& run : runs_) {
    for (FusedOperand& o : run.operands) {
      if (o.local) o.data = first + reinterpret_cast<std::uintptr_t>(o.data);
    }
  }
  value_[0].backend().loop(scan_.length, [&](std::int64_t i) { step(i, scan_.reverse ? scan_.length - 1 - i : i); });
  for (int i = 0; i < scan_.carries; ++i) {
    const std::int64_t last = scan_.keep ? (scan_.reverse ? 0 : scan_.length) : scan_.length % 2;
    if (!plan_.is_partial(i)) copy(mine(i, states(i).at(last)), mine(i, plan_.out[ix(i)]));
  }
}

}  // namespace

void run_rows(const LoopPlan& plan, RowRange range) { RowLoop(plan, range).run(); }

}  // namespace reel
