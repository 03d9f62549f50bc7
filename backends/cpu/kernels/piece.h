// The interface of all elementwise kernels: a contiguous chunk of elements.
#pragma once
#include "engine/device/kernels.h"

namespace reel::cpu {

struct Piece {  // out[i] = f(a[i], b[i]), or c[i] ? a[i] : b[i], for i < n
  std::int64_t n;
  const void *a, *b, *c;
  void* out;
  const Params* params = nullptr;
  bool one_a = false, one_b = false;  // a or b is a scalar, broadcast to all i
};
using PieceKernel = void (*)(const Piece&);

/// Sets the kernel of a call of a fusion group.
void resolve(FusedCall& call);
/// Runs a fusion group whose calls have their kernels.
void interpret(const FusedArgs& args);

}  // namespace reel::cpu
