// Runs a scan: memory for its states, the loop of each shard of the batch, and what the shards add up.
#include <algorithm>
#include <utility>

#include "engine/autodiff/primitives.h"
#include "engine/scan/lower/lowering.h"

namespace reel {

void Scan::infer(Inputs in, std::span<Spec> out) const {
  const Program& body = loop().body;
  const Signature& is = signature();
  REEL_ASSERT(static_cast<int>(in.size()) == body.inputs + body.consts);
  const auto n = static_cast<std::size_t>(is.carries), all = body.outputs.size();
  for (std::size_t i = 0; i < all; ++i) {
    const Spec& spec = body.values[body.outputs[i]];
    out[i] = i < n ? spec : stacked(spec, is.length);
    if (is.save_carries && i < n) out[all + i] = stacked(spec, is.length + 1);
  }
}

void Scan::allocate(Inputs in, std::span<Tensor> out) const {
  std::vector<Spec> specs(out.size());
  infer(in, specs);
  const std::vector<int>& outputs = loop().body.outputs;
  const int carries = signature().carries, m = static_cast<int>(outputs.size());
  const bool save_carries = signature().save_carries;
  // The index in a carry's values of the one after the step of time 0.
  const std::int64_t after = signature().reverse ? 0 : 1;
  for (int i = 0; i < carries; ++i) {
    out[i] = Tensor::empty(specs[i]);
    if (save_carries) out[m + i] = Tensor::empty(specs[m + i]);
  }
  for (int j = carries; j < m; ++j) {
    const auto next = outputs.begin(), end = next + carries;
    const auto carry = save_carries ? std::find(next, end, outputs[j]) : end;
    out[j] = carry == end ? Tensor::empty(specs[j])
                          : out[m + static_cast<int>(carry - next)].view(
                                specs[j].shape, after * specs[static_cast<int>(carry - next)].shape.numel());
  }
}

namespace {

/// A shard of the batch: rows first .. first + count - 1. A count of 0 means that nothing is sharded.
struct Shard {
  std::int64_t first = 0, count = 0;
  int part = 0;
};

void copy(const Tensor& from, Tensor to) {
  StridedLoop<2> loop;
  loop.push(from.numel(), {1, 1});
  from.backend().copy({from.dtype(), loop, from.data(), to.data()});
}

class ScanRun {
 public:
  ScanRun(const Scan& scan, Inputs in, std::span<Tensor> out);
  void run();

 private:
  Backend& backend() const { return *lowering_->body.values[0].backend; }
  int shards() const;
  void run_shard(Shard shard) const;
  std::byte* address(const LoopBuffer& buffer, Shard shard, std::byte* scratch) const;
  /// The states of a carry; of a partial sum over the batch the one of this shard.
  Tensor states(int carry, Shard shard) const {
    return lowering_->is_partial(carry) ? states_[carry].at(shard.part * apart(carry)) : states_[carry];
  }
  /// From the partial sum of a shard to the next one's, in sums: so far that no core prefetches what another one
  /// writes.
  std::int64_t apart(int carry) const {
    const Spec& sum = lowering_->body.values[carry];
    return 1 + 4096 / std::max<std::int64_t>(sum.shape.numel() * static_cast<std::int64_t>(size_of(sum.dtype)), 1);
  }
  /// The shard's rows of a carry's value [B, ...].
  Tensor rows(int carry, const Tensor& value, Shard shard) const {
    if (shard.count == 0 || !lowering_->is_sharded(carry)) return value;
    Shape shape = value.shape();
    shape.set(0, shard.count);
    return value.view(shape, shard.first * shape.product(1, shape.rank()));
  }

