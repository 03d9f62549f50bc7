// eig by cuSOLVER, whose geev was introduced with CUDA 12.6.
#include <algorithm>
#include <memory>

#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

#if CUSOLVER_VERSION >= REEL_CUSOLVER_GEEV

namespace {

/// The identity matrix [n, n].
void identity(const Matrices& at, DType dtype, std::int64_t n, void* out) {
  const StoragePtr one = room(at, 1, dtype);
  at.device.fill({dtype, 1, 1, one->data});
  at.device.fill({dtype, n * n, 0, out});
  StridedLoop<2> diagonal;
  diagonal.push(n, {0, n + 1});
  at.device.copy({dtype, diagonal, one->data, out});
}

/// Checks whether matrices are well-conditioned, so that their columns form a basis.
class Bases {
 public:
  Bases(const Matrices& at, DType dtype, std::int64_t n)
      : at_(at),
        dtype_(dtype),
        n_(n),
        lu_(room(at, n * n, dtype)),
        inverse_(room(at, n * n, dtype)),
        sums_(room(at, 2 * n, DType::f64)),
        ignored_(room(at, 2, DType::i32)),
        swaps_(at, n),
        work_(room_for_factors(at, dtype, n, n, lu_->data)) {}

  /// Singular matrices need no special case: the inverse then has infinities or NaN.
  void look_at(const void* x, bool* independent) {
    const Cusolver& lib = at_.solver;
    const auto type = data_type(dtype_);
    int* const info = reinterpret_cast<int*>(ignored_->data);
    copy(at_, dtype_, n_ * n_, x, lu_->data);
    factor(at_, dtype_, n_, n_, lu_->data, swaps_.data(), work_, info);
    identity(at_, dtype_, n_, inverse_->data);  // becomes the inverse of the transpose, read as that of x
    check(lib.cusolverDnXgetrs(lib.handle, lib.params, CUBLAS_OP_N, n_, n_, type, lu_->data, n_, swaps_.data(), type,
                               inverse_->data, n_, info + 1),
          "getrs");
    at_.kernels.compare_condition(dtype_, n_, x, inverse_->data, reinterpret_cast<double*>(sums_->data), independent);
  }

 private:
  const Matrices& at_;
  DType dtype_;
  std::int64_t n_;
  StoragePtr lu_, inverse_, sums_, ignored_;
  Swaps swaps_;
  WorkRoom work_;
};

}  // namespace

std::optional<std::int64_t> cusolver_eig(const Matrices& at, const EigArgs& a) {
  const Cusolver& lib = at.solver;
  if (!lib.cusolverDnXgeev) return std::nullopt;
  const std::int64_t n = a.n;
  const DType complex = complex_of(a.dtype);
  const auto type = data_type(a.dtype), complex_type = data_type(complex);
  if (!finite(at, a.dtype, a.a, a.batch * n * n)) return std::nullopt;
  const StoragePtr packed = room(at, n * n, a.dtype), right = room(at, n * n, a.dtype), values = room(at, n, complex);
  Verdict verdict(at, a.batch);
  WorkRoom work;
  // Eigenvectors of a real matrix are packed as reals, two columns for a conjugate pair; eigenvalues are always
  // complex.
  check(lib.cusolverDnXgeev_bufferSize(lib.handle, lib.params, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR, n,
                                       type, packed->data, n, complex_type, values->data, type, nullptr, n, type,
                                       right->data, n, type, &work.device_bytes, &work.host_bytes),
        "geev");
  work.make(at);
  Bases bases(at, complex, n);
  for (std::int64_t i = 0; i < a.batch; ++i) {
    std::byte* const vectors = element(a.vectors, i * n * n, complex);
    transpose(at, a.dtype, n, n, element(a.a, i * n * n, a.dtype), packed->data);
    check(lib.cusolverDnXgeev(lib.handle, lib.params, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR, n, type,
                              packed->data, n, complex_type, values->data, type, nullptr, n, type, right->data, n, type,
                              work.device->data, work.device_bytes, work.host.data(), work.host_bytes, verdict.next()),
          "geev");
    at.kernels.take_eigenvectors(a.dtype, n, values->data, right->data, element(a.values, i * n, complex), vectors,
                                 a.largest + i * n);
    bases.look_at(vectors, a.independent + i);
  }
  at.kernels.find_not_finite(complex, a.vectors, a.batch * n * n, verdict.flag());
  at.kernels.find_not_finite(complex, a.values, a.batch * n, verdict.flag());
  if (!verdict.good()) return std::nullopt;
  const auto independent = std::make_unique<bool[]>(static_cast<std::size_t>(a.batch));
  at.device.read(independent.get(), a.independent, static_cast<std::size_t>(a.batch));
  return std::count(independent.get(), independent.get() + a.batch, false);
}

#else

std::optional<std::int64_t> cusolver_eig(const Matrices&, const EigArgs&) { return std::nullopt; }

#endif

}  // namespace reel::cuda
