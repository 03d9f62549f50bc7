// solve, cholesky, eigh by cuSOLVER. What it sees of a row-major matrix is the transpose. Each of these says false
// where something is wrong with its arguments or result, and the CPU's kernel then finds out what, in words.
#include <vector>

#include "backends/cuda/cuda.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/matrix_kernels.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

namespace {

/// Room that a call of cuSOLVER works in, on both sides; to be kept until the call has run.
struct WorkRoom {
  std::size_t device_bytes = 0, host_bytes = 0;
  StoragePtr device;
  std::vector<std::byte> host;
  void make(Backend& backend) {
    device = StoragePtr(backend.allocate(device_bytes));
    host.resize(host_bytes);
  }
};

/// The transpose of a row-major [rows, columns].
Loop<2> transposing(std::int64_t rows, std::int64_t columns) {
  Loop<2> loop;
  loop.push(columns, {1, rows});
  loop.push(rows, {columns, 1});
  return loop;
}

/// What kernels and calls leave to be looked at, in one reading: whole numbers, 0 for "all is well".
class Verdict {
 public:
  Verdict(Backend& backend, std::int64_t calls, cudaStream_t stream)
      : backend_(backend), numbers_(static_cast<std::size_t>(calls + 1)) {
    room_ = StoragePtr(backend.allocate(bytes()));
    check(cudaMemsetAsync(room_->data, 0, bytes(), stream), "cudaMemset");
  }
  int* not_finite() const { return reinterpret_cast<int*>(room_->data); }
  int* next() { return not_finite() + ++used_; }
  bool good() {
    backend_.read(numbers_.data(), room_->data, bytes());
    for (int n : numbers_) {
      if (n != 0) return false;
    }
    return true;
  }

 private:
  std::size_t bytes() const { return numbers_.size() * sizeof(int); }
  Backend& backend_;
  std::vector<int> numbers_;
  StoragePtr room_;
  std::int64_t used_ = 0;
};

const std::byte* matrix(const void* first, std::int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(first) + static_cast<std::size_t>(elements) * size_of(dtype);
}
std::byte* matrix(void* first, std::int64_t elements, DType dtype) {
  return static_cast<std::byte*>(first) + static_cast<std::size_t>(elements) * size_of(dtype);
}
std::size_t bytes(std::int64_t elements, DType dtype) { return static_cast<std::size_t>(elements) * size_of(dtype); }

}  // namespace

bool Cuda::solve_here(const SolveArgs& s) {
  const Cusolver& lib = libraries_->solver();
  const std::int64_t n = s.n, k = s.k;
  const auto type = data_type(s.dtype);
  const StoragePtr lu = scratch(bytes(n * n, s.dtype)), turned = scratch(bytes(n * k, s.dtype)),
                   pivots = scratch(static_cast<std::size_t>(n) * sizeof(std::int64_t));
  auto* const swaps = reinterpret_cast<std::int64_t*>(pivots->data);
  Verdict verdict(*this, 2 * s.batch, stream());
  WorkRoom work;
  check(lib.cusolverDnXgetrf_bufferSize(lib.handle, lib.params, n, n, type, lu->data, n, type, &work.device_bytes,
                                        &work.host_bytes),
        "solve");
  work.make(*this);
  // The transpose is a' = P L U: a x = b asks for its transpose, and a^H x = b for the conjugate of itself.
  const bool conjugate = s.adjoint && is_complex(s.dtype);
  const auto conj = [&] {
    const Conj f;
    if (conjugate) map({index_of<Conj, UnaryFunctors>, &f, s.dtype, n * k, turned->data, turned->data});
  };
  for (std::int64_t i = 0; i < s.batch; ++i) {
    if (i == 0 || s.stride_a != 0) {
      const std::byte* a = matrix(s.a, i * s.stride_a, s.dtype);
      flag_not_finite(s.dtype, a, n * n, verdict.not_finite(), stream());
      copy_bytes(lu->data, a, bytes(n * n, s.dtype));
      check(lib.cusolverDnXgetrf(lib.handle, lib.params, n, n, type, lu->data, n, swaps, type, work.device->data,
                                 work.device_bytes, work.host.data(), work.host_bytes, verdict.next()),
            "solve");
    }
    const std::byte* b = matrix(s.b, i * s.stride_b, s.dtype);
    std::byte* const x = matrix(s.x, i * n * k, s.dtype);
    flag_not_finite(s.dtype, b, n * k, verdict.not_finite(), stream());
    copy({size_of(s.dtype), transposing(n, k), b, turned->data});
    conj();
    check(lib.cusolverDnXgetrs(lib.handle, lib.params, s.adjoint ? CUBLAS_OP_N : CUBLAS_OP_T, n, k, type, lu->data, n,
                               swaps, type, turned->data, n, verdict.next()),
          "solve");
    conj();
    copy({size_of(s.dtype), transposing(k, n), turned->data, x});
    flag_not_finite(s.dtype, x, n * k, verdict.not_finite(), stream());
  }
  launched("solve", {s.batch, n, k});
  return verdict.good();
}

