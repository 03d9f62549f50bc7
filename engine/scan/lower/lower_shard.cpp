// Lowers a planned loop for shards of one size. Each op of the body is asked once what it calls: it runs on a recorder,
// with sample tensors in the place of its arguments, and from where a call's arrays lie in those follows their operand.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "engine/autodiff/tape.h"
#include "engine/device/recorder.h"
#include "engine/scan/lower/lowering.h"

namespace reel {

namespace {

/// An op as a call on the host: it gets tensors at the operands' addresses, inputs first.
KernelCall host_call(const Op* op, Attrs attrs, std::vector<Spec> specs, std::size_t inputs) {
  const std::size_t count = specs.size();
  auto run = [op, attrs = std::move(attrs), specs = std::move(specs), inputs](std::span<std::byte* const> operands) {
    std::vector<Storage> memory(specs.size());
    Tensors values;
    for (std::size_t k = 0; k < specs.size(); ++k) values.push_back(Tensor::borrow(memory[k], operands[k], specs[k]));
    const std::vector<const Tensor*> all = pointers(values);
    Tensors made(values.begin() + static_cast<std::ptrdiff_t>(inputs), values.end());
    if (op->traits.allocates) made.assign(made.size(), {});
    op->run(attrs, {all.data(), inputs}, made);
    for (std::size_t k = 0; k < made.size(); ++k) {  // it may have replaced a result
      Tensor& out = values[inputs + k];
      if (!(made[k].spec() == out.spec()))
        rule_error("its run() gives {}, its infer() {}", made[k].spec().str(), out.spec().str());
      if (made[k].id() != out.id()) out.assign(made[k]);
    }
  };
  return KernelCall::of<Kernel::host>(HostArgs{std::move(run), std::vector<std::byte*>(count)});
}

class ShardLowering {
 public:
  ShardLowering(const Lowering& lowering, std::int64_t rows, const std::vector<char>& views,
                const std::vector<Prepacked>& prepacked)
      : lowering_(lowering), rows_(rows), views_(views), prepacked_(prepacked) {}
  std::shared_ptr<const ShardLoop> lower();

 private:
  using Kind = LoopBuffer::Kind;
  bool splits(int id) const { return rows_ > 0 && lowering_.is_sharded(id); }
  Spec spec(int id, bool split) const {
    Spec spec = body_.values[id];
    if (split) spec.shape.set(0, rows_);
    return spec;
  }
  int buffer(LoopBuffer b) {
    const auto known = std::find(out_.buffers.begin(), out_.buffers.end(), b);
    const auto index = static_cast<int>(known - out_.buffers.begin());
    if (known == out_.buffers.end()) out_.buffers.push_back(b);
    return index;
  }
  /// A tensor of the recorder in the place of what lies at `at`.
  Tensor sample(Spec spec, const Operand& at) {
    spec.backend = &recorder_;
    Tensor t = Tensor::empty(spec);
    known_[t.storage()] = at;
    return t;
  }
  Operand scratch(std::size_t bytes) {
    // Not whole pages apart, so that values do not compete for the same cache lines.
    const std::size_t at = std::exchange(used_, used_ + (bytes + 63) / 64 * 64 + 192);
    out_.scratch = std::max(out_.scratch, used_);
    out_.loop.scratch = buffer({.kind = Kind::scratch});
    return {out_.loop.scratch, static_cast<std::int64_t>(at), 0, false};
  }
  /// Element t + shift of a stacked buffer at time t or, in a carry that is not saved, element (i + shift) % 2 in step
  /// i. An element is a whole value of all rows.
  Operand stacked(LoopBuffer b, int id, std::int64_t shift, bool double_buffered) {
    const Spec& whole = body_.values[id];
    const auto bytes = whole.shape.numel() * static_cast<std::int64_t>(size_of(whole.dtype));
    const bool back = !double_buffered && signature_.reverse;
    const std::int64_t first = (back ? signature_.length - 1 : 0) + shift;
    return {buffer(b), first * bytes, back || (double_buffered && shift > 0) ? -bytes : bytes, double_buffered};
  }
  /// A carry before the step, or after it.
  Operand carry(int i, bool after) {
    const bool saved = signature_.save_carries;
    const LoopBuffer state{.kind = Kind::state, .index = i, .rows = splits(i)};
    if (lowering_.places(i) == 1) return {buffer(state)};
    return stacked(state, i, saved && signature_.reverse ? !after : after, !saved);
  }
  Operand operand_of(const void* pointer);
  int origin(int id) const;
  void settle(int id, const Operand& at, bool split);
  const Tensor& rows_of(int id);
  const Tensor& argument(int node, std::size_t k);
  /// A copy of one row, `times` times.
  void add_copy(std::vector<LoopCall>& to, DType dtype, std::int64_t times, std::int64_t columns,
                std::vector<Operand> operands) {
    StridedLoop<2> loop;
    loop.push(times, {0, columns});
    loop.push(columns, {1, 1});
    to.push_back({KernelCall::of<Kernel::copy>(CopyArgs{dtype, loop, nullptr, nullptr}), std::move(operands)});
  }
  void add_node(int node);
  bool records(const Op& op, const Attrs& attrs, Inputs in, std::span<Tensor> out);
  void add_group(const std::vector<int>& nodes);
  Operand repeated(const Tensor& row, std::int64_t times, std::int64_t columns);