  Inputs in_;
  std::span<Tensor> out_;
  std::shared_ptr<const Lowering> lowering_;
  const Signature& signature_;
  std::vector<Prepacked> prepacked_;  // by node
  std::vector<char> views_;           // by y: is it a view of a carry's saved values?
  int parts_ = 1;                     // number of shards
  Tensors states_;  // by carry: all values [T + 1, ...] in the order of time, or double-buffered [2, ...]; a sum over
                    // time [1, ...], or [parts, ...] if it is also a partial sum over the batch
};

ScanRun::ScanRun(const Scan& scan, Inputs in, std::span<Tensor> out)
    : in_(in), out_(out), lowering_(scan.plan->lowering()), signature_(lowering_->signature) {
  const Program& body = lowering_->body;
  if (lowering_->rows.rows > 0) parts_ = shards();
  const int carries = signature_.carries, results = static_cast<int>(body.outputs.size());
  for (int i = 0; i < carries; ++i) {
    const Spec spec = stacked(body.values[i], lowering_->is_partial(i) ? parts_ * apart(i) : lowering_->places(i));
    states_.push_back(signature_.save_carries ? out[results + i] : Tensor::empty(spec));
  }
  for (int y = carries; y < results; ++y)
    views_.push_back(std::ranges::any_of(states_, [&](const Tensor& s) { return s.storage() == out[y].storage(); }));
  const bool long_enough = signature_.length >= backend().costs().steps_to_prepack;
  for (const Program::Node& node : body.nodes) {
    Prepacked& packed = prepacked_.emplace_back(Prepacked{node.attrs, {}});
    if (!node.op->loop.prepack || !long_enough) continue;
    Mapped constant;
    Tensors values = body.abstract_inputs(node);
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      if (!body.is_const(node.in[k])) continue;
      constant.set(k);
      values[k] = in[node.in[k]];
    }
    if (!node.op->loop.prepack(node.attrs, pointers(values), constant, packed.attrs, packed.replaced))
      packed = {node.attrs, {}};
  }
}

int ScanRun::shards() const {
  const Program& body = lowering_->body;
  ShardSizes sizes{lowering_->rows.rows};
  for (int s = 0; s < std::ssize(body.values); ++s) {
    const Spec& spec = body.values[s];
    const std::int64_t bytes = spec.shape.numel() * static_cast<std::int64_t>(size_of(spec.dtype));
    if (!lowering_->is_sharded(s))
      sizes.weights += bytes;
    else if (s < body.inputs || lowering_->placed[s])
      sizes.step += bytes;
  }
  return static_cast<int>(backend().shards(sizes));
}

std::byte* ScanRun::address(const LoopBuffer& buffer, Shard shard, std::byte* scratch) const {
  using Kind = LoopBuffer::Kind;
  if (buffer.kind == Kind::scratch) return scratch;
  const Tensor of = buffer.kind == Kind::input    ? in_[buffer.index]
                    : buffer.kind == Kind::output ? out_[buffer.index]
                    : buffer.kind == Kind::state
                        ? states(buffer.index, shard)
                        : prepacked_[buffer.index].replaced[static_cast<std::size_t>(buffer.argument)];
  auto* const first = static_cast<std::byte*>(const_cast<void*>(std::as_const(of).data()));
  if (!buffer.rows) return first;
  const bool is_const = buffer.kind == Kind::input && buffer.index >= lowering_->body.inputs;
  const Shape& shape = of.shape();
  return first +
         shard.first * shape.product(is_const ? 1 : 2, shape.rank()) * static_cast<std::int64_t>(size_of(of.dtype()));
}

void ScanRun::run_shard(Shard shard) const {
  const NoGrad no_grad;
  const auto loop = lowering_->loop(shard.count, views_, prepacked_);
  const bool back = signature_.save_carries && signature_.reverse;
  for (int i = 0; i < signature_.carries; ++i) {
    Tensor first = lowering_->is_partial(i) ? states(i, shard) : states_[i].at(back ? signature_.length : 0);
    if (lowering_->is_partial(i) && shard.part > 0)
      backend().fill({first.dtype(), first.numel(), 0, first.data()});
    else
      copy(rows(i, in_[i], shard), rows(i, first, shard));
  }
  const StoragePtr scratch(loop->scratch > 0 ? backend().allocate(loop->scratch) : nullptr);
  std::vector<std::byte*> buffers;
  for (const LoopBuffer& b : loop->buffers) buffers.push_back(address(b, shard, scratch ? scratch->data : nullptr));
  try {
    backend().run(loop->loop, buffers);
  } catch (LoopError& e) {
    e.rule += fmt::format("; in step {} of {}", signature_.reverse ? signature_.length - 1 - e.step : e.step,
                          signature_.gradient ? "the gradient of scan" : "scan");
    if (parts_ > 1) e.rule += fmt::format(", for rows {} to {}", shard.first, shard.first + shard.count - 1);
    throw;
  }
  for (int i = 0; i < signature_.carries; ++i)
    if (const std::int64_t last = back ? 0 : signature_.length % lowering_->places(i); !lowering_->is_partial(i))
      copy(rows(i, states_[i].at(last), shard), rows(i, out_[i], shard));
}

void ScanRun::run() {
  const std::int64_t rows = lowering_->rows.rows;
  if (rows == 0) return run_shard({});
  backend().parallel(parts_, [&](int p) {
    const std::int64_t first = rows * p / parts_, last = rows * (p + 1) / parts_;
    run_shard({first, last - first, p});
  });
  for (int i = 0; i < signature_.carries; ++i) {
    if (!lowering_->is_partial(i)) continue;
    Tensor sum = states(i, {});
    for (int p = 1; p < parts_; ++p) sum = primitive::add(sum, states(i, {.part = p}));
    out_[i].assign(sum);
  }
}

}  // namespace

void Scan::run(Inputs in, std::span<Tensor> out) const {
  if (!out.empty() && !out[0].defined()) allocate(in, out);
  ScanRun(*this, in, out).run();
}

}  // namespace reel
