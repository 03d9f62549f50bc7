// The spectral radius: all eigenvalues, but eigenvectors of the largest one alone. All eigenvectors would take several
// times as long. For a large matrix that changes little, often not even all eigenvalues (lapack_leading.h).
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/lapack_leading.h"
#include "backends/cpu/kernels/lapack_spectral.h"

namespace reel::cpu {

namespace {

/// A = D Q H Q^H D^-1 of one matrix [n, n]: balanced by D, H upper Hessenberg. `packed` has H and the reflectors of Q.
template <class T>
struct Hessenberg {
  std::int64_t n;
  std::vector<T> packed, reflectors;
  std::vector<Real<T>> scale;
  lapack_int low = 1, high = 0;

  Hessenberg(std::int64_t size, const T* matrix)
      : n(size), packed(copy_of(matrix, size * size)), reflectors(room<T>(size)), scale(room<Real<T>>(size)) {
    const lapack_int rows = narrow(n);
    check_info(REEL_LAPACK(gebal)(layout, 'B', rows, packed.data(), rows, &low, &high, scale.data()), "gebal", n, n);
    check_info(REEL_LAPACK(gehrd)(layout, rows, low, high, packed.data(), rows, reflectors.data()), "gehrd", n, n);
    check_overflow(packed.data(), n * n, "elements of the Hessenberg form", n, n);
  }

  /// D Q v of `columns` vectors v [n, columns] of H, or D^-1 Q v of left ones.
  void back_transform(char side, std::vector<T>& v, lapack_int columns) const {
    check_overflow(v.data(), std::ssize(v), "steps to the eigenvectors", n, n);
    const lapack_int rows = narrow(n);
    const auto mhr = fitting<T>(LAPACKE_sormhr, LAPACKE_dormhr, LAPACKE_cunmhr, LAPACKE_zunmhr);
    check_info(
        mhr(layout, 'L', 'N', rows, columns, low, high, packed.data(), rows, reflectors.data(), v.data(), columns),
        "ormhr", n, n);
    check_info(REEL_LAPACK(gebak)(layout, 'B', side, rows, low, high, scale.data(), columns, v.data(), columns),
               "gebak", n, n);
  }
};

/// The eigenvalues of one matrix. A complex element's are in `re` alone, with `im` empty, as LAPACK has them.
template <class T>
struct Eigenvalues {
  std::vector<T> re, im;

