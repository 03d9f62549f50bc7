// The spectral radius as ENRNN needs it, and where its derivative ends.
#include "ops/functors/linalg.h"
#include "tests/support/spectral.h"

using namespace reel;
using namespace reel::test;

namespace {

using C = std::complex<double>;

/// Where the eigenvalue of largest modulus is; of a pair the first.
std::size_t largest(const std::vector<C>& w) {
  std::size_t k = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    if (std::abs(w[j]) > std::abs(w[k]) * (1 + 1e-12)) k = j;
  }
  return k;
}

/// C of ENRNN's Proposition 3.2, from its definition: alpha Re S + beta Im S, S = conj(v) u^T / (v^H u).
Tensor enrnn_c(const Tensor& T) {
  const EigResult right = eig(T), left = eig(transpose(T));  // T^T x = lambda x: x = conj(v)
  const auto w = right.values.values<C>(), x = left.vectors.values<C>(), u = right.vectors.values<C>();
  const std::size_t i = largest(w), j = largest(left.values.values<C>()), n = w.size();
  REQUIRE(std::abs(w[i] - left.values.values<C>()[j]) < 1e-10);
  C product = 0;
  for (std::size_t k = 0; k < n; ++k) product += x[k * n + j] * u[k * n + i];
  std::vector<double> c;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      const C s = x[a * n + j] * u[b * n + i] / product;
      c.push_back(w[i].real() * s.real() + w[i].imag() * s.imag());
    }
  }
  return Tensor::from<double>(c, T.shape());
}

/// Random matrices [8, 8] whose largest eigenvalue is real, and one of a pair; and one far from normal.
Tensor with_real_radius() { return random({8, 8}, 31, DType::f64, 0, 1); }
Tensor with_complex_radius() {
  const Tensor x = random({8, 8}, 32);
  return x - transpose(x) + 0.3 * random({8, 8}, 33);
}
Tensor far_from_normal() { return triu({with_real_radius() * 30.0}, 1) + with_real_radius(); }

}  // namespace

TEST_CASE("spectral radius: the derivative of ENRNN's Proposition 3.2, and its derivative") {
  for (const Tensor& T : {with_real_radius(), with_complex_radius(), far_from_normal(), random({52, 52}, 35)}) {
    CAPTURE(T.str());
    const int before = warnings("spectral_radius");
    const double rho = spectral_radius(T).item();
    CHECK(rho == doctest::Approx(max(abs(eigvals(T))).item()).epsilon(1e-14));
    const Tensor dT = gradient([](const Tensor& x) { return spectral_radius(x); }, T);
    CHECK(difference(dT, enrnn_c(T) * (1 / rho)) < 1e-12);
    const GradErrors e = errors_at([](const Tensor& x) { return spectral_radius(x); }, T, 1e-3);
    MESSAGE("spectral radius " << rho << ": gradient " << e.first << ", second " << e.second);
    CHECK(e.first < 1e-8);
    CHECK(e.second < 1e-8);
    CHECK(warnings("spectral_radius") == before);
  }
  const auto w = eigvals(with_complex_radius()).values<C>();
  CHECK(w[largest(w)].imag() > 0);
}

TEST_CASE("W = T / rho(T) has the gradient of ENRNN, W = T / (rho(T) + eps) the corrected one") {
  for (const Tensor& T : {with_real_radius(), with_complex_radius()}) {
    for (double eps : {0.0, 0.3}) {
      const Tensor G = random(T.shape(), 41);
      Tape tape;
      const Tensor rho = spectral_radius(T), W = T / (rho + eps);
      const auto [dT] = grad(inner(G, W), {T});
      const double r = rho.item(), s = r + eps;
      const Tensor expected = (G - enrnn_c(T) * (inner(G, W).item() / r)) * (1 / s);
      CHECK(difference(dT, expected) < 1e-12);
    }
  }
}

TEST_CASE("spectral radius: only the largest eigenvalue must be simple") {
  const Tensor T = matrix({3, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1});  // a Jordan block and a double 1 besides 3
  const int before = warnings("spectral_radius");
  const auto f = [](const Tensor& x) { return spectral_radius(x); };
  const GradErrors e = errors_at(f, T, 1e-3);
  CHECK(e.first < 1e-9);
  CHECK(e.second < 1e-9);
  CHECK(warnings("spectral_radius") == before);
}

namespace {

/// Radius, gradient of the radius and of one of its elements, with or without columns that are carried over.
Tensors radius_and_gradients(const Tensor& T, const std::shared_ptr<LeadingColumns>& columns) {
  Tape tape;
  const Tensor rho = warm_spectral_radius(T, columns);
  const Tensor first = grad(rho, {T}, {.create_graph = true})[0];
  return {rho, first, grad(inner(first, random(T.shape(), 5)), {T})[0]};
}

/// P diag(blocks) P^-1 of pairs and single eigenvalues, whose moduli change with time: another one leads from 0, 20 and
/// 40 on, first a pair, then a real one, then a pair again.
Tensor drifting(const Tensor& P, int time) {
  const std::int64_t n = P.dim(0);
  std::vector<double> D(static_cast<std::size_t>(n * n));
  const auto put = [&](std::int64_t j, double modulus, double angle) {
    const auto at = [&](std::int64_t r, std::int64_t c) -> double& {
      return D[static_cast<std::size_t>((j + r) * n + j + c)];
    };
    at(0, 0) = at(1, 1) = modulus * std::cos(angle);
    at(0, 1) = -modulus * std::sin(angle);
    at(1, 0) = modulus * std::sin(angle);
  };
  for (std::int64_t j = 6; j < n; j += 2)
    put(j, 0.9 * static_cast<double>(j) / static_cast<double>(n), static_cast<double>(j));
  put(0, 1, 0.7);
  put(2, 0.9 + 0.005 * time, 0);  // from 20 on; twice the same is no simple one, so
  D[static_cast<std::size_t>(3 * n + 3)] = 0.1;
  put(4, 0.7 + 0.01 * time, 2.1);  // from 40 on
  return matmul(P, matmul(Tensor::from(std::span<const double>(D), {n, n}), solve(P, eye(n, DType::f64))));
}

}  // namespace

