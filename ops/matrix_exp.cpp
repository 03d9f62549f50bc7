// The matrix exponential by scaling and squaring: exp(A) = exp(A / 2^s)^(2^s), where exp of a small matrix is a Padé
// approximant whose order depends on its norm. It is composed of ops, so that it works on any backend.
//
// Each squaring doubles rounding errors. A matrix far from normal may have a large norm, but powers that grow slowly,
// and then needs few: where the norm asks for many, norms of powers of |A| determine s. This is what Al-Mohy and
// Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009), do against rounding errors of
// powers of A.
//
// The derivative in direction E takes the same steps with a pair (A, E) in place of A; pairs multiply by the product
// rule. This equals exp of the block matrix [[A, E], [0, A]], with 3 products instead of 8.
#include <cmath>

#include "ops/matrix.h"

namespace reel {

namespace {

struct Pair {  // a matrix and its derivative
  Tensor x, dx;
};

bool finite(const Tensor& A) {
  const Tensor zero = sum(A - A);  // NaN if any element is not finite
  return (is_complex(A.dtype()) ? real(zero) + imag(zero) : zero).item() == 0;
}

// The operations that the algorithm needs, for a matrix and for a pair.
const Tensor& value(const Tensor& a) { return a; }
Tensor as(DType dtype, const Tensor& a) { return cast(a, dtype); }
Tensor unit(const Tensor& a) { return eye_like(a); }
Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b); }
/// a^-1 b. solve() pivots within rows. Taking the adjoint twice pivots within columns, which keeps an upper triangle
/// upper triangular.
Tensor quotient(const Tensor& a, const Tensor& b) { return solve(adjoint(a), b, {.adjoint = true}); }

const Tensor& value(const Pair& a) { return a.x; }
Pair as(DType dtype, const Pair& a) { return {cast(a.x, dtype), cast(a.dx, dtype)}; }
Pair unit(const Pair& a) { return {eye_like(a.x), zeros_like(a.x)}; }
Pair operator*(const Pair& a, double factor) { return {a.x * factor, a.dx * factor}; }
Pair operator+(const Pair& a, const Pair& b) { return {a.x + b.x, a.dx + b.dx}; }
Pair operator-(const Pair& a, const Pair& b) { return {a.x - b.x, a.dx - b.dx}; }
Pair product(const Pair& a, const Pair& b) { return {matmul(a.x, b.x), matmul(a.dx, b.x) + matmul(a.x, b.dx)}; }
Pair quotient(const Pair& a, const Pair& b) {
  const Tensor x = quotient(a.x, b.x), rest = b.dx - matmul(a.dx, x);
  if (!finite(rest)) rule_error("the derivative of the exponential overflows");
  return {x, quotient(a.x, rest)};
}

/// The 1-norm: the largest sum of absolute values of a column.
double one_norm(const Tensor& A) { return max(sum(abs(A), {-2})).item(); }

/// The approximant of order m is exact to the precision of the dtype up to these norms: for the exponential, Higham
/// (2005), table 2.3; for its derivative, Al-Mohy and Higham (2009), table 6.1. The limits for single precision come
/// from the same series with its roundoff.
struct Order {
  int m;
  double limit, derivative_limit;
};
constexpr Order double_orders[] = {{3, 1.4955852e-2, 1.0813385e-2},
                                   {5, 2.5393983e-1, 1.9980632e-1},
                                   {7, 9.5041789e-1, 7.8346084e-1},
                                   {9, 2.0978479, 1.7824486},
                                   {13, 5.3719203, 4.7403075}};
constexpr Order single_orders[] = {
    {3, 4.2587300e-1, 3.0803304e-1}, {5, 1.8801526, 1.4825326}, {7, 3.9257247, 3.2486717}};

/// Coefficients of the numerator of order m, the last of which is 1; the denominator is the numerator at -A.
std::vector<double> numerator(int m) {
  std::vector<double> b(static_cast<std::size_t>(m) + 1);
  std::int64_t coefficient = 1;
  for (int j = m; j >= 0; --j) {
    b[static_cast<std::size_t>(j)] = static_cast<double>(coefficient);
    coefficient = coefficient * j * (2 * m - j + 1) / (m - j + 1);
  }
  return b;
}

/// The sum over k of terms[k] b[first + 2 k].
template <class M>
M combination(std::span<const M> terms, const std::vector<double>& b, std::size_t first) {
  M total = terms[0] * b[first];
  for (std::size_t k = 1; k < terms.size(); ++k) total = total + terms[k] * b[first + 2 * k];
  return total;
}

