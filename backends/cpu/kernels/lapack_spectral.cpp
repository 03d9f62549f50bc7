// Eigenvalues, singular values and Schur forms by LAPACK, for one matrix of the batch after another.
#include "backends/cpu/kernels/lapack_spectral.h"
#include "backends/cpu/cpu.h"
#include "backends/shared/gauge.h"

namespace reel::cpu {

namespace {

/// Unpacks eigenvectors from LAPACK's real packing: columns x, y for the conjugate pair x + iy, x - iy.
template <class R>
void unpack_pairs(std::int64_t n, const std::vector<R>& imaginary, const std::vector<R>& packed, std::complex<R>* out) {
  for (std::int64_t j = 0; j < n; ++j) {
    const bool pair = imaginary[static_cast<std::size_t>(j)] != 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const R* x = packed.data() + i * n + j;
      out[i * n + j] = {x[0], pair ? x[1] : 0};
      if (pair) out[i * n + j + 1] = {x[0], -x[1]};
    }
    if (pair) ++j;
  }
}

/// Eigenvalues and right eigenvectors of one matrix, each of unit length.
template <class T>
void eigen(std::int64_t n, const T* matrix, Complex<T>* values, Complex<T>* right) {
  std::vector<T> a = copy_of(matrix, n * n);
  const auto size = narrow(n);
  const auto geev = REEL_LAPACK(geev);
  lapack_int info;
  if constexpr (is_complex_type<T>) {
    info = geev(layout, 'N', 'V', size, a.data(), size, values, nullptr, size, right, size);
  } else {
    std::vector<T> re = room<T>(n), im = room<T>(n), packed = room<T>(n * n);
    info = geev(layout, 'N', 'V', size, a.data(), size, re.data(), im.data(), nullptr, size, packed.data(), size);
    for (std::int64_t j = 0; j < n; ++j) values[j] = {re[count(j)], im[count(j)]};
    unpack_pairs(n, im, packed, right);
  }
  check_info(info, "geev", n, n);
  check_overflow(values, n, "eigenvalues", n, n);
}

/// The reciprocal condition number of a complex matrix.
template <class R>
R reciprocal_condition(std::int64_t n, const std::complex<R>* matrix) {
  std::vector<std::complex<R>> a = copy_of(matrix, n * n);
  std::vector<lapack_int> pivots = room<lapack_int>(n);
  const auto size = narrow(n);
  R result = 0;
  const auto run = [&](auto lange, auto getrf, auto gecon) {
    const R norm = lange(layout, '1', size, size, a.data(), size);
    if (getrf(layout, size, size, a.data(), size, pivots.data()) == 0)
      check_info(gecon(layout, '1', size, a.data(), size, norm, &result), "gecon", n, n);
  };
  if constexpr (std::is_same_v<R, float>)
    run(LAPACKE_clange, LAPACKE_cgetrf, LAPACKE_cgecon);
  else
    run(LAPACKE_zlange, LAPACKE_zgetrf, LAPACKE_zgecon);
  return result;
}

}  // namespace

std::int64_t Cpu::eig(const EigArgs& args) {
  std::int64_t dependent = 0;
  on_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = args.n;
    check_finite<T>(args.a, args.batch, n, n);
    for (std::int64_t b = 0; b < args.batch && n > 0; ++b) {
      Complex<T>* vectors = static_cast<Complex<T>*>(args.vectors) + b * n * n;
      eigen(n, static_cast<const T*>(args.a) + b * n * n, static_cast<Complex<T>*>(args.values) + b * n, vectors);
      for (std::int64_t j = 0; j < n; ++j) fix_gauge(vectors + j, n, n, args.largest + b * n + j);
      // Not 10 n epsilon: eigenvectors of random matrices [400, 400] in f32 would not count as a basis.
      args.independent[b] = reciprocal_condition(n, vectors) > 10 * epsilon<T>;
      dependent += args.independent[b] ? 0 : 1;
    }
  });
  return dependent;
}

void Cpu::eigh(const EighArgs& args) {
  on_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const auto heevd = fitting<T>(LAPACKE_ssyevd, LAPACKE_dsyevd, LAPACKE_cheevd, LAPACKE_zheevd);
    const std::int64_t n = args.n;
    const auto size = narrow(n);
    check_finite<T>(args.a, args.batch, n, n);
    for (std::int64_t b = 0; b < args.batch && n > 0; ++b) {
      const T* a = static_cast<const T*>(args.a) + b * n * n;
      T* vectors = static_cast<T*>(args.vectors) + b * n * n;
      std::copy(a, a + n * n, vectors);
      Real<T>* values = static_cast<Real<T>*>(args.values) + b * n;
      check_info(heevd(layout, 'V', 'L', size, vectors, size, values), "heevd", n, n);
      check_overflow(values, n, "eigenvalues", n, n);
      for (std::int64_t j = 0; j < n; ++j) fix_gauge(vectors + j, n, n, args.largest + b * n + j);
    }
  });
}

void Cpu::svd(const SvdArgs& args) {
  on_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const auto gesdd = REEL_LAPACK(gesdd);
    const std::int64_t m = args.m, n = args.n, k = std::min(m, n);
    const auto rows = narrow(m), columns = narrow(n);
    check_finite<T>(args.a, args.batch, m, n);
    for (std::int64_t b = 0; b < args.batch && k > 0; ++b) {
      std::vector<T> a = copy_of(static_cast<const T*>(args.a) + b * m * n, m * n);
      T *u = static_cast<T*>(args.u) + b * m * k, *vh = static_cast<T*>(args.vh) + b * k * n;
      check_info(gesdd(layout, 'S', rows, columns, a.data(), columns, static_cast<Real<T>*>(args.s) + b * k, u,
                       std::min(rows, columns), vh, columns),
                 "gesdd", m, n);
      check_overflow(static_cast<const Real<T>*>(args.s) + b * k, k, "singular values", m, n);
      for (std::int64_t j = 0; j < k; ++j) {
        const T turn = fix_gauge(u + j, m, k, args.largest + b * k + j);
        for (std::int64_t i = 0; i < n; ++i) vh[j * n + i] *= turn;
      }
    }
  });
}

void Cpu::schur(const SchurArgs& args) {
  const auto run = [&]<class T>(std::type_identity<T>, auto gees) {
    const std::int64_t n = args.n;
    const auto size = narrow(n);
    check_finite<T>(args.a, args.batch, n, n);
    std::vector<T> values = room<T>(n);
    for (std::int64_t b = 0; b < args.batch && n > 0; ++b) {
      const T* a = static_cast<const T*>(args.a) + b * n * n;
      T* t = static_cast<T*>(args.t) + b * n * n;
      std::copy(a, a + n * n, t);
      lapack_int selected = 0;
      check_info(gees(layout, 'V', 'N', nullptr, size, t, size, &selected, values.data(),
                      static_cast<T*>(args.q) + b * n * n, size),
                 "gees", n, n);
      check_overflow(t, n * n, "elements of the Schur form", n, n);
    }
  };
  if (args.dtype == DType::c64)
    run(std::type_identity<std::complex<float>>{}, LAPACKE_cgees);
  else
    run(std::type_identity<std::complex<double>>{}, LAPACKE_zgees);
}

}  // namespace reel::cpu
