// The form that all elementwise kernels have: a run of neighbouring elements.
#pragma once
#include <cstdint>

namespace reel::cpu {

struct Piece {  // out[i] = f(a[i], b[i]), or c[i] ? a[i] : b[i], for i < n
  std::int64_t n;
  const void *a, *b, *c;
  void* out;
  const void* params = nullptr;
  bool one_a = false, one_b = false;  // a or b is one element for all i
};
using PieceKernel = void (*)(const Piece&);

}  // namespace reel::cpu