/// The approximant of order m. Both sides of its fraction are times `factor`, a power of two.
template <class M>
M pade(const M& A, int m, double factor = 1) {
  std::vector<double> b = numerator(m);
  for (double& x : b) x *= factor;
  std::vector<M> even_powers{unit(A), product(A, A)};  // I, A^2, A^4, ...
  const std::size_t size = m == 13 ? 4 : static_cast<std::size_t>(m / 2) + 1;
  while (even_powers.size() < size) even_powers.push_back(product(even_powers.back(), even_powers[1]));
  const std::span<const M> powers = even_powers;
  M odd = combination(powers, b, 1), even = combination(powers, b, 0);
  if (m == 13) {  // A^8, A^10 and A^12 at one product each
    odd = odd + product(powers[3], combination(powers.subspan(1), b, 9));
    even = even + product(powers[3], combination(powers.subspan(1), b, 8));
  }
  odd = product(A, odd);
  return quotient(even - odd, even + odd);
}

/// A power of two that takes the coefficients of order 13, up to 2^56, to 1 and less; and the largest power of |A|
/// whose product with them is finite, as a logarithm.
constexpr double least_factor = 0x1p-56, largest_term = 1018;

/// The squarings that the approximant of order m needs: at most those that the norm asks for, `most`. The error is a
/// sum of c_k |A^k| over k > 2 m, where c_k limit^(k - 1) is negligible. For each column by itself, so that a large one
/// does not hide others, it is compared with a term of the exponential, |A|^p / p! > |A|^p / limit^(p - 1) for 1 < p
/// < 6.
int fewest_squarings(const Tensor& A, int m, int most, double limit) {
  const auto n = static_cast<std::size_t>(A.dim(-1));
  std::vector<double> size = cast(abs(A), DType::f64).values<double>(), columns(n), growth(n, 1), next;
  for (std::size_t i = 0; i < n * n; ++i) columns[i % n] += size[i];
  for (std::size_t i = 0; i < n * n; ++i)
    if (size[i] != 0) size[i] = size[i] / columns[i % n] * columns[i / n];
  std::vector<std::vector<double>> sums;  // of the columns of |A|^k, as logarithms, for k from 1
  double s = 0, scaled = 0;
  for (int k = 1; k <= 4 * m + 1; ++k) {  // growth 2^scaled: these sums by those of |A|, `columns`
    sums.emplace_back(n);
    for (std::size_t j = 0; j < n; ++j) {
      const double sum = sums.back()[j] = std::log2(growth[j]) + scaled + std::log2(columns[j]);
      if (sum == -INFINITY) continue;             // a column of zeros
      s = std::max(s, (sum - largest_term) / k);  // nothing overflows
      if (k <= 2 * m) continue;
      double rate = INFINITY;
      for (int p = 1; p <= 5; ++p) rate = std::min(rate, (sum - sums[static_cast<std::size_t>(p - 1)][j]) / (k - p));
      s = std::max(s, rate - std::log2(limit));
    }
    next.assign(n, 0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) next[j] += growth[i] * size[i * n + j];
    const double largest = *std::max_element(next.begin(), next.end());
    if (largest == 0) break;  // nilpotent
    for (std::size_t j = 0; j < n; ++j) growth[j] = next[j] / largest;
    scaled += std::log2(largest);
  }
  return std::min(static_cast<int>(std::ceil(s)), most);
}

template <class M>
M checked(const M& X, double norm) {
  if (!finite(value(X))) rule_error("the exponential of a matrix of 1-norm {:.3g} overflows", norm);
  return X;
}

template <class M>
M exponential(const M& A) {  // of one matrix [n, n]
  const double norm = one_norm(value(A));
  if (!std::isfinite(norm)) rule_error("the matrix has elements that are not finite, or their sum overflows");
  const bool single = real_of(value(A).dtype()) == DType::f32;
  const std::span<const Order> orders = single ? std::span<const Order>(single_orders) : double_orders;
  const auto limit = [](const Order& o) { return std::is_same_v<M, Pair> ? o.derivative_limit : o.limit; };
  for (const Order& order : orders) {
    if (norm <= limit(order)) return pade(A, order.m);
  }
  int squarings = static_cast<int>(std::ceil(std::log2(norm / limit(orders.back()))));
  double factor = 1;
  constexpr int few = 4;  // what these squarings add to rounding errors is small
  if (squarings > few) {
    const int fewest = fewest_squarings(value(A), orders.back().m, squarings, limit(orders.back()));
    if (squarings - fewest > few) {
      const DType dtype = value(A).dtype();
      if (single)  // terms before the squarings need the range of f64
        return checked(as(dtype, exponential(as(is_complex(dtype) ? DType::c128 : DType::f64, A))), norm);
      squarings = fewest;
      factor = least_factor;
    }
  }
  M X = pade(A * std::ldexp(1.0, -squarings), orders.back().m, factor);
  for (int i = 0; i < squarings; ++i) X = product(X, X);
  return checked(X, norm);
}

