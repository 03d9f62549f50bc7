// The interpreter of lowered loops: every call is prepared once; a step moves the pointers that move, and makes the
// calls.
#include "engine/device/lowered_loop.h"

#include <cstring>

#include "engine/device/backend.h"

namespace reel {

namespace {

class Interpreter {
 public:
  Interpreter(const std::vector<LoopCall>& calls, std::span<std::byte* const> buffers) : source_(calls) {
    calls_.reserve(calls.size());  // moving_ points into them
    for (const LoopCall& call : calls) {
      auto operand = call.operands.begin();
      calls_.emplace_back(call.kernel).arrays([&](auto*& pointer) { place(&pointer, *operand++, buffers); });
    }
  }

  void step(Backend& backend, std::int64_t i) {
    if (backend.before_step) backend.before_step();
    for (const Moving& m : moving_) put(m.pointer, m.buffer + m.operand.at(i));
    std::size_t c = 0;
    try {
      for (; c < calls_.size(); ++c) calls_[c].run(backend);
    } catch (LoopError& e) {  // the call is a loop, or several ops' that know their names
      if (e.step >= 0) e.rule += " at " + str(source_[c].where);
      e.step = i;
      throw;
    } catch (const RuleError& e) {
      throw LoopError(e, source_[c].op, source_[c].where, i);
    }
  }

 private:
  struct Moving {
    void* pointer;  // to the pointer, of whatever type
    std::byte* buffer;
    Operand operand;
  };
  static void put(void* pointer, std::byte* address) { std::memcpy(pointer, &address, sizeof address); }
  void place(void* pointer, const Operand& o, std::span<std::byte* const> buffers) {
    if (o.buffer < 0) return put(pointer, nullptr);
    std::byte* const buffer = buffers[static_cast<std::size_t>(o.buffer)];
    put(pointer, buffer + o.at(0));
    if (o.stride != 0) moving_.push_back({pointer, buffer, o});
  }

  const std::vector<LoopCall>& source_;
  std::vector<KernelCall> calls_;
  std::vector<Moving> moving_;
};

}  // namespace

void run_calls(Backend& backend, const std::vector<LoopCall>& calls, std::int64_t steps,
               std::span<std::byte* const> buffers) {
  Interpreter interpreter(calls, buffers);
  for (std::int64_t i = 0; i < steps; ++i) interpreter.step(backend, i);
}

}  // namespace reel
