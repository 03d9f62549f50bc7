// Products of f32 whose operands are rounded to bf16 and whose sums are f32, by oneDNN. All of it divides a product by
// its sizes alone, so the bits do not depend on the number of threads.
#pragma once
#include <string>
#include <vector>

#include "engine/device/backend.h"

namespace reel::cpu::bf16 {

/// Why there are no such products here, with a hint: the build or the processor. Empty: there are.
std::string missing();

/// Element (i, j) is data[i * ld + j], or data[j * ld + i] if it is transposed.
struct Matrix {
  const float* data;
  std::int64_t ld;
  bool transposed;
  const float* at(std::int64_t i, std::int64_t j) const { return data + (transposed ? j * ld + i : i * ld + j); }
};

/// The right side of products [m, k] [k, n], rounded to bf16 in the layout that the processor multiplies from. This
/// takes as long as a product of 20 rows in f32, so a weight that many products share is packed once.
class Packed {
 public:
  Packed(Backend& cpu, const Matrix& b, std::int64_t k, std::int64_t n);
  /// c [m, n] = a b, or c += a b.
  void multiply(Backend& cpu, const Matrix& a, std::int64_t m, float* c, bool add) const;

 private:
  void multiply_rows(Backend& cpu, const Matrix& a, std::int64_t rows, float* c, bool add) const;
  std::int64_t k_, n_;
  std::vector<StoragePtr> pieces_;  // so many rows each
};

/// c [m, n] = a b for a right side that no other product has. It is packed in parts, which saves memory where k is
/// long.
void multiply(Backend& cpu, const Matrix& a, const Matrix& b, std::int64_t m, std::int64_t k, std::int64_t n, float* c);

}  // namespace reel::cpu::bf16
