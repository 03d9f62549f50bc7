// A fusion group of elementwise calls: compiled, or block by block: all calls run on one block of elements, which stays
// in the L1 cache, then on the next block.
#include <cstring>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/loop_weights.h"
#include "backends/cpu/kernels/piece.h"

namespace reel::cpu {

namespace {

/// One block of a fusion group: `rows` full rows, or part of one row.
struct Block {
  const FusedArgs& args;
  std::int64_t row, column, rows, columns;

  const FusedOperand& operand(int i) const { return args.operands[static_cast<std::size_t>(i)]; }
  std::byte* at(int i) const {
    const FusedOperand& o = operand(i);
    return o.local ? o.data : o.data + static_cast<std::size_t>(row * o.row + column * o.column) * o.element_bytes;
  }
  bool full(int i) const { return operand(i).column != 0 && (operand(i).row != 0 || operand(i).local || rows == 1); }
  bool one(int i) const { return operand(i).column == 0 && (operand(i).row == 0 || rows == 1); }

  void zip(const FusedCall& call, PieceKernel kernel) const {
    const int a = call.in[0], b = call.in[1];
    std::byte *from_a = at(a), *from_b = at(b), *to = at(call.out);
    const bool one_a = one(a), one_b = one(b);
    if ((one_a || full(a)) && (one_b || full(b)))
      return kernel({rows * columns, from_a, from_b, nullptr, to, &call.params, one_a, one_b});
    const auto step = [&](int i) {  // in bytes, between rows
      const FusedOperand& o = operand(i);
      return static_cast<std::size_t>(full(i) ? columns : o.row) * o.element_bytes;
    };
    for (std::int64_t r = 0; r < rows; ++r, from_a += step(a), from_b += step(b), to += step(call.out))
      kernel({columns, from_a, from_b, nullptr, to, &call.params, operand(a).column == 0, operand(b).column == 0});
  }

  void roll(const FusedCall& call) const {
    const std::size_t width = static_cast<std::size_t>(columns) * operand(call.out).element_bytes,
                      head = static_cast<std::size_t>(call.functor) * operand(call.out).element_bytes;
    const std::byte* from = at(call.in[0]);
    std::byte* to = at(call.out);
    for (std::int64_t r = 0; r < rows; ++r, from += width, to += width) {
      std::memcpy(to + head, from, width - head);
      std::memcpy(to, from + width - head, head);
    }
  }

  void run() const {
    for (const FusedCall& call : args.calls) {
      const auto kernel = reinterpret_cast<PieceKernel>(call.kernel);
      const int a = call.in[0], b = call.in[1];
      switch (call.kind) {
        case FusedCall::Kind::map:
        case FusedCall::Kind::cast:
          kernel({rows * columns, at(a), nullptr, nullptr, at(call.out), &call.params});
          break;
        case FusedCall::Kind::select:
          kernel({rows * columns, at(b), at(call.in[2]), at(a), at(call.out)});
          break;
        case FusedCall::Kind::zip:
          zip(call, kernel);
          break;
        case FusedCall::Kind::roll:
          roll(call);
      }
    }
  }
};

}  // namespace

void interpret(const FusedArgs& args) {
  if (args.columns > FusedArgs::block) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
      for (std::int64_t c = 0; c < args.columns; c += FusedArgs::block)
        Block{args, r, c, 1, std::min(FusedArgs::block, args.columns - c)}.run();
    }
  } else if (args.columns > 0) {
    const std::int64_t high = FusedArgs::block / args.columns;
    for (std::int64_t r = 0; r < args.rows; r += high)
      Block{args, r, 0, std::min(high, args.rows - r), args.columns}.run();
  }
}

void Cpu::resolve(FusedArgs& group) {
  for (FusedCall& call : group.calls) cpu::resolve(call);
  group.compiled = groups_.find(group);
}

void Cpu::fused(const FusedArgs& args) {
  if (args.compiled) {
    const auto f = static_cast<CompiledGroup*>(args.compiled)->function.load(std::memory_order_acquire);
    if (f) return f(args);
  }
  interpret(args);
}

void Cpu::run(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  const auto chained = groups_.runs(*this, loop);
  const LoopWeights weights(*this, loop, buffers);
  if (!chained) return Backend::run(loop, buffers);
  run_calls(*this, loop.setup, 1, buffers);
  run_calls(*this, *chained, loop.steps, buffers);
}

}  // namespace reel::cpu
