#include "engine/scan/plan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>

#include "engine/scan/scan.h"

namespace reel {

namespace {

bool same_node(const Program::Node& a, const Program::Node& b) {
  return a.op == b.op && a.in == b.in && a.out == b.out && a.num_outputs == b.num_outputs &&
         a.where.line() == b.where.line() && std::strcmp(a.where.file_name(), b.where.file_name()) == 0 &&
         a.op->same(a.attrs, b.attrs);
}

bool same_program(const Program& a, const Program& b) {
  return a.inputs == b.inputs && a.consts == b.consts && a.outputs == b.outputs && a.values == b.values &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node);
}

/// The last plans, the latest used first.
class PlanCache {
 public:
  PlanPtr find(const Program& body, const Signature& signature, const ScanPasses& passes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.device == device(body) && e.signature == signature && e.plan->passes == passes &&
             same_program(e.body, body);
    });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return found->plan;
  }

  void add(Program body, const Signature& signature, PlanPtr plan) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t serial = device(body);
    entries_.push_front({serial, signature, std::move(body), std::move(plan)});
    if (entries_.size() > most) entries_.pop_back();
  }

 private:
  static constexpr std::size_t most = 64;
  struct Entry {
    std::uint64_t device;  // a device may have the address of one that is gone
    Signature signature;   // before the passes
    Program body;
    PlanPtr plan;
  };
  static std::uint64_t device(const Program& body) {
    return body.values.empty() ? 0 : body.values[0].backend->serial();
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
};

PlanCache& cache() {
  static auto& plans = *new PlanCache;  // never destroyed: the destructor of a static may run a loop
  return plans;
}

std::atomic<std::int64_t> made{0};

}  // namespace

Plan::Gradient Plan::gradient(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = gradients_.find(key);
  return found == gradients_.end() ? Gradient() : found->second;
}

void Plan::keep_gradient(const std::string& key, const Gradient& gradient) const {
  if (gradient.plan->has_tensors()) return;
  const std::lock_guard lock(mutex_);
  gradients_[key] = gradient;
}

std::int64_t plans_made() { return made; }

PlanWatch*& plan_watch() {
  thread_local PlanWatch* watch = nullptr;
  return watch;
}

PlanPtr plan_of(Traced body, const Signature& signature, const ScanPasses& passes) {
  const bool kept = body.consts.empty() && !plan_watch();
  if (PlanPtr found = kept ? cache().find(body.program, signature, passes) : nullptr) return found;
  ++made;
  Program key = body.program;
  auto plan = std::make_shared<Plan>();
  plan->loop = optimize(Loop::of(std::move(body), signature), passes);
  plan->passes = passes;
  if (!plan->has_tensors()) cache().add(std::move(key), signature, plan);
  return plan;
}

Tensors run_plan(const PlanPtr& plan, const Tensors& carries, const Tensors& xs, const Tensors& consts,
                 const Loc& where) {
  const Loop& loop = plan->loop;
  const Signature& s = loop.signature;
  if (const PlanWatch* watch = plan_watch()) watch->run(plan, carries, xs, consts);
  Tensors in = xs;
  in.insert(in.end(), consts.begin(), consts.end());
  Tensors results = eval(loop.prologue.program, in, loop.prologue.consts);
  const auto passed = results.begin() + loop.xs() + loop.body.consts;

  in = carries;
  for (int k = s.carries - s.accumulators; k < s.carries; ++k) {
    const Spec& spec = loop.body.values[k];
    in.push_back(Tensor::zeros(spec.shape, spec.dtype, *spec.backend));
  }
  in.insert(in.end(), results.begin(), passed);
  // Nothing is left to run where all of it left the loop.
  const Tensors out =
      loop.body.outputs.empty() ? Tensors() : apply_many(op_of<Scan>(), Attrs(Scan{plan}), pointers(in), where);

  in.assign(out.begin(), out.begin() + s.carries);
  in.insert(in.end(), passed, results.end());
  const auto ys = out.begin() + s.carries;
  in.insert(in.end(), ys, ys + (loop.epilogue.program.inputs - std::ssize(in)));
  return eval(loop.epilogue.program, in, loop.epilogue.consts);
}

}  // namespace reel
