// Eigenvalues, singular values and Schur forms by LAPACK, for one matrix of the batch after another.
#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <cmath>
#include <limits>

#include "backends/cpu/cpu.h"
#include "backends/shared/gauge.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
using Complex = std::complex<Real<T>>;

template <class T>
constexpr Real<T> epsilon = std::numeric_limits<Real<T>>::epsilon();
/// The relative difference below which numbers are equal up to rounding, for matrices [n, n].
template <class T>
Real<T> rounding(std::int64_t n) {
  return static_cast<Real<T>>(10 * n) * epsilon<T>;
}

constexpr int layout = LAPACK_ROW_MAJOR;

/// A copy of the elements of one matrix or vector, and an empty buffer for as many.
template <class T>
std::vector<T> copy_of(const T* a, std::int64_t count) {
  return {a, a + count};
}
template <class T>
std::vector<T> room(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

/// Throws if an element is not finite: LAPACK would return garbage, or never return.
template <class T>
void check_finite(const void* matrices, std::int64_t batch, std::int64_t m, std::int64_t n) {
  const T* a = static_cast<const T*>(matrices);
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    const Complex<T> x(a[i]);
    if (std::isfinite(x.real()) && std::isfinite(x.imag())) continue;
    rule_error("all elements must be finite: ({}, {}) of matrix {} is {}{}", i / n % m, i % n, i / (m * n), x.real(),
               is_complex_type<T> ? fmt::format("{:+}i", x.imag()) : "");
  }
}

void check_info(lapack_int info, const char* routine, std::int64_t m, std::int64_t n) {
  if (info > 0) rule_error("LAPACK's {} did not converge on a matrix ({}, {})", routine, m, n);
  if (info < 0) rule_error("LAPACK's {} failed with info {} on a matrix ({}, {})", routine, info, m, n);
}

/// Calls f for floating-point and complex dtypes.
template <class F>
void for_field(DType dtype, F&& f) {
  dispatch(dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>)
      f(type);
    else
      rule_error("{} elements are not supported", name_of(dtype));
  });
}

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

/// Eigenvalues and right eigenvectors of one matrix, and left ones if `left` is given; each of unit length.
template <class T>
void eigen(std::int64_t n, const T* matrix, Complex<T>* values, Complex<T>* right, Complex<T>* left = nullptr) {
  std::vector<T> a = copy_of(matrix, n * n);
  const auto size = static_cast<lapack_int>(n);
  const char job_left = left ? 'V' : 'N';
  lapack_int info;
  if constexpr (is_complex_type<T>) {
    constexpr auto geev = [] {
      if constexpr (std::is_same_v<T, std::complex<float>>)
        return LAPACKE_cgeev;
      else
        return LAPACKE_zgeev;
    }();
    info = geev(layout, job_left, 'V', size, a.data(), size, values, left, size, right, size);
  } else {
    constexpr auto geev = [] {
      if constexpr (std::is_same_v<T, float>)
        return LAPACKE_sgeev;
      else
        return LAPACKE_dgeev;
    }();
    std::vector<T> re = room<T>(n), im = room<T>(n), packed_right = room<T>(n * n),
                   packed_left = room<T>(left ? n * n : 0);
    info = geev(layout, job_left, 'V', size, a.data(), size, re.data(), im.data(), packed_left.data(), size,
                packed_right.data(), size);
    for (std::int64_t j = 0; j < n; ++j) values[j] = {re[static_cast<std::size_t>(j)], im[static_cast<std::size_t>(j)]};
    unpack_pairs(n, im, packed_right, right);
    if (left) unpack_pairs(n, im, packed_left, left);
  }
  check_info(info, "geev", n, n);
}

/// The reciprocal condition number of a complex matrix.
template <class R>
R reciprocal_condition(std::int64_t n, const std::complex<R>* matrix) {
  std::vector<std::complex<R>> a = copy_of(matrix, n * n);
  std::vector<lapack_int> pivots = room<lapack_int>(n);
  const auto size = static_cast<lapack_int>(n);
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

/// Is there a single eigenvalue of largest modulus (or a conjugate pair, for a real matrix), neither 0 nor defective?
template <class T>
bool is_simple(std::int64_t n, std::int64_t largest, const std::vector<Complex<T>>& values, Complex<T> product) {
  const auto at = [&](std::int64_t j) { return values[static_cast<std::size_t>(j)]; };
  const Real<T> radius = std::abs(at(largest));
  const bool pair = !is_complex_type<T> && at(largest).imag() != 0;  // the conjugate comes next
  Real<T> next = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    if (j != largest && !(pair && j == largest + 1)) next = std::max(next, std::abs(at(j)));
  }
  return radius > 0 && next < radius * (1 - rounding<T>(n)) && std::abs(product) > 10 * std::sqrt(epsilon<T>);
}

}  // namespace

