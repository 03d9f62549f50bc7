// The kernels of linear algebra, as in engine/device/kernels.h. Their arrays(f) calls f(pointer, dtype, elements), so
// that a backend can let the CPU do the work (backends/shared/cpu_fallback.h).
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "engine/device/kernels.h"

namespace reel {

// Spectra. The kernels throw when a matrix is not finite. Vectors are columns of unit length. For each column,
// `largest` is the index of its component of largest modulus (the first among those equal up to sqrt(epsilon)), and the
// column's phase is chosen so that this component is real and positive.

struct EigArgs {  // a [n, n] x = value x; values and vectors are complex
  DType dtype;    // of a
  std::int64_t batch, n;
  const void* a;
  void *values, *vectors;
  std::int32_t* largest;
  bool* independent;  // false: the vectors are no basis, their condition number is above 1 / (10 n epsilon)
  void arrays(auto&& f) {
    f(a, dtype, batch * n * n), f(values, complex_of(dtype), batch * n), f(vectors, complex_of(dtype), batch * n * n);
    f(largest, DType::i32, batch * n), f(independent, DType::boolean, batch);
  }
};
struct EighArgs {  // the same for Hermitian a; reads its lower triangle; values are real and ascend
  DType dtype;     // of a and vectors
  std::int64_t batch, n;
  const void* a;
  void *values, *vectors;
  std::int32_t* largest;
  void arrays(auto&& f) {
    f(a, dtype, batch * n * n), f(values, real_of(dtype), batch * n), f(vectors, dtype, batch * n * n);
    f(largest, DType::i32, batch * n);
  }
};
struct SvdArgs {  // a [m, n] = u [m, k] diag(s) vh [k, n], k = min(m, n), s real and descending; `largest` is for u
  DType dtype;    // of a, u and vh
  std::int64_t batch, m, n;
  const void* a;
  void *u, *s, *vh;
  std::int32_t* largest;
  void arrays(auto&& f) {
    const std::int64_t k = m < n ? m : n;
    f(a, dtype, batch * m * n), f(u, dtype, batch * m * k), f(s, real_of(dtype), batch * k);
    f(vh, dtype, batch * k * n), f(largest, DType::i32, batch * k);
  }
};
struct SchurArgs {  // a [n, n] = q t q^H, q unitary, t upper triangular
  DType dtype;      // complex
  std::int64_t batch, n;
  const void* a;
  void *q, *t;
  void arrays(auto&& f) { f(a, dtype, batch * n * n), f(q, dtype, batch * n * n), f(t, dtype, batch * n * n); }
};
/// What warm_spectral_radius carries over from call to call for a matrix that changes little, such as a weight in
/// training: columns that nearly span the eigenvectors of its largest eigenvalues. They make it faster, and the result
/// does not depend on them.
struct LeadingColumns {
  static constexpr std::int64_t most = 32;  // columns
  static constexpr int calls = 64;          // until all eigenvalues are computed again
  std::mutex busy;
  std::int64_t rows = 0;          // n
  std::vector<double> basis;      // [n, k], column-major, orthonormal
  int left = 0;                   // calls for which the basis may be used
  int pause = 0, next_pause = 1;  // calls without a try, now and after the next failure
};
struct SpectralRadiusArgs {  // value: the eigenvalue of largest modulus (of a conjugate pair the one above the axis);
                             // radius: its modulus; a right = value right, left^H a = value left^H, left^H right = 1
  DType dtype;               // of a; radius is real, the others complex
  std::int64_t batch, n;
  const void* a;
  void *radius, *value, *right, *left;  // right and left are 0 where the eigenvalue is not simple
  LeadingColumns* leading = nullptr;    // on the host, for one f64 matrix; null: computes all eigenvalues
  void arrays(auto&& f) {
    f(a, dtype, batch * n * n), f(radius, real_of(dtype), batch), f(value, complex_of(dtype), batch);
    f(right, complex_of(dtype), batch * n), f(left, complex_of(dtype), batch * n);
  }
};
/// The warning of `multiple` matrices whose eigenvalue is not simple, which the kernel returns; empty for none.
inline std::string warning_of(const SpectralRadiusArgs& a, std::int64_t multiple) {
  if (multiple == 0) return "";
  return "the largest eigenvalue of " + std::to_string(multiple) + " of " + std::to_string(a.batch) +
         " matrices is not simple (0, as large as another, or defective): the radius is taken as constant, with "
         "gradient 0";
}

// Solving. A stride of 0 shares one matrix among the whole batch. These kernels throw RuleError when elements are not
// finite or the result would not be.

/// How many elements a batch of operands of n elements each spans.
constexpr std::int64_t spanned(std::int64_t batch, std::int64_t stride, std::int64_t n) {
  return batch == 0 ? 0 : (batch - 1) * stride + n;
}

/// arrays() of linear equations a[i] x[i] = b[i]: [n, n], [n, k] -> [n, k].
template <class Args>
void arrays_of_equations(Args& s, auto&& f) {
  f(s.a, s.dtype, spanned(s.batch, s.stride_a, s.n * s.n)), f(s.b, s.dtype, spanned(s.batch, s.stride_b, s.n * s.k));
  f(s.x, s.dtype, s.batch * s.n * s.k);
}

struct SolveArgs {  // x[i] = a[i]^-1 b[i], or (a[i]^H)^-1 b[i]: [n, n] [n, k] -> [n, k]; a singular a is an error
  DType dtype;
  bool adjoint;
  std::int64_t n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* x;
  void arrays(auto&& f) { arrays_of_equations(*this, f); }
};
struct TriangularSolveArgs {  // the same for triangular a; the other triangle is not read
  DType dtype;
  bool upper, unit_diagonal, adjoint;
  double tolerance;  // throws when a diagonal element is 0, or at most this times the largest one
  std::int64_t n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* x;
  void arrays(auto&& f) { arrays_of_equations(*this, f); }
};
struct SylvesterArgs {  // a[i] x[i] + x[i] b[i] = c[i]: [m, m], [n, n], [m, n]; a and -b with a common eigenvalue are
                        // an error
  DType dtype;
  std::int64_t m, n;
  std::int64_t batch, stride_a, stride_b, stride_c;
  const void *a, *b, *c;
  void* x;
  void arrays(auto&& f) {
    f(a, dtype, spanned(batch, stride_a, m * m)), f(b, dtype, spanned(batch, stride_b, n * n));
    f(c, dtype, spanned(batch, stride_c, m * n)), f(x, dtype, batch * m * n);
  }
};
struct LuArgs {  // a[i] = p[i] l[i] u[i]: [m, n] -> [m, m] permutation, [m, r] unit lower, [r, n] upper, r = min(m, n)
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void *p, *l, *u;
  void arrays(auto&& f) {
    const std::int64_t k = m < n ? m : n;
    f(a, dtype, batch * m * n), f(p, dtype, batch * m * m), f(l, dtype, batch * m * k), f(u, dtype, batch * k * n);
  }
};
struct CholeskyArgs {  // a[i] = l[i] l[i]^H, l lower; reads the lower triangle; not positive definite is an error
  DType dtype;
  std::int64_t n, batch;
  const void* a;
  void* l;
  void arrays(auto&& f) { f(a, dtype, batch * n * n), f(l, dtype, batch * n * n); }
};
struct QrArgs {  // a[i] = q[i] r[i]: [m, n] -> [m, r], [r, n], r = min(m, n); the diagonal of r is real and >= 0
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void *q, *r;
  void arrays(auto&& f) {
    const std::int64_t k = m < n ? m : n;
    f(a, dtype, batch * m * n), f(q, dtype, batch * m * k), f(r, dtype, batch * k * n);
  }
};
struct DeterminantArgs {  // det[i] = sign[i] exp(log_abs[i]); null results are not computed
  DType dtype;
  std::int64_t n, batch;
  const void* a;
  void *det, *sign;
  void* log_abs;  // real
  void arrays(auto&& f) {
    f(a, dtype, batch * n * n), f(det, dtype, batch), f(sign, dtype, batch), f(log_abs, real_of(dtype), batch);
  }
};
struct PinvArgs {  // out[i] = a[i]^+: [m, n] -> [n, m]; singular values up to rcond times the largest count as 0
  DType dtype;
  std::int64_t m, n, batch;
  double rcond;
  const void* a;
  void* out;
  void arrays(auto&& f) { f(a, dtype, batch * m * n), f(out, dtype, batch * m * n); }
};
struct PolarFactorArgs {  // a[i] = out[i] h, h positive definite: [m, n], m >= n -> [m, n]; a rank-deficient a is an
                          // error
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void* out;
  void arrays(auto&& f) { f(a, dtype, batch * m * n), f(out, dtype, batch * m * n); }
};

}  // namespace reel