TEST_CASE("columns that are carried over change nothing: the leader changes, is a pair, is real") {
  const std::int64_t n = 256;
  const Tensor P_0 = eye(n, DType::f64) + 0.02 * random({n, n}, 61), turn = 0.002 * random({n, n}, 62);
  const auto columns = leading_columns(n);
  int found = 0;
  for (int time = 0; time < 60; ++time) {
    CAPTURE(time);
    const Tensor T = drifting(P_0 + turn * time, time);
    const int left = columns->left;
    const Tensors with = radius_and_gradients(T, columns), without = radius_and_gradients(T, nullptr),
                  fresh = radius_and_gradients(T, leading_columns(n));
    found += columns->left == left - 1 && columns->pause == 0 ? 1 : 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(with[i], without[i]) < 1e-9);
      if (time % 20 != 0) CHECK(difference(with[i], fresh[i]) == 0);  // two of one modulus are not simple
    }
  }
  MESSAGE(found << " of 60 were found among the columns");
  CHECK(found > 40);
}

TEST_CASE("columns of another matrix do no harm") {
  const std::int64_t n = 256;
  const auto columns = leading_columns(n);
  for (std::uint64_t seed = 70; seed < 76; ++seed) {
    const Tensor T = random({n, n}, seed) * (1 / 16.0);
    CHECK(warm_spectral_radius(T, columns).item() == doctest::Approx(max(abs(eigvals(T))).item()).epsilon(1e-12));
  }
  // Neither identity, zeros nor a nilpotent matrix has columns to carry over; the largest numbers overflow on the way.
  const Tensor nilpotent = triu({random({n, n}, 76)}, 1), large = random({n, n}, 77) * 1e305;
  for (const Tensor& T : {eye(n, DType::f64), Tensor::zeros({n, n}, DType::f64), nilpotent, large}) {
    CAPTURE(T.str());
    const auto fresh = leading_columns(n);
    for (int call = 0; call < 3; ++call) {
      CHECK(warm_spectral_radius(T, fresh).item() == spectral_radius(T).item());
      CHECK(warm_spectral_radius(T, columns).item() == spectral_radius(T).item());
    }
  }
  CHECK(leading_columns(64) == nullptr);
}

TEST_CASE("where the radius has no derivative it is a constant, with a warning") {
  const double c = std::cos(0.7), s = std::sin(0.7);
  const Tensor P = random({3, 3}, 51), J = matrix({2, 1, 0, 0, 2, 0, 0, 0, 1});
  const std::vector<Tensor> matrices{eye(4, DType::f64),
                                     Tensor::zeros({3, 3}, DType::f64),
                                     matrix({2, 1, 0, 2}),                  // defective
                                     matrix({0, 1, 0, 0}),                  // nilpotent
                                     matrix({1, 0, 0, -1}),                 // two of one modulus
                                     matrix({c, -s, 0, s, c, 0, 0, 0, 1}),  // a rotation in space
                                     matmul(P, matmul(J, solve(P, eye(3, DType::f64))))};
  for (const Tensor& T : matrices) {
    CAPTURE(T.str());
    CapturedErrors captured;
    const int before = warnings("spectral_radius");
    const Scalar radius = [](const Tensor& x) { return spectral_radius(x); };
    CHECK(difference(gradient(radius, T), Tensor::zeros(T.shape(), DType::f64)) == 0);
    CHECK(warnings("spectral_radius") == before + 1);
    CHECK(all_finite(radius, T));
    const std::string text = captured.text();
    if (before == 0)
      CHECK(text.rfind("[spectral_radius] warning: the largest eigenvalue of 1 of 1 matrices is not simple", 0) == 0);
    if (before > 5) CHECK(text.empty());
  }
  const Tensor pair = matrix({c, -s, s, c});  // a rotation in the plane has one pair: rho = sqrt(det)
  CHECK(difference(gradient([](const Tensor& x) { return spectral_radius(x); }, pair), 0.5 * pair) < 1e-15);
  // With c128 elements the two are not tied to each other any more.
  CHECK(difference(gradient([](const Tensor& x) { return spectral_radius(x); }, cast(pair, DType::c128)),
                   Tensor::zeros({2, 2}, DType::c128)) == 0);
  // In a batch each matrix is for itself, but for the last place of complex quotients (complex_simd.h).
  const Scalar radii = [](const Tensor& x) { return sum(spectral_radius(x)); };
  const Tensor g = gradient(radii, stack({eye(8, DType::f64), with_real_radius()}));
  CHECK(difference(g, stack({Tensor::zeros({8, 8}, DType::f64), gradient(radii, with_real_radius())})) < 1e-15);
  CHECK(spectral_radius(Tensor::zeros({0, 0}, DType::f64)).item() == 0);
}
