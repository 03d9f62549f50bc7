// solve and triangular_solve by cuSOLVER and cuBLAS.
#include "backends/cuda/linalg/matrices.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

namespace {

/// The elements that a batch of matrices spans: n each, `stride` apart.
std::int64_t all(std::int64_t batch, std::int64_t stride, std::int64_t n) { return (batch - 1) * stride + n; }

/// x = x op(a)^-1, for a triangle of a [n, n] and x [m, n], both column-major.
cublasStatus_t solve_from_right(const Cublas& lib, DType dtype, cublasFillMode_t triangle, cublasOperation_t op,
                                cublasDiagType_t diagonal, std::int64_t m, std::int64_t n, const void* a, void* x) {
  const auto call = [&]<class T>(auto trsm, T one) {
    return trsm(lib.handle, CUBLAS_SIDE_RIGHT, triangle, op, diagonal, m, n, &one, static_cast<const T*>(a), n,
                static_cast<T*>(x), m);
  };
  switch (dtype) {
    case DType::f32:
      return call(lib.cublasStrsm_v2_64, 1.0F);
    case DType::f64:
      return call(lib.cublasDtrsm_v2_64, 1.0);
    case DType::c64:
      return call(lib.cublasCtrsm_v2_64, cuComplex{1, 0});
    case DType::c128:
      return call(lib.cublasZtrsm_v2_64, cuDoubleComplex{1, 0});
    case DType::i32:
    case DType::boolean:
      break;
  }
  throw std::logic_error("reel: internal: matrices of integers");
}

/// Calls f with cuBLAS's batched getrf and getrs for a dtype, and its element type.
template <class F>
void with_batched(const Cublas& lib, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(lib.cublasSgetrfBatched, lib.cublasSgetrsBatched, float{});
    case DType::f64:
      return f(lib.cublasDgetrfBatched, lib.cublasDgetrsBatched, double{});
    case DType::c64:
      return f(lib.cublasCgetrfBatched, lib.cublasCgetrsBatched, cuComplex{});
    case DType::c128:
      return f(lib.cublasZgetrfBatched, lib.cublasZgetrsBatched, cuDoubleComplex{});
    case DType::i32:
    case DType::boolean:
      break;
  }
  throw std::logic_error("reel: internal: matrices of integers");
}

/// Copies `batch` row-major matrices [rows, columns], `stride` apart, to packed column-major ones; or column-major
/// [columns, rows] to row-major.
void transpose_all(const Matrices& at, DType dtype, std::int64_t batch, std::int64_t stride, std::int64_t rows,
                   std::int64_t columns, const void* from, void* to) {
  StridedLoop<2> loop;
  loop.push(batch, {stride, rows * columns});
  loop.push(columns, {1, rows});
  loop.push(rows, {columns, 1});
  at.device.copy({dtype, loop, from, to});
}

/// Solves by cuBLAS's batched LU. A matrix that all right sides share is factored once, and they are its columns.
bool solve_batched(const Matrices& at, const SolveArgs& s) {
  const bool shared = s.stride_a == 0;
  const std::int64_t n = s.n, count = shared ? 1 : s.batch, columns = shared ? s.k * s.batch : s.k;
  const StoragePtr lu = room(at, count * n * n, s.dtype), turned = room(at, count * n * columns, s.dtype),
                   swaps = room(at, count * n, DType::i32);
  Verdict verdict(at, count);
  at.kernels.find_not_finite(s.dtype, s.a, all(s.batch, s.stride_a, n * n), verdict.flag());
  at.kernels.find_not_finite(s.dtype, s.b, all(s.batch, s.stride_b, n * s.k), verdict.flag());
  StridedLoop<2> matrices;
  matrices.push(count, {s.stride_a, n * n});
  matrices.push(n * n, {1, 1});
  at.device.copy({s.dtype, matrices, s.a, lu->data});
  transpose_all(at, s.dtype, s.batch, s.stride_b, n, s.k, s.b, turned->data);
  // cuBLAS takes arrays of pointers in device memory.
  std::vector<std::byte*> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(element(lu->data, i * n * n, s.dtype));
  for (std::int64_t i = 0; i < count; ++i) places.push_back(element(turned->data, i * n * columns, s.dtype));
  const StoragePtr pointers(at.device.allocate(places.size() * sizeof places[0]));
  at.device.write(pointers->data, places.data(), places.size() * sizeof places[0]);
  // It sees a' = P L U: a x = b needs the transposed solve, a^H x = b the plain solve of the conjugated problem.
  const auto conj = [&] {
    if (s.adjoint && is_complex(s.dtype))
      at.device.map({index_of<Conj, UnaryFunctors>, Conj{}, s.dtype, count * n * columns, turned->data, turned->data});
  };
  conj();
  with_batched(at.blas, s.dtype, [&]<class T>(auto getrf, auto getrs, T) {
    auto* const first = reinterpret_cast<T**>(pointers->data);
    auto* const pivots = reinterpret_cast<int*>(swaps->data);
    const int rows = static_cast<int>(n), batch = static_cast<int>(count);
    check(getrf(at.blas.handle, rows, first, rows, pivots, verdict.next(batch), batch), "getrfBatched");
    at.kernels.find_not_finite(s.dtype, lu->data, count * n * n, verdict.flag());  // a solution could hide it
    int invalid = 0;
    check(getrs(at.blas.handle, s.adjoint ? CUBLAS_OP_N : CUBLAS_OP_T, rows, static_cast<int>(columns), first, rows,
                pivots, first + count, rows, &invalid, batch),
          "getrsBatched");
  });
  conj();
  transpose_all(at, s.dtype, s.batch, n * s.k, s.k, n, turned->data, s.x);
  at.kernels.find_not_finite(s.dtype, s.x, s.batch * n * s.k, verdict.flag());
  return verdict.good();
}

}  // namespace