std::int64_t Cpu::eig(const EigArgs& args) {
  std::int64_t dependent = 0;
  for_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = args.n;
    check_finite<T>(args.a, args.batch, n, n);
    for (std::int64_t b = 0; b < args.batch && n > 0; ++b) {
      Complex<T>* vectors = static_cast<Complex<T>*>(args.vectors) + b * n * n;
      eigen(n, static_cast<const T*>(args.a) + b * n * n, static_cast<Complex<T>*>(args.values) + b * n, vectors);
      for (std::int64_t j = 0; j < n; ++j) fix_gauge(vectors + j, n, n, args.largest + b * n + j);
      args.independent[b] = reciprocal_condition(n, vectors) > rounding<T>(n);
      dependent += args.independent[b] ? 0 : 1;
    }
  });
  return dependent;
}

void Cpu::eigh(const EighArgs& args) {
  for_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    constexpr auto heevd = [] {
      if constexpr (std::is_same_v<T, float>)
        return LAPACKE_ssyevd;
      else if constexpr (std::is_same_v<T, double>)
        return LAPACKE_dsyevd;
      else if constexpr (std::is_same_v<T, std::complex<float>>)
        return LAPACKE_cheevd;
      else
        return LAPACKE_zheevd;
    }();
    const std::int64_t n = args.n;
    const auto size = static_cast<lapack_int>(n);
    check_finite<T>(args.a, args.batch, n, n);
    for (std::int64_t b = 0; b < args.batch && n > 0; ++b) {
      const T* a = static_cast<const T*>(args.a) + b * n * n;
      T* vectors = static_cast<T*>(args.vectors) + b * n * n;
      std::copy(a, a + n * n, vectors);
      check_info(heevd(layout, 'V', 'L', size, vectors, size, static_cast<Real<T>*>(args.values) + b * n), "heevd", n,
                 n);
      for (std::int64_t j = 0; j < n; ++j) fix_gauge(vectors + j, n, n, args.largest + b * n + j);
    }
  });
}

void Cpu::svd(const SvdArgs& args) {
  for_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    constexpr auto gesdd = [] {
      if constexpr (std::is_same_v<T, float>)
        return LAPACKE_sgesdd;
      else if constexpr (std::is_same_v<T, double>)
        return LAPACKE_dgesdd;
      else if constexpr (std::is_same_v<T, std::complex<float>>)
        return LAPACKE_cgesdd;
      else
        return LAPACKE_zgesdd;
    }();
    const std::int64_t m = args.m, n = args.n, k = std::min(m, n);
    const auto rows = static_cast<lapack_int>(m), columns = static_cast<lapack_int>(n);
    check_finite<T>(args.a, args.batch, m, n);
    for (std::int64_t b = 0; b < args.batch && k > 0; ++b) {
      std::vector<T> a = copy_of(static_cast<const T*>(args.a) + b * m * n, m * n);
      T *u = static_cast<T*>(args.u) + b * m * k, *vh = static_cast<T*>(args.vh) + b * k * n;
      check_info(gesdd(layout, 'S', rows, columns, a.data(), columns, static_cast<Real<T>*>(args.s) + b * k, u,
                       std::min(rows, columns), vh, columns),
                 "gesdd", m, n);
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
    const auto size = static_cast<lapack_int>(n);
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
    }
  };
  if (args.dtype == DType::c64)
    run(std::type_identity<std::complex<float>>{}, LAPACKE_cgees);
  else
    run(std::type_identity<std::complex<double>>{}, LAPACKE_zgees);
}

std::int64_t Cpu::spectral_radius(const SpectralRadiusArgs& args) {
  std::int64_t multiple = 0;
  for_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = args.n;
    check_finite<T>(args.a, args.batch, n, n);
    std::vector<Complex<T>> values = room<Complex<T>>(n), rights = room<Complex<T>>(n * n), lefts = rights;
    for (std::int64_t b = 0; b < args.batch; ++b) {
      Complex<T>*right = static_cast<Complex<T>*>(args.right) + b * n,
      *left = static_cast<Complex<T>*>(args.left) + b * n;
      Complex<T> value = 0, product = 0;  // an empty matrix has radius 0
      if (n > 0) eigen(n, static_cast<const T*>(args.a) + b * n * n, values.data(), rights.data(), lefts.data());
      std::int64_t largest = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        if (std::abs(values[static_cast<std::size_t>(j)]) <= std::abs(value)) continue;
        largest = j;
        value = values[static_cast<std::size_t>(j)];
      }
      for (std::int64_t i = 0; i < n; ++i) {
        right[i] = rights[static_cast<std::size_t>(i * n + largest)];
        left[i] = lefts[static_cast<std::size_t>(i * n + largest)];
        product += std::conj(left[i]) * right[i];
      }
      static_cast<Real<T>*>(args.radius)[b] = std::abs(value);
      static_cast<Complex<T>*>(args.value)[b] = value;
      if (n == 0) continue;
      if (is_simple<T>(n, largest, values, product)) {
        for (std::int64_t i = 0; i < n; ++i) left[i] /= std::conj(product);
      } else {
        std::fill_n(right, n, Complex<T>(0));
        std::fill_n(left, n, Complex<T>(0));
        ++multiple;
      }
    }
  });
  return multiple;
}

}  // namespace reel::cpu