  explicit Eigenvalues(const Hessenberg<T>& a) : re(room<T>(a.n)), im(room<T>(is_complex_type<T> ? 0 : a.n)) {
    std::vector<T> h = a.packed;
    const lapack_int n = narrow(a.n);
    const auto hseqr = REEL_LAPACK(hseqr);
    if constexpr (is_complex_type<T>)
      check_info(hseqr(layout, 'E', 'N', n, a.low, a.high, h.data(), n, re.data(), nullptr, n), "hseqr", a.n, a.n);
    else
      check_info(hseqr(layout, 'E', 'N', n, a.low, a.high, h.data(), n, re.data(), im.data(), nullptr, n), "hseqr", a.n,
                 a.n);
    check_overflow(re.data(), std::ssize(re), "eigenvalues", a.n, a.n);
    check_overflow(im.data(), std::ssize(im), "eigenvalues", a.n, a.n);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(re.size()); }
  Complex<T> operator[](std::int64_t j) const {
    if constexpr (is_complex_type<T>)
      return re[count(j)];
    else
      return {re[count(j)], im[count(j)]};
  }
  /// Of two conjugates LAPACK puts the one with positive imaginary part first.
  bool starts_pair(std::int64_t j) const { return !is_complex_type<T> && (*this)[j].imag() != 0; }
  /// The index of the first eigenvalue of largest modulus.
  std::int64_t largest() const {
    std::int64_t found = 0;
    for (std::int64_t j = 1; j < size(); ++j) {
      if (std::abs((*this)[j]) > std::abs((*this)[found])) found = j;
    }
    return found;
  }
};

/// Right and left eigenvectors [n] of eigenvalue j, each of unit length, by inverse iteration on H.
template <class T>
void eigenvectors(const Hessenberg<T>& a, const Eigenvalues<T>& values, std::int64_t j, Complex<T>* right,
                  Complex<T>* left) {
  const bool pair = values.starts_pair(j);
  const lapack_int n = narrow(a.n), columns = pair ? 2 : 1;
  std::vector<lapack_int> selected = room<lapack_int>(a.n), failed_left(2), failed_right(2);
  selected[count(j)] = 1;
  Eigenvalues<T> shifts = values;  // hsein moves close ones apart
  std::vector<T> u = room<T>(a.n * columns), v = u;
  lapack_int used = 0, info = 0;
  const auto hsein = REEL_LAPACK(hsein);
  if constexpr (is_complex_type<T>)
    info = hsein(layout, 'B', 'Q', 'N', selected.data(), n, a.packed.data(), n, shifts.re.data(), v.data(), columns,
                 u.data(), columns, columns, &used, failed_left.data(), failed_right.data());
  else
    info = hsein(layout, 'B', 'Q', 'N', selected.data(), n, a.packed.data(), n, shifts.re.data(), shifts.im.data(),
                 v.data(), columns, u.data(), columns, columns, &used, failed_left.data(), failed_right.data());
  check_info(info, "hsein", a.n, a.n);
  const auto unpack = [&](char side, std::vector<T>& x, Complex<T>* out) {
    a.back_transform(side, x, columns);
    Real<T> squares = 0;
    for (std::int64_t i = 0; i < a.n; ++i) {
      if constexpr (is_complex_type<T>)
        out[i] = x[count(i)];
      else
        out[i] = {x[count(i * columns)], pair ? x[count(i * columns + 1)] : T(0)};
      squares += std::norm(out[i]);
    }
    for (std::int64_t i = 0; i < a.n; ++i) out[i] /= std::sqrt(squares);
  };
  unpack('R', u, right);
  unpack('L', v, left);
}

/// Is eigenvalue j the only one of its modulus (but for its conjugate, for a real matrix), and neither 0 nor defective?
/// `product` is v^H u of its unit eigenvectors.
template <class T>
bool is_simple(const Eigenvalues<T>& values, std::int64_t largest, Complex<T> product) {
  const std::int64_t n = values.size();
  const Real<T> radius = std::abs(values[largest]);
  const bool pair = values.starts_pair(largest);
  Real<T> next = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    if (j != largest && !(pair && j == largest + 1)) next = std::max(next, std::abs(values[j]));
  }
  return radius > 0 && next < radius * (1 - rounding<T>(n)) && !is_defective<T>(product);
}

/// The eigenvalue of largest modulus of one matrix, with u and v such that v^H u = 1; these are 0 where it is not
/// simple.
template <class T>
bool largest_eigenvalue(const Hessenberg<T>& a, const Eigenvalues<T>& values, Complex<T>* value, Complex<T>* right,
                        Complex<T>* left) {
  const std::int64_t j = values.largest(), n = a.n;
  *value = values[j];
  eigenvectors(a, values, j, right, left);
  Complex<T> product = 0;
  for (std::int64_t i = 0; i < n; ++i) product += std::conj(left[i]) * right[i];
  const bool simple = is_simple(values, j, product);
  for (std::int64_t i = 0; i < n; ++i) {
    right[i] = simple ? right[i] : 0;
    left[i] = simple ? left[i] / std::conj(product) : 0;
  }
  return simple;
}
template <class T>
bool largest_eigenvalue(std::int64_t n, const T* matrix, Complex<T>* value, Complex<T>* right, Complex<T>* left) {
  const Hessenberg<T> a(n, matrix);
  return largest_eigenvalue(a, Eigenvalues<T>(a), value, right, left);
}

/// An orthonormal basis of the right eigenvectors of the largest eigenvalues; empty: they are not to be had.
std::vector<double> leading_basis(const Hessenberg<double>& a, const Eigenvalues<double>& values) {
  const lapack_int n = narrow(a.n);
  std::vector<std::int64_t> order;  // one of each pair
  for (std::int64_t j = 0; j < a.n; ++j)
    if (values[j].imag() >= 0) order.push_back(j);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t i, std::int64_t j) { return std::abs(values[i]) > std::abs(values[j]); });
  std::vector<lapack_int> selected = room<lapack_int>(a.n), failed(count(a.n));
  lapack_int columns = 0, used = 0;
  for (const std::int64_t j : order) {
    const lapack_int more = values.starts_pair(j) ? 2 : 1;
    if (columns + more > LeadingColumns::most) break;
    selected[count(j)] = 1;
    columns += more;
  }
  Eigenvalues<double> shifts = values;  // hsein moves close ones apart
  std::vector<double> v = room<double>(a.n * columns);
  if (LAPACKE_dhsein(layout, 'R', 'Q', 'N', selected.data(), n, a.packed.data(), n, shifts.re.data(), shifts.im.data(),
                     nullptr, columns, v.data(), columns, columns, &used, nullptr, failed.data()) != 0)
    return {};
  a.back_transform('R', v, columns);
  std::vector<double> basis = room<double>(a.n * columns);
  for (std::int64_t i = 0; i < a.n; ++i)
    for (std::int64_t j = 0; j < columns; ++j) basis[count(j * a.n + i)] = v[count(i * columns + j)];
  return orthonormal(a.n, std::move(basis));
}