  const Lowering& lowering_;
  const Program& body_ = lowering_.body;
  const Signature& signature_ = lowering_.signature;
  const std::int64_t rows_;
  const std::vector<char>& views_;
  const std::vector<Prepacked>& prepacked_;

  Recorder recorder_{*body_.values[0].backend};
  std::map<const Storage*, Operand> known_;        // where the recorder's blocks will lie
  Tensors sample_ = Tensors(body_.values.size());  // by id
  std::map<std::pair<int, int>, Tensor> own_;  // prepacked arguments by node and argument; rows of a const by -1 and id
  std::vector<char> homed_ = std::vector<char>(body_.values.size());  // by id: it's written into the loop's results
  std::vector<std::pair<const Tensor*, Operand>> copies_;             // at the end of each step
  std::vector<Operand> blocks_;                                       // of values that are local to a fusion group
  std::size_t used_ = 0;                                              // bytes of scratch
  ShardLoop out_;
};

std::shared_ptr<const ShardLoop> ShardLowering::lower() {
  const NoGrad no_grad;
  const int carries = signature_.carries;
  out_.loop.steps = signature_.length;
  for (int k = 0; k < body_.inputs + body_.consts; ++k) {
    const bool is_const = k >= body_.inputs, split = !is_const && splits(k);
    const LoopBuffer in{.kind = Kind::input, .index = k, .rows = split};
    sample_[k] = sample(spec(k, split), k < carries ? carry(k, false)
                                        : is_const  ? Operand{buffer(in)}
                                                    : stacked(in, k, 0, false));
  }
  for (int i = 0; i < carries; ++i) settle(body_.outputs[i], carry(i, true), splits(i));
  for (int j = carries; j < static_cast<int>(body_.outputs.size()); ++j) {
    if (views_[j - carries]) continue;
    const int id = body_.outputs[j];
    settle(id, stacked({.kind = Kind::output, .index = j, .rows = rows_ > 0}, id, 0, false), rows_ > 0);
  }
  for (const Program::Node& node : body_.nodes) {
    for (int s : node.outputs()) {
      if (node.op->alias || homed_[s] || !lowering_.placed[s]) continue;
      const Spec own = spec(s, splits(s));
      sample_[s] = sample(own, scratch(static_cast<std::size_t>(own.shape.numel()) * size_of(own.dtype)));
    }
  }
  for (const FusionGroup& group : lowering_.groups) {
    group.fused ? add_group(group.nodes) : add_node(group.nodes[0]);
    out_.ends.push_back(out_.loop.calls.size());
  }
  for (const auto& [from, to] : copies_)
    add_copy(out_.loop.calls, from->dtype(), 1, from->numel(), {operand_of(from->data()), to});
  return std::make_shared<const ShardLoop>(std::move(out_));
}

/// Where an address of the recorder's memory will lie. What an op allocates for itself becomes scratch.
Operand ShardLowering::operand_of(const void* pointer) {
  if (!pointer) return {};
  const Storage* block = recorder_.block_of(pointer);
  if (!block) throw NotCapturable("it reads memory that is no tensor's");
  const auto known = known_.find(block);
  Operand at = known != known_.end() ? known->second : known_[block] = scratch(block->bytes);
  at.offset += static_cast<const std::byte*>(pointer) - block->data;
  return at;
}

/// The value that this one is a full view of, through any number of aliases, or the term that is added to it. -1: no
/// call produces it, or its rows are elsewhere.
int ShardLowering::origin(int id) const {
  const int node = body_.producer(id);
  if (node < 0) return -1;
  if (lowering_.term_of[id] >= 0) return lowering_.term_of[id];
  if (!body_.nodes[node].op->alias) return id;
  const int from = body_.nodes[node].in[0];
  const Shape &seen = body_.values[id].shape, &shape = body_.values[from].shape;
  const bool all = seen.numel() == shape.numel() && splits(id) == splits(from);
  return all && (!splits(id) || seen[0] == shape[0]) ? origin(from) : -1;
}

/// Makes a result end up at `at`: the call that produces it writes there directly if it can; otherwise the result is
/// copied at the end of each step.
void ShardLowering::settle(int id, const Operand& at, bool split) {
  if (const int made = origin(id); made >= 0 && !homed_[made]) {
    homed_[made] = 1;
    sample_[made] = sample(spec(made, split), at);
    return;
  }
  copies_.push_back({split && body_.is_const(id) ? &rows_of(id) : &sample_[id], at});
}

/// This shard's rows of a const.
const Tensor& ShardLowering::rows_of(int id) {
  Tensor& rows = own_[{-1, id}];
  if (!rows.defined()) rows = sample(spec(id, true), {buffer({.kind = Kind::input, .index = id, .rows = true})});
  return rows;
}

/// Argument k of a node: the value, its prepacked replacement, or this shard's rows of a const.
const Tensor& ShardLowering::argument(int node, std::size_t k) {
  const Tensors& replaced = prepacked_[node].replaced;
  if (k < replaced.size() && replaced[k].defined()) {
    Tensor& own = own_[{node, static_cast<int>(k)}];
    if (!own.defined())
      own = sample(replaced[k].spec(),
                   {buffer({.kind = Kind::prepacked, .index = node, .argument = static_cast<int>(k)})});
    return own;
  }
  const int id = body_.nodes[node].in[k];
  const bool part = body_.is_const(id) && rows_ > 0 && lowering_.rows.arguments[node][k];
  return part ? rows_of(id) : sample_[id];
}

void ShardLowering::add_node(int n) {
  const Program::Node& node = body_.nodes[n];
  const Attrs& attrs = prepacked_[n].attrs;
  std::vector<const Tensor*> in;
  for (std::size_t k = 0; k < node.in.size(); ++k) in.push_back(&argument(n, k));
  const std::span out(&sample_[node.out], static_cast<std::size_t>(node.num_outputs));
  if (node.op->alias) {
    out[0] = in[0]->view(spec(node.out, splits(node.out)).shape, node.op->alias(attrs, in));
    return;
  }
  const std::span sums = std::span(body_.outputs).first(signature_.carries).last(signature_.accumulators);
  const bool adds = std::ranges::any_of(sums, [&](int sum) { return lowering_.term_of[sum] == node.out; });
  const std::size_t used = used_;
  std::vector<LoopCall> calls;
  try {
    if (!node.op->traits.allocates && records(*node.op, attrs, in, out)) {
      for (KernelCall& call : recorder_.take()) {
        LoopCall& lowered = calls.emplace_back();
        call.arrays([&](const void* pointer) { lowered.operands.push_back(operand_of(pointer)); });
        lowered.kernel = std::move(call);
      }
    }
  } catch (const std::exception&) {  // it asks for values, or does not like zeros: in the loop it is called as it is
    calls.clear();
  }
  recorder_.take();
  used_ = used;  // what the op allocated is free after it
  const auto fills = [&](const LoopCall& call) {
    return call.kernel.kernel() == Kernel::fill && call.operands[0] == operand_of(out[0].data());
  };
  if (adds && std::erase_if(calls, fills) == 0)
    fail(node.op->traits.name, node.where, "its traits say .accumulates, but run() calls no fill() for its result");
  if (calls.empty()) {
    std::vector<Spec> specs;
    std::vector<Operand> operands;
    const auto add = [&](const Tensor& t) {
      specs.push_back({t.dtype(), t.shape(), body_.values[0].backend});
      operands.push_back(operand_of(t.data()));
    };
    for (const Tensor* t : in) add(*t);
    for (const Tensor& t : out) add(t);
    calls.push_back({host_call(node.op, attrs, std::move(specs), in.size()), std::move(operands)});
  }
  for (LoopCall& call : calls) call.op = node.op->traits.name, call.where = node.where;
  std::move(calls.begin(), calls.end(), std::back_inserter(out_.loop.calls));
}

/// Runs an op on the recorder. False: it computed on the host, at least in part, as its outputs show.
bool ShardLowering::records(const Op& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) {
  constexpr int mark = 0x5a;
  Tensors made(out.begin(), out.end());
  const auto tried = out.first(recorder_.runs_in_blocks() ? out.size() : 0);
  for (Tensor& t : tried) std::memset(t.data(), mark, t.bytes());
  op.run(attrs, in, made);
  bool marked = std::ranges::equal(out, made, {}, &Tensor::id, &Tensor::id);  // else it replaced one
  for (Tensor& t : tried) {
    auto* const first = static_cast<std::byte*>(t.data());
    marked = marked && std::all_of(first, first + t.bytes(), [](std::byte b) { return b == std::byte{mark}; });
    std::memset(t.data(), 0, t.bytes());
  }
  return marked;
}

/// A broadcast row, copied as often as a block has rows, before the first step.
Operand ShardLowering::repeated(const Tensor& row, std::int64_t times, std::int64_t columns) {
  used_ = out_.scratch;  // behind what calls of the step use for a while
  const Operand to = scratch(static_cast<std::size_t>(times * columns) * size_of(row.dtype()));
  add_copy(out_.loop.setup, row.dtype(), times, columns, {operand_of(row.data()), to});
  return to;
}

/// Turns the values of a fusion group into its operands. Values that are read only inside the group live in blocks; a
/// block is reused after the last read of its value.
void ShardLowering::add_group(const std::vector<int>& nodes) {
  constexpr std::size_t block_bytes = FusedArgs::block * 16;
  const bool blocks = recorder_.runs_in_blocks();
  FusedArgs run{1, 1, {}, {}};
  const int first_out = body_.nodes[nodes[0]].out;
  const Shape shape = spec(first_out, splits(first_out)).shape;
  if (shape.rank() > 0) run.columns = shape[shape.rank() - 1];
  run.rows = run.columns == 0 ? 0 : shape.numel() / run.columns;

  std::vector<Operand> operands;
  std::unordered_map<int, int> operand;  // by id, as all of these: a body may have thousands of groups
  std::unordered_map<int, std::size_t> last_use, block_of;
  std::vector<std::size_t> spare;
  std::size_t used = 0;  // blocks
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (int s : body_.nodes[nodes[i]].in) last_use[s] = i;
  const auto add = [&](int id, const Operand& at, Strides steps, bool local) {
    operand[id] = static_cast<int>(operands.size());
    run.operands.push_back({nullptr, steps.row, steps.column, size_of(body_.values[id].dtype), local});
    operands.push_back(at);
  };
  const Strides full{run.columns, 1};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Program::Node& node = body_.nodes[nodes[i]];
    FusedCall call = *node.op->loop.fuse(prepacked_[nodes[i]].attrs, pointers(body_.abstract_inputs(node)));
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const int s = node.in[k];
      if (!operand.contains(s)) {
        const Tensor& t = argument(nodes[i], k);
        const Strides steps = *fused_steps(t.shape(), shape);
        if (blocks && body_.is_const(s) && steps.row == 0 && steps.column == 1 && run.columns > 0 &&
            2 * run.columns <= FusedArgs::block)
          add(s, repeated(t, FusedArgs::block / run.columns, run.columns), full, true);
        else
          add(s, operand_of(t.data()), steps, false);
      }
      call.in[k] = operand[s];
    }
    if (lowering_.placed[node.out]) {
      add(node.out, operand_of(sample_[node.out].data()), full, false);
    } else {
      if (spare.empty()) spare.push_back(used++);
      if (blocks && used > blocks_.size()) blocks_.push_back(scratch(block_bytes));
      block_of[node.out] = spare.back();
      spare.pop_back();
      add(node.out, blocks ? blocks_[block_of[node.out]] : Operand{}, full, true);
    }
    call.out = operand[node.out];
    run.calls.push_back(call);
    for (int s : node.in) {  // freed only now: kernels may read an argument again, so a result never overwrites one
      if (block_of.contains(s) && last_use[s] == i) {
        spare.push_back(block_of[s]);
        last_use[s] = nodes.size();  // free it only once
      }
    }
  }
  recorder_.resolve(run);
  out_.loop.calls.push_back({KernelCall::of<Kernel::fused>(run), std::move(operands)});
}

}  // namespace

std::shared_ptr<const ShardLoop> lower_shard(const Lowering& lowering, std::int64_t rows,
                                             const std::vector<char>& views, const std::vector<Prepacked>& prepacked) {
  return ShardLowering(lowering, rows, views, prepacked).lower();
}

}  // namespace reel