/// Matrix i of the batch x; x itself if the whole batch shares it.
Tensor matrix(const Tensor& x, std::int64_t i) { return x.view({x.dim(-2), x.dim(-1)}, i * matrix_stride(x)); }

/// The products of the approximant of the highest order. flops() counts these, as the norm of a matrix is known only
/// when it runs: it may take a lower order, or squarings, each one product (GVL, algorithm 9.3.1).
int pade_products(DType dtype) { return real_of(dtype) == DType::f32 ? 4 : 6; }
/// Of the solution of n equations with n right-hand sides, times n^3: GVL, sections 3.1 and 3.2.
constexpr double quotient_flops = 2.0 / 3 + 2;

struct MatrixExp {
  static constexpr Traits traits{.name = "matrix_exp", .saves = Saves::inputs};
  Spec infer(Inputs in) const {
    check_square(in[0]);
    return in[0].spec();
  }
  double flops(Inputs in) const {
    const double n = extent(in[0], -1);
    return flops_of(in[0], (2 * pade_products(in[0].dtype()) + quotient_flops) * n * n * n);
  }
  void run(Inputs in, Tensor& out) const {
    const NoGrad no_grad;
    for (std::int64_t i = 0; i < matrices(out) && out.numel() > 0; ++i)
      matrix(out, i).assign(exponential(matrix(in[0], i)));
  }
  void vjp(Vjp& v) const { v.set(0, matrix_exp_derivative(adjoint(v.in(0)), v.dy())); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return matrix_exp(in[0]); }
};
REEL_OP(MatrixExp)

struct MatrixExpDerivative {  // A, E [..., n, n] -> [..., n, n]
  static constexpr Traits traits{.name = "matrix_exp_derivative", .saves = Saves::inputs};
  Spec infer(Inputs in) const {
    check_same_dtype(in);
    check_square(in[0]);
    check_square(in[1]);
    const std::int64_t n = in[0].dim(-1);
    if (in[1].dim(-1) != n) rule_error("A and E must have one size, got {0}x{0} and {1}x{1}", n, in[1].dim(-1));
    return {in[0].dtype(), with_matrix(common_places(in), n, n), &in[0].backend()};
  }
  double flops(Inputs in) const {  // of pairs: three products for one, a product and two quotients for one
    const double n = extent(in[0], -1), places = static_cast<double>(common_places(in).numel());
    const double each = 6 * pade_products(in[0].dtype()) + 2 * quotient_flops + 2;
    return places * each * n * n * n * (is_complex(in[0].dtype()) ? 4 : 1);
  }
  void run(Inputs in, Tensor& out) const {
    const NoGrad no_grad;
    for (std::int64_t i = 0; i < matrices(out) && out.numel() > 0; ++i) {
      const Tensor A = matrix(in[0], i), E = matrix(in[1], i);
      if (!finite(E)) rule_error("the direction has elements that are not finite");
      const Tensor dX = exponential(Pair{A, E}).dx;
      if (!finite(dX)) rule_error("the derivative of the exponential overflows");
      matrix(out, i).assign(dX);
    }
  }
  // With M = [[A, 0], [E, A]], L(A, E) is the lower left block of exp(M). So the gradient of M is L(M^H, .) of the
  // block matrix that has dY there and is 0 elsewhere.
  void vjp(Vjp& v) const {
    const Tensor& dY = v.dy();
    const Tensor AH = adjoint(v.in(0)), EH = adjoint(v.in(1));
    if (!v.needs(0)) return v.set(1, matrix_exp_derivative(AH, dY));
    const std::int64_t n = dY.dim(-1);
    const Tensor a = expand(AH, dY.shape()), e = expand(EH, dY.shape()), zero = constant(0, dY);
    const Tensor MH = concat({concat({a, e}, -1), concat({expand(zero, dY.shape()), a}, -1)}, -2);
    const Tensor dM = matrix_exp_derivative(MH, pad(pad(dY, -2, n, 0), -1, 0, n));
    const Tensor top = slice(dM, -2, 0, n), bottom = slice(dM, -2, n, 2 * n);
    v.set(0, slice(top, -1, 0, n) + slice(bottom, -1, n, 2 * n));
    v.set(1, slice(bottom, -1, 0, n));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return apply(*this, pointers(for_all_steps(in, mapped, steps)), Loc::current());
  }
};
REEL_OP(MatrixExpDerivative)

}  // namespace

Tensor matrix_exp(Arg A) { return apply(MatrixExp{}, A); }
Tensor matrix_exp_derivative(Arg A, Arg E) { return apply(MatrixExpDerivative{}, A, E); }

}  // namespace reel