/// The same with columns that are carried over. The largest of all eigenvalues is also computed anew near where it is,
/// so that both ways give the same bits.
bool followed_eigenvalue(std::int64_t n, const double* matrix, LeadingColumns& columns, std::complex<double>* value,
                         std::complex<double>* right, std::complex<double>* left) {
  const std::lock_guard lock(columns.busy);
  const auto found = [&](const Eigenpair& pair) {
    *value = pair.value;
    std::copy(pair.right.begin(), pair.right.end(), right);
    std::copy(pair.left.begin(), pair.left.end(), left);
    return true;
  };
  const bool tries = columns.left > 0 && columns.rows == n;
  if (tries) {
    --columns.left;
    if (const auto pair = leading_pair(n, matrix, columns.basis)) {
      columns.next_pause = 1;
      return found(*pair);
    }
  }
  const Hessenberg<double> a(n, matrix);
  const Eigenvalues<double> values(a);
  if (tries) {
    columns.left = 0;
    columns.pause = columns.next_pause;
    columns.next_pause = std::min(2 * columns.next_pause, LeadingColumns::calls);
  } else if (columns.pause > 0) {
    --columns.pause;
  } else {
    columns.basis = leading_basis(a, values);
    columns.rows = n;
    columns.left = columns.basis.empty() ? 0 : LeadingColumns::calls;
  }
  const std::int64_t j = values.largest();
  if (is_simple(values, j, std::complex<double>(1)))
    if (const auto pair = eigenpair_near(n, matrix, values[j])) return found(*pair);
  return largest_eigenvalue(a, values, value, right, left);
}

}  // namespace

std::int64_t Cpu::spectral_radius(const SpectralRadiusArgs& args) {
  std::int64_t multiple = 0;
  on_field(args.dtype, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = args.n;
    check_finite<T>(args.a, args.batch, n, n);
    for (std::int64_t b = 0; b < args.batch; ++b) {
      Complex<T> value = 0;  // an empty matrix has radius 0
      const T* const matrix = static_cast<const T*>(args.a) + b * n * n;
      auto* const right = static_cast<Complex<T>*>(args.right) + b * n;
      auto* const left = static_cast<Complex<T>*>(args.left) + b * n;
      const int exponent = extreme_exponent(largest_part(matrix, n * n));
      const auto find = [&] {
        if (exponent != 0) {
          std::vector<T> scaled = copy_of(matrix, n * n);
          scale(scaled, -exponent);
          const bool simple = largest_eigenvalue(n, scaled.data(), &value, right, left);
          value = {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
          return simple;
        }
        if constexpr (std::is_same_v<T, double>)
          if (args.leading) return followed_eigenvalue(n, matrix, *args.leading, &value, right, left);
        return largest_eigenvalue(n, matrix, &value, right, left);
      };
      if (n > 0 && !find()) ++multiple;
      const Real<T> radius = std::abs(value);
      check_overflow(&radius, 1, "eigenvalues", n, n);
      static_cast<Real<T>*>(args.radius)[b] = radius;
      static_cast<Complex<T>*>(args.value)[b] = value;
    }
  });
  return multiple;
}

}  // namespace reel::cpu
