// Runs one shard of a lowered loop: its rows of the batch, all time steps. Every buffer and every call is prepared
// before the loop; a step then only moves pointers along the stacked buffers and makes the calls.
#include <memory>

#include "engine/scan/lower/lowered_loop.h"

namespace reel {

namespace {

class LoopExecutor {
 public:
  LoopExecutor(const LoweredLoop& plan, Shard range);
  void run();

 private:
  /// A value that is a different element of a stacked buffer [T, ...] at each step: element t + shift at time t or, if
  /// double-buffered, element (i + shift) % buffers in step i. Elements are `stride` bytes apart.
  struct StackedView {
    Tensor* value;
    Tensor first;
    std::size_t stride;
    std::int64_t buffers, shift;
    std::size_t skip(std::int64_t i, std::int64_t t) const {
      return static_cast<std::size_t>(buffers > 0 ? (i + shift) % buffers : t + shift) * stride;
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
  struct FusedLoop {
    std::int64_t rows = 1, columns = 1;
    std::vector<FusedCall> calls;
    std::vector<FusedOperand> operands;
    std::vector<const Tensor*> values;  // by operand; null: it lives in a block
  };

  Tensor& value(int id) { return value_[id]; }
  bool splits(int id) const { return range_.count > 0 && plan_.rows.placement[id] == Placement::sharded; }
  Spec part_spec(int id) const {
    Spec spec = body_.values[id];
    if (splits(id)) spec.shape.set(0, range_.count);
    return spec;
  }
  /// This shard's rows of a value [B, ...].
  Tensor rows_of(const Tensor& whole) const {
    if (range_.count == 0) return whole;
    Shape shape = whole.shape();
    shape.set(0, range_.count);
    return whole.view(shape, range_.first * shape.product(1, shape.rank()));
  }
  Tensor mine(int id, const Tensor& whole) const { return splits(id) ? rows_of(whole) : whole; }
  /// The stacked values of a carry; of a partial sum over the batch those of this shard.
  Tensor states(int carry) const {
    const Tensor& all = plan_.states[carry];
    return plan_.is_partial(carry) ? all.at(range_.part) : all;
  }
  static void copy(const Tensor& from, Tensor to) {
    REEL_ASSERT(from.shape() == to.shape());
    StridedLoop<2> loop;
    loop.push(from.numel(), {1, 1});
    from.backend().copy({size_of(from.dtype()), loop, from.data(), to.data()});
  }
  std::int64_t buffers() const { return scan_.save_carries ? 0 : 2; }
  /// The index of a state in its stacked buffer before (or after) the step of time t, minus t.
  std::int64_t shift(bool after) const { return scan_.save_carries && scan_.reverse ? !after : after; }

  void follow(int id, const Tensor& stacked, bool split, std::int64_t buffers, std::int64_t shift);
  int origin(int id) const;
  void settle(int id, const Tensor& stacked, bool split, std::int64_t buffers, std::int64_t shift);
  /// Keeps a tensor alive as long as the loop, and returns its address.
  const Tensor* keep(Tensor t) { return kept_.emplace_back(std::make_unique<Tensor>(std::move(t))).get(); }
  const Tensor* argument(int node, std::size_t k);
  const Tensor* repeated(const Tensor& row, std::int64_t times, std::int64_t columns);
  void add_call(int node);
  void add_run(const std::vector<int>& nodes);
  void step(std::int64_t i, std::int64_t t);

  const LoweredLoop& plan_;
  const Scan& scan_;
  const Program& body_;
  Shard range_;
  Tensors value_;
  std::vector<char> homed_;  // by id: lives in a stacked buffer
  std::vector<StackedView> views_;
  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<Tensor>> kept_;  // rows of consts, and repeated rows
  std::vector<Call> calls_;
  std::vector<FusedLoop> runs_;
  std::vector<std::byte> blocks_;
};

LoopExecutor::LoopExecutor(const LoweredLoop& plan, Shard range)
    : plan_(plan),
      scan_(plan.scan),
      body_(plan.body),
      range_(range),
      value_(body_.values.size()),
      homed_(body_.values.size(), 0) {
  for (int k = 0; k < body_.consts; ++k) value(body_.inputs + k) = plan.in[body_.inputs + k];
  for (int i = 0; i < scan_.carries; ++i) {
    const Tensor first = states(i).at(scan_.save_carries && scan_.reverse ? scan_.length : 0);
    follow(i, states(i), splits(i), buffers(), shift(false));
    if (plan.is_partial(i) && range.part > 0)
      first.backend().fill({first.dtype(), first.numel(), 0, const_cast<void*>(first.data())});
    else
      copy(mine(i, plan.in[i]), mine(i, first));
  }
  for (int k = scan_.carries; k < body_.inputs; ++k) follow(k, plan.in[k], splits(k), 0, 0);
  for (int i = 0; i < scan_.carries; ++i) settle(body_.outputs[i], states(i), splits(i), buffers(), shift(true));
  for (int j = scan_.carries; j < scan_.carries + scan_.ys(); ++j) {
    if (!plan.is_view(j)) settle(body_.outputs[j], plan.out[j], true, 0, 0);
  }
  for (const Program::Node& node : body_.nodes) {
    for (int s = node.out; s < node.out + node.num_outputs; ++s) {
      if (node.op->alias)
        value(s) = Tensor::abstract(part_spec(s));
      else if (!homed_[s] && plan.placed[s])
        value(s) = Tensor::empty(part_spec(s));
    }
  }
  for (const FusionGroup& group : plan.groups) {
    if (group.fused)
      add_run(group.nodes);
    else
      add_call(group.nodes[0]);
  }
}

void LoopExecutor::follow(int id, const Tensor& stacked, bool split, std::int64_t buffers, std::int64_t shift) {
  const Tensor whole = stacked.at(0);
  views_.push_back({&value(id), split ? rows_of(whole) : whole, whole.bytes(), buffers, shift});
  value(id) = views_.back().first;
}

/// The value that this one is a full view of, through any number of aliases. -1: no call produces it, or its rows are
/// elsewhere.
int LoopExecutor::origin(int id) const {
  const int node = body_.producer(id);
  if (node < 0) return -1;
  if (!body_.nodes[node].op->alias) return id;
  const int from = body_.nodes[node].in[0];
  const Shape &seen = body_.values[id].shape, &shape = body_.values[from].shape;
  const bool all = seen.numel() == shape.numel() && splits(id) == splits(from);
  return all && (!splits(id) || seen[0] == shape[0]) ? origin(from) : -1;
}

/// Makes a result end up in a stacked buffer: the call that produces it writes there directly if it can; otherwise the
/// result is copied at the end of each step.
void LoopExecutor::settle(int id, const Tensor& stacked, bool split, std::int64_t buffers, std::int64_t shift) {
  if (const int made = origin(id); made >= 0 && !homed_[made]) {
    homed_[made] = 1;
    follow(made, stacked.view(body_.values[made].shape.insert(0, stacked.dim(0))), split, buffers, shift);
    return;
  }
  const Tensor whole = stacked.at(0);
  const Tensor own = split ? rows_of(whole) : whole;
  copies_.push_back(
      {split && body_.is_const(id) ? keep(rows_of(value(id))) : &value(id), std::make_unique<Tensor>(own)});
  views_.push_back({copies_.back().to.get(), own, whole.bytes(), buffers, shift});
}

/// Argument k of a node: the value, its prepacked replacement, or this shard's rows of a const.
const Tensor* LoopExecutor::argument(int node, std::size_t k) {
  const Tensors& replaced = plan_.replaced[node];
  if (k < replaced.size() && replaced[k].defined()) return &replaced[k];
  const int id = body_.nodes[node].in[k];
  const bool part = body_.is_const(id) && range_.count > 0 && plan_.rows.arguments[node][k];
  return part ? keep(rows_of(value(id))) : &value(id);
}

void LoopExecutor::add_call(int n) {
  const Program::Node& node = body_.nodes[n];
  Call call{node.op, &plan_.attrs[n], {}, {&value(node.out), static_cast<std::size_t>(node.num_outputs)}};
  for (std::size_t k = 0; k < node.in.size(); ++k) call.in.push_back(argument(n, k));
  calls_.push_back(std::move(call));
}

/// A broadcast row, copied as often as a block has rows.
const Tensor* LoopExecutor::repeated(const Tensor& row, std::int64_t times, std::int64_t columns) {
  Tensor out = Tensor::empty({row.dtype(), Shape{times, columns}, &row.backend()});
  StridedLoop<2> loop;
  loop.push(times, {0, columns});
  loop.push(columns, {1, 1});
  row.backend().copy({size_of(row.dtype()), loop, row.data(), out.data()});
  return keep(std::move(out));
}

/// Turns the values of a fusion group into its operands. Values that are read only inside the group live in blocks; a
/// block is reused after the last read of its value.
void LoopExecutor::add_run(const std::vector<int>& nodes) {
  FusedLoop run;
  const Shape shape = part_spec(body_.nodes[nodes[0]].out).shape;
  if (shape.rank() > 0) run.columns = shape[shape.rank() - 1];
  run.rows = run.columns == 0 ? 0 : shape.numel() / run.columns;

  std::vector<int> operand(body_.values.size(), -1);
  std::vector<std::size_t> last_use(body_.values.size(), 0), block_of(body_.values.size(), 0), spare;
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int s : body_.nodes[nodes[i]].in) last_use[s] = i;
  }
  const auto add = [&](int id, const Tensor* t, Strides steps, bool local) {
    operand[id] = static_cast<int>(run.operands.size());
    run.operands.push_back({nullptr, steps.row, steps.column, size_of(body_.values[id].dtype), local});
    run.values.push_back(t);
  };
  const Strides full{run.columns, 1};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Program::Node& node = body_.nodes[nodes[i]];
    FusedCall call = *node.op->fuse(plan_.attrs[nodes[i]], pointers(body_.abstract_inputs(node)));
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      if (operand[s] < 0) {
        const Tensor* t = argument(nodes[i], k);
        const Strides steps = *fused_steps(t->shape(), shape);
        if (t->backend().runs_in_blocks() && body_.is_const(s) && steps.row == 0 && steps.column == 1 &&
            2 * run.columns <= FusedArgs::block)
          add(s, repeated(*t, FusedArgs::block / run.columns, run.columns), full, true);
        else
          add(s, t, steps, false);
      }
      call.in[k] = operand[s];
    }
    if (plan_.placed[node.out]) {
      add(node.out, &value(node.out), full, false);
    } else {
      if (spare.empty()) spare.push_back(blocks++);
      block_of[node.out] = spare.back();
      spare.pop_back();
      add(node.out, nullptr, full, true);
    }
    call.out = operand[node.out];
    value_[0].backend().resolve(call);
    run.calls.push_back(call);
    for (int s : node.in) {  // freed only now: kernels may read an argument again, so a result never overwrites one
      const bool block = operand[s] >= 0 && !run.values[operand[s]];
      if (block && last_use[s] == i) {
        spare.push_back(block_of[s]);
        last_use[s] = nodes.size();  // free it only once
      }
    }
  }
  // Blocks are a little more than whole pages apart, so that they do not compete for the same cache lines.
  constexpr std::size_t block_bytes = FusedArgs::block * 16 + 192;
  if (blocks_.size() < blocks * block_bytes + 64) blocks_.resize(blocks * block_bytes + 64);
  for (const int n : nodes) {
    const int s = body_.nodes[n].out, at = operand[s];
    if (!run.values[at]) run.operands[at].data = reinterpret_cast<std::byte*>(block_of[s] * block_bytes);
  }
  calls_.push_back({nullptr, nullptr, {}, {}});
  runs_.push_back(std::move(run));
}

void LoopExecutor::step(std::int64_t i, std::int64_t t) {
  for (const StackedView& w : views_) w.value->look_at(w.first, w.skip(i, t));
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

void LoopExecutor::run() {
  // The number of blocks is known now, so their addresses are final.
  std::byte* first = blocks_.data() + (64 - reinterpret_cast<std::uintptr_t>(blocks_.data()) % 64) % 64;
  for (FusedLoop& run : runs_) {
    for (FusedOperand& o : run.operands) {
      if (o.local) o.data = first + reinterpret_cast<std::uintptr_t>(o.data);
    }
  }
  value_[0].backend().loop(scan_.length, [&](std::int64_t i) { step(i, scan_.reverse ? scan_.length - 1 - i : i); });
  for (int i = 0; i < scan_.carries; ++i) {
    const std::int64_t last = scan_.save_carries ? (scan_.reverse ? 0 : scan_.length) : scan_.length % 2;
    if (!plan_.is_partial(i)) copy(mine(i, states(i).at(last)), mine(i, plan_.out[i]));
  }
}

}  // namespace

void run_shard(const LoweredLoop& plan, Shard range) { LoopExecutor(plan, range).run(); }

}  // namespace reel
