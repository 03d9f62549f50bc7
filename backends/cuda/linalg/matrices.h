// Linear algebra by cuBLAS and cuSOLVER. Both are column-major and see the transpose of a row-major matrix. Everything
// goes through Matrices, so that it can be tested on the host with LAPACK in place of cuSOLVER.
#pragma once
#include <climits>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cuda/linalg/matrix_kernels.h"
#include "backends/cuda/runtime/libraries.h"
#include "engine/device/backend.h"

namespace reel::cuda {

/// The context of linear algebra: the device and the libraries.
struct Matrices {
  Backend& device;  // memory, copies, elementwise functions
  const Cublas& blas;
  const Cusolver& solver;
  const MatrixKernels& kernels;
  FaultSlot* fault = nullptr;  // where a failed check is recorded; null: checks synchronize
};

// The kernels of the same names, for non-empty matrices. False or nullopt if arguments or results are invalid; the
// results are then garbage, and the CPU's kernel reports the reason.
bool cusolver_solve(const Matrices& at, const SolveArgs& s);
/// Does cusolver_solve use cuBLAS's batched functions? They never wait for the host, so they can be captured, but they
/// are meant for small matrices. The bound is not measured.
inline bool solves_batched(const SolveArgs& s) { return s.n <= 512 && s.k * s.batch <= INT_MAX; }
bool cusolver_triangular_solve(const Matrices& at, const TriangularSolveArgs& s);
bool cusolver_cholesky(const Matrices& at, const CholeskyArgs& a);
bool cusolver_lu(const Matrices& at, const LuArgs& a);
bool cusolver_qr(const Matrices& at, const QrArgs& a);
bool cusolver_determinant(const Matrices& at, const DeterminantArgs& a);
bool cusolver_eigh(const Matrices& at, const EighArgs& a);
bool cusolver_svd(const Matrices& at, const SvdArgs& a);
bool cusolver_pinv(const Matrices& at, const PinvArgs& a);
bool cusolver_polar_factor(const Matrices& at, const PolarFactorArgs& a);
std::optional<std::int64_t> cusolver_eig(const Matrices& at, const EigArgs& a);

/// Are matrices [m, n] worth sending to cuSOLVER? Not many small ones: it is called once for each, which takes longer
/// than the round trip to the host.
inline bool suits_solver(DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n) {
  const bool many_small = batch >= 8 && m <= 32 && n <= 32;
  return is_differentiable(dtype) && batch > 0 && m > 0 && n > 0 && !many_small;
}

// Shared helpers.

inline std::size_t bytes(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}
inline const std::byte* element(const void* first, std::int64_t n, DType dtype) {
  return static_cast<const std::byte*>(first) + bytes(n, dtype);
}
inline std::byte* element(void* first, std::int64_t n, DType dtype) {
  return static_cast<std::byte*>(first) + bytes(n, dtype);
}

/// Device memory for this many elements.
inline StoragePtr room(const Matrices& at, std::int64_t elements, DType dtype) {
  return StoragePtr(at.device.allocate(bytes(elements, dtype)));
}
/// A buffer for getrf's pivot indices.
class Swaps {
 public:
  Swaps(const Matrices& at, std::int64_t n)
      : room_(at.device.allocate(static_cast<std::size_t>(n) * sizeof(std::int64_t))) {}
  std::int64_t* data() const { return reinterpret_cast<std::int64_t*>(room_->data); }

 private:
  StoragePtr room_;
};

/// cuSOLVER's workspace on device and host; keep it until the call has run.
struct WorkRoom {
  std::size_t device_bytes = 0, host_bytes = 0;
  StoragePtr device;
  std::vector<std::byte> host;
  void make(const Matrices& at) {
    device = StoragePtr(at.device.allocate(device_bytes));
    host.resize(host_bytes);
  }
};

/// The status flags that kernels and calls leave on the device, read together: integers, 0 for success.
class Verdict {
 public:
  Verdict(const Matrices& at, std::int64_t calls) : at_(at), numbers_(static_cast<std::size_t>(calls + 1)) {
    room_ = room(at, calls + 1, DType::i32);
    at_.device.fill({DType::i32, calls + 1, 0, room_->data});
  }
  /// The flag shared by all kernels, and new ones for the next call, one for each matrix.
  int* flag() const { return reinterpret_cast<int*>(room_->data); }
  int* next(std::int64_t matrices = 1) { return flag() + std::exchange(used_, used_ + matrices) + 1; }
  bool good() {
    if (at_.fault) {
      at_.kernels.note(flag(), std::ssize(numbers_), at_.fault);
      return true;  // failures show up later, as a fault
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

/// Are all n elements finite? Checked before iterative routines, which may never return from NaN.
bool finite(const Matrices& at, DType dtype, const void* x, std::int64_t n);
/// Copies contiguous elements.
void copy(const Matrices& at, DType dtype, std::int64_t n, const void* from, void* to);
/// Converts a row-major matrix [rows, columns] to column-major for the libraries; or their column-major [columns, rows]
/// to row-major.
void transpose(const Matrices& at, DType dtype, std::int64_t rows, std::int64_t columns, const void* from, void* to);

/// The workspace for getrf on packed matrices [m, n], and the factorization of one in place; `info` gets 0 or an error
/// number.
WorkRoom room_for_factors(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, const void* packed);
void factor(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, void* packed, std::int64_t* swaps,
            WorkRoom& work, int* info);

}  // namespace reel::cuda