bool Cuda::cholesky_here(const CholeskyArgs& c) {
  const Cusolver& lib = libraries_->solver();
  const auto type = data_type(c.dtype);
  const std::int64_t n = c.n;
  Verdict verdict(*this, c.batch, stream());
  WorkRoom work;
  check(lib.cusolverDnXpotrf_bufferSize(lib.handle, lib.params, CUBLAS_FILL_MODE_UPPER, n, type, c.l, n, type,
                                        &work.device_bytes, &work.host_bytes),
        "cholesky");
  work.make(*this);
  flag_not_finite(c.dtype, c.a, c.batch * n * n, verdict.not_finite(), stream());
  copy_bytes(c.l, c.a, bytes(c.batch * n * n, c.dtype));
  // Our lower triangle is the upper one that is seen, and the transpose of its upper factor is our lower one.
  for (std::int64_t i = 0; i < c.batch; ++i)
    check(lib.cusolverDnXpotrf(lib.handle, lib.params, CUBLAS_FILL_MODE_UPPER, n, type, matrix(c.l, i * n * n, c.dtype),
                               n, type, work.device->data, work.device_bytes, work.host.data(), work.host_bytes,
                               verdict.next()),
          "cholesky");
  clear_above_diagonal(c.dtype, c.l, c.batch, n, stream());
  launched("cholesky", {c.batch, n});
  return verdict.good();
}

bool Cuda::eigh_here(const EighArgs& e) {
  const Cusolver& lib = libraries_->solver();
  const DType real = real_of(e.dtype);
  const auto type = data_type(e.dtype), real_type = data_type(real);
  const std::int64_t n = e.n;
  const StoragePtr vectors = scratch(bytes(n * n, e.dtype));
  Verdict verdict(*this, e.batch, stream());
  WorkRoom work;
  check(lib.cusolverDnXsyevd_bufferSize(lib.handle, lib.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n,
                                        type, vectors->data, n, real_type, e.values, type, &work.device_bytes,
                                        &work.host_bytes),
        "eigh");
  work.make(*this);
  flag_not_finite(e.dtype, e.a, e.batch * n * n, verdict.not_finite(), stream());
  if (!verdict.good()) return false;  // nobody promises that the iteration comes back from NaN
  for (std::int64_t i = 0; i < e.batch; ++i) {
    copy_bytes(vectors->data, matrix(e.a, i * n * n, e.dtype), bytes(n * n, e.dtype));
    check(lib.cusolverDnXsyevd(lib.handle, lib.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, type,
                               vectors->data, n, real_type, matrix(e.values, i * n, real), type, work.device->data,
                               work.device_bytes, work.host.data(), work.host_bytes, verdict.next()),
          "eigh");
    take_vectors(e.dtype, vectors->data, n, matrix(e.vectors, i * n * n, e.dtype), e.largest + i * n, stream());
  }
  launched("eigh", {e.batch, n});
  return verdict.good();
}

}  // namespace reel::cuda