bool cusolver_solve(const Matrices& at, const SolveArgs& s) {
  if (solves_batched(s)) return solve_batched(at, s);
  const Cusolver& lib = at.solver;
  const std::int64_t n = s.n, k = s.k;
  const auto type = data_type(s.dtype);
  const StoragePtr lu = room(at, n * n, s.dtype), turned = room(at, n * k, s.dtype);
  const Swaps swaps(at, n);
  Verdict verdict(at, 2 * s.batch);
  WorkRoom work = room_for_factors(at, s.dtype, n, n, lu->data);
  // cuSOLVER sees a' = P L U: a x = b needs the transposed solve, a^H x = b the plain solve of the conjugated problem.
  const bool conjugate = s.adjoint && is_complex(s.dtype);
  const auto conj = [&] {
    if (conjugate) at.device.map({index_of<Conj, UnaryFunctors>, Conj{}, s.dtype, n * k, turned->data, turned->data});
  };
  at.kernels.find_not_finite(s.dtype, s.a, all(s.batch, s.stride_a, n * n), verdict.flag());
  at.kernels.find_not_finite(s.dtype, s.b, all(s.batch, s.stride_b, n * k), verdict.flag());
  for (std::int64_t i = 0; i < s.batch; ++i) {
    if (i == 0 || s.stride_a != 0) {
      copy(at, s.dtype, n * n, element(s.a, i * s.stride_a, s.dtype), lu->data);
      factor(at, s.dtype, n, n, lu->data, swaps.data(), work, verdict.next());
      at.kernels.find_not_finite(s.dtype, lu->data, n * n, verdict.flag());
    }
    transpose(at, s.dtype, n, k, element(s.b, i * s.stride_b, s.dtype), turned->data);
    conj();
    check(lib.cusolverDnXgetrs(lib.handle, lib.params, s.adjoint ? CUBLAS_OP_N : CUBLAS_OP_T, n, k, type, lu->data, n,
                               swaps.data(), type, turned->data, n, verdict.next()),
          "getrs");
    conj();
    transpose(at, s.dtype, k, n, turned->data, element(s.x, i * n * k, s.dtype));
  }
  at.kernels.find_not_finite(s.dtype, s.x, s.batch * n * k, verdict.flag());
  return verdict.good();
}

bool cusolver_triangular_solve(const Matrices& at, const TriangularSolveArgs& s) {
  const std::int64_t n = s.n, k = s.k;
  Verdict verdict(at, 0);
  at.kernels.find_bad_triangle(s, s.stride_a == 0 ? 1 : s.batch, verdict.flag());
  at.kernels.find_not_finite(s.dtype, s.b, all(s.batch, s.stride_b, n * k), verdict.flag());
  StridedLoop<2> loop;
  loop.push(s.batch, {s.stride_b, n * k});
  loop.push(n * k, {1, 1});
  at.device.copy({s.dtype, loop, s.b, s.x});
  // Seen transposed, a x = b is x' a' = b', and a^H x = b is x' a'^H = b'.
  for (std::int64_t i = 0; i < s.batch; ++i)
    check(solve_from_right(at.blas, s.dtype, s.upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER,
                           s.adjoint ? CUBLAS_OP_C : CUBLAS_OP_N,
                           s.unit_diagonal ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, k, n,
                           element(s.a, i * s.stride_a, s.dtype), element(s.x, i * n * k, s.dtype)),
          "trsm");
  at.kernels.find_not_finite(s.dtype, s.x, s.batch * n * k, verdict.flag());
  return verdict.good();
}

}  // namespace reel::cuda
