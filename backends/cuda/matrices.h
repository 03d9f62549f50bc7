// Linear algebra by cuBLAS and cuSOLVER. They count columns first: what they see of a row-major matrix is its
// transpose. All of it is in terms of Matrices, so that it can be tested on the host, with LAPACK in cuSOLVER's place.
#pragma once
#include <optional>
#include <vector>

#include "backends/cuda/libraries.h"
#include "backends/cuda/matrix_kernels.h"
#include "engine/backend.h"

namespace reel::cuda {

/// Where matrices are, and who computes there.
struct Matrices {
  Backend& device;  // memory, copies, elementwise functions
  const Cublas& blas;
  const Cusolver& solver;
  const MatrixKernels& kernels;
  FaultSlot* fault = nullptr;  // where a failed check is noted; null: checks are waited for
};

// The kernels of the same names, on matrices that have elements. False or none: something is wrong with arguments or
// results, which are rubbish then, and the CPU's kernel finds out what, in words.
bool native_solve(const Matrices& at, const SolveArgs& s);
bool native_triangular_solve(const Matrices& at, const TriangularSolveArgs& s);
bool native_cholesky(const Matrices& at, const CholeskyArgs& a);
bool native_lu(const Matrices& at, const LuArgs& a);
bool native_qr(const Matrices& at, const QrArgs& a);
bool native_determinant(const Matrices& at, const DeterminantArgs& a);
bool native_eigh(const Matrices& at, const EighArgs& a);
bool native_svd(const Matrices& at, const SvdArgs& a);
bool native_pinv(const Matrices& at, const PinvArgs& a);
bool native_polar(const Matrices& at, const PolarArgs& a);
std::optional<std::int64_t> native_eig(const Matrices& at, const EigArgs& a);

/// Are matrices [m, n] work for cuSOLVER? Not where there are many small ones, for it is called once for each, which
/// takes longer than the way to the host and back.
inline bool suits_solver(DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n) {
  const bool many_small = batch >= 8 && m <= 32 && n <= 32;
  return is_differentiable(dtype) && batch > 0 && m > 0 && n > 0 && !many_small;
}

// What these share.

inline std::size_t bytes(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}
inline const std::byte* element(const void* first, std::int64_t n, DType dtype) {
  return static_cast<const std::byte*>(first) + bytes(n, dtype);
}
inline std::byte* element(void* first, std::int64_t n, DType dtype) {
  return static_cast<std::byte*>(first) + bytes(n, dtype);
}

/// Memory of the device for so many elements.
inline StoragePtr room(const Matrices& at, std::int64_t elements, DType dtype) {
  return StoragePtr(at.device.allocate(bytes(elements, dtype)));
}
/// Room for the places of rows that getrf swaps.
class Swaps {
 public:
  Swaps(const Matrices& at, std::int64_t n)
      : room_(at.device.allocate(static_cast<std::size_t>(n) * sizeof(std::int64_t))) {}
  std::int64_t* data() const { return reinterpret_cast<std::int64_t*>(room_->data); }

 private:
  StoragePtr room_;
};

/// Room that a call of cuSOLVER works in, on both sides; to be kept until the call has run.
struct WorkRoom {
  std::size_t device_bytes = 0, host_bytes = 0;
  StoragePtr device;
  std::vector<std::byte> host;
  void make(const Matrices& at) {
    device = StoragePtr(at.device.allocate(device_bytes));
    host.resize(host_bytes);
  }
};

/// What kernels and calls leave to be looked at, in one reading: whole numbers, 0 for "all is well".
class Verdict {
 public:
  Verdict(const Matrices& at, std::int64_t calls) : at_(at), numbers_(static_cast<std::size_t>(calls + 1)) {
    room_ = room(at, calls + 1, DType::i32);
    at_.device.fill({DType::i32, calls + 1, 0, room_->data});
  }
  /// For all kernels, and for the next call.
  int* flag() const { return reinterpret_cast<int*>(room_->data); }
  int* next() { return flag() + ++used_; }
  bool good() {
    if (at_.fault) {
      at_.kernels.note(flag(), std::ssize(numbers_), at_.fault);
      return true;  // as far as one knows
    }
    at_.device.read(numbers_.data(), room_->data, numbers_.size() * sizeof(int));
    for (const int n : numbers_) {
      if (n != 0) return false;
    }
    return true;
  }

 private:
  const Matrices& at_;
  std::vector<int> numbers_;
  StoragePtr room_;
  std::int64_t used_ = 0;
};

/// Are n elements finite? Asked first where nobody promises that an iteration comes back from NaN.
bool finite(const Matrices& at, DType dtype, const void* x, std::int64_t n);
/// Elements as they are.
void copy(const Matrices& at, DType dtype, std::int64_t n, const void* from, void* to);
/// A row-major matrix [rows, columns] as the libraries have it, column by column; or one of theirs, [columns, rows], as
/// a row-major one.
void transpose(const Matrices& at, DType dtype, std::int64_t rows, std::int64_t columns, const void* from, void* to);

/// Room for getrf of packed matrices [m, n], and the factorisation of one in place; `info` gets 0, or a number.
WorkRoom room_for_factors(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, const void* packed);
void factor(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, void* packed, std::int64_t* swaps,
            WorkRoom& work, int* info);

}  // namespace reel::cuda
