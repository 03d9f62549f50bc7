// Running a scan: the body's nodes in order, for each time step, on buffers made once. Results that are kept for all
// times are written where they stay, straight into their slab.
#include "engine/scan.h"

namespace reel {

void Scan::infer(Inputs in, std::span<Spec> out) const {
  REEL_ASSERT(static_cast<int>(in.size()) == body->inputs + body->captures);
  const auto n = static_cast<std::size_t>(carries), m = static_cast<std::size_t>(ys());
  for (std::size_t i = 0; i < n + m; ++i) {
    out[i] = body->slots[ix(body->outputs[i])];
    if (i >= n) out[i].shape = out[i].shape.insert(0, length);
    if (keep && i < n) {
      out[n + m + i] = out[i];
      out[n + m + i].shape = out[i].shape.insert(0, length + 1);
    }
  }
}

namespace {

/// Runs one Scan; the parts of Scan::run that share its buffers.
class Runner {
 public:
  Runner(const Scan& scan, Inputs in, std::span<Tensor> out)
      : scan_(scan), body_(*scan.body), in_(in), out_(out), value_(body_.slots.size()), home_(body_.slots.size()) {
    for (int k = 0; k < body_.captures; ++k) value(body_.inputs + k) = in[ix(body_.inputs + k)];
    for (int i = 0; i < scan.carries; ++i) {
      carry_.push_back(in[ix(i)]);
      if (scan.keep) all_values(i).at(first_index()).assign(carry_.back());
    }
    find_homes();
    make_scratch();
    for (const Program::Node& node : body_.nodes) {
      arguments_.emplace_back();
      for (int s : node.in) arguments_.back().push_back(&value(s));
    }
  }

  void run() {
    for (std::int64_t i = 0; i < scan_.length; ++i) step(i, scan_.reverse ? scan_.length - 1 - i : i);
    for (int i = 0; i < scan_.carries; ++i) out_[ix(i)].assign(carry_[ix(i)]);
  }

 private:
  /// Where a value goes at time t: element t + shift of a slab.
  struct Home {
    Tensor* slab = nullptr;
    std::int64_t shift = 0;
  };
  struct Copy {
    int slot;
    Home home;
  };
  struct Buffers {  // a carry without a slab lives in two buffers in turn: one is read while the other is written
    Tensor even, odd;
    bool copied = false;
  };

  Tensor& value(int slot) { return value_[ix(slot)]; }
  std::int64_t first_index() const { return scan_.reverse ? scan_.length : 0; }
  Tensor& all_values(int carry) { return out_[ix(scan_.carries + scan_.ys() + carry)]; }
  int next_slot(int carry) const { return body_.outputs[ix(carry)]; }
  bool made_here(int slot) const {
    const int node = body_.maker(slot);
    return node >= 0 && !body_.nodes[ix(node)].op->alias;
  }

  void find_homes() {
    auto settle = [&](int slot, Home home) {
      Home& own = home_[ix(slot)];
      if (!own.slab && made_here(slot))
        own = home;
      else
        copies_.push_back({slot, home});
    };
    if (scan_.keep) {
      for (int i = 0; i < scan_.carries; ++i) settle(next_slot(i), {&all_values(i), scan_.reverse ? 0 : 1});
    }
    for (int j = 0; j < scan_.ys(); ++j) {
      settle(body_.outputs[ix(scan_.carries + j)], {&out_[ix(scan_.carries + j)], 0});
    }
  }

  void make_scratch() {
    for (const Program::Node& node : body_.nodes) {
      if (node.op->alias) continue;
      for (int s = node.out; s < node.out + node.outs; ++s) {
        if (!home_[ix(s)].slab) value(s) = Tensor::empty(body_.slots[ix(s)]);
      }
    }
    buffers_.resize(ix(scan_.carries));
    for (int i = 0; i < scan_.carries && !scan_.keep; ++i) {
      const int slot = next_slot(i);
      if (home_[ix(slot)].slab) continue;
      Buffers& b = buffers_[ix(i)];
      bool first = true;  // two carries may have the same next value: only the first can be written in place
      for (int k = 0; k < i; ++k) first = first && next_slot(k) != slot;
      b.copied = !made_here(slot) || !first;
      b.even = Tensor::empty(body_.slots[ix(slot)]);
      b.odd = Tensor::empty(body_.slots[ix(slot)]);
    }
  }

  void step(std::int64_t i, std::int64_t t) {
    for (int k = 0; k < scan_.carries; ++k) value(k) = carry_[ix(k)];
    for (int k = scan_.carries; k < body_.inputs; ++k) value(k) = in_[ix(k)].at(t);
    for (std::size_t s = 0; s < home_.size(); ++s) {
      if (home_[s].slab) value_[s] = home_[s].slab->at(t + home_[s].shift);
    }
    for (int k = 0; k < scan_.carries; ++k) {
      const Buffers& b = buffers_[ix(k)];
      if (b.even.defined() && !b.copied) value(next_slot(k)) = i % 2 == 0 ? b.even : b.odd;
    }
    for (std::size_t n = 0; n < body_.nodes.size(); ++n) {
      const Program::Node& node = body_.nodes[n];
      if (node.op->alias)
        value(node.out) = node.op->alias(node.attrs, arguments_[n]);
      else
        node.op->run(node.attrs, arguments_[n], {&value(node.out), ix(node.outs)});
    }
    for (const Copy& c : copies_) c.home.slab->at(t + c.home.shift).assign(value(c.slot));
    Tensors next;
    for (int k = 0; k < scan_.carries; ++k) {
      const Buffers& b = buffers_[ix(k)];
      if (scan_.keep) {
        next.push_back(all_values(k).at(t + (scan_.reverse ? 0 : 1)));
      } else if (b.copied) {
        next.push_back(i % 2 == 0 ? b.even : b.odd);
        next.back().assign(value(next_slot(k)));
      } else {
        next.push_back(value(next_slot(k)));
      }
    }
    carry_ = std::move(next);
  }

  const Scan& scan_;
  const Program& body_;
  Inputs in_;
  std::span<Tensor> out_;
  Tensors value_;
  std::vector<Home> home_;
  std::vector<Copy> copies_;
  Tensors carry_;
  std::vector<Buffers> buffers_;
  std::vector<std::vector<const Tensor*>> arguments_;
};

}  // namespace

void Scan::run(Inputs in, std::span<Tensor> out) const { Runner(*this, in, out).run(); }

}  // namespace reel
