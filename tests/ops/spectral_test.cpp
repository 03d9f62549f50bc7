// Eigenvalues, singular values, Schur form: large matrices, matrices at which derivatives end, gauges, errors.
#include "tests/support/spectral.h"

using namespace reel;
using namespace reel::test;

using C = std::complex<double>;

TEST_CASE("a real matrix of 96 rows: value, gradient and second gradient through eigenvalues and eigenvectors") {
  constexpr std::int64_t n = 96;
  const Tensor A = random({n, n}, 7) * (1 / std::sqrt(n / 3.0));  // eigenvalues in the unit disk
  const EigResult r = eig(A);
  const Tensor residual = matmul(cast(A, DType::c128), r.vectors) - r.vectors * unsqueeze(r.values, -2);
  CHECK(difference(residual, Tensor::zeros({n, n}, DType::c128)) < 1e-13);
  CHECK(difference(eigvals(A), r.values) == 0);
  // LAPACK's order changes under the smallest perturbation at this size, so the loss must not depend on it.
  const Tensor weight = random({1, n}, 8, DType::c128);
  const auto loss = [&](const Tensor& x) {
    const EigResult e = eig(x);
    return real(sum(square(e.values) + (1.0 + e.values) * matmul(weight, e.vectors)));
  };
  const GradErrors e = errors_at(loss, A, 1e-4);
  MESSAGE("eig 96 x 96: gradient " << e.first << ", second " << e.second);
  CHECK(e.first < 1e-8);
  CHECK(e.second < 1e-8);
}

TEST_CASE("pairs of a real matrix are exact conjugates, the largest component of each vector is real, exactly") {
  constexpr std::int64_t n = 21;
  const EigResult r = eig(random({n, n}, 5));
  const auto w = r.values.values<C>(), V = r.vectors.values<C>();
  std::size_t pairs = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (w[j].imag() > 0) {
      ++pairs;
      CHECK(w[j + 1] == std::conj(w[j]));
      for (std::size_t i = 0; i < n; ++i) CHECK(V[i * n + j + 1] == std::conj(V[i * n + j]));
    }
    std::size_t top = 0;
    for (std::size_t i = 0; i < n; ++i) top = std::abs(V[i * n + j]) > std::abs(V[top * n + j]) ? i : top;
    CHECK(V[top * n + j].imag() == 0);
    CHECK(V[top * n + j].real() > 0);
  }
  CHECK(pairs > 0);
  // Components of one modulus: the first is the real one.
  const auto circle = eig(matrix({0.6, -0.8, 0.8, 0.6})).vectors.values<C>();
  for (std::size_t j = 0; j < 2; ++j) {
    CHECK(circle[j].imag() == 0);
    CHECK(circle[j].real() == doctest::Approx(std::sqrt(0.5)).epsilon(1e-15));
  }
}

TEST_CASE("matrix functions through eig, eigh and svd have the gradients of their plain form") {
  const Tensor A = random({6, 6}, 11), G = random({6, 6}, 12);
  const auto cube = [&](const Tensor& x) {
    const EigResult e = eig(x);
    const Tensor powers = e.values * e.values * e.values;
    return inner(G, real(matmul(e.vectors * unsqueeze(powers, -2), solve(e.vectors, eye(6, DType::c128)))));
  };
  const auto plain = [&](const Tensor& x) { return inner(G, matmul(x, matmul(x, x))); };
  CHECK(difference(gradient(cube, A), gradient(plain, A)) < 1e-11);
  const auto hermitian_cube = [&](const Tensor& x) {
    const EigResult e = eigh(x);
    return inner(G, matmul(e.vectors * unsqueeze(e.values * e.values * e.values, -2), adjoint(e.vectors)));
  };
  CHECK(difference(gradient(hermitian_cube, A),
                   gradient([&](const Tensor& x) { return plain(0.5 * (x + transpose(x))); }, A)) < 1e-11);
  for (const Shape& shape : {Shape{6, 4}, Shape{4, 6}, Shape{5, 5}}) {
    for (DType d : {DType::f64, DType::c128}) {
      const Tensor x = random(shape, 13, d), w = random(shape, 14, d);
      const auto whole = [&](const Tensor& y) {  // U S^3 Vh = A A^H A
        const SvdResult s = svd(y);
        return inner(w, matmul(s.U * unsqueeze(s.S * s.S * s.S, -2), s.Vh));
      };
      const auto product = [&](const Tensor& y) { return inner(w, matmul(y, matmul(adjoint(y), y))); };
      CHECK(difference(gradient(whole, x), gradient(product, x)) < 1e-11);
    }
  }
}

TEST_CASE("vectors of equal eigenvalues or singular values warn, and stay finite") {
  const double c = std::cos(0.7), s = std::sin(0.7);
  const auto through_eig = [](const Tensor& x) {
    const EigResult e = eig(x);
    return real(sum(e.values * e.values) + sum(e.vectors));
  };
  const auto through_eigh = [](const Tensor& x) {
    const EigResult e = eigh(x);
    return real(sum(e.values * e.values) + sum(e.vectors));
  };
  const auto through_svd = [](const Tensor& x) {
    const SvdResult e = svd(x);
    return real(sum(e.S * e.S) + sum(e.U) + sum(e.Vh));
  };
  struct Case {
    const char* subject;
    Scalar f;
    Tensor x;
    const char* text;
  };
  const Tensor rotation = matrix({c, -s, s, c}), tall = concat({rotation, rotation}, 0),
               singular = matmul(random({3, 2}, 1, DType::c128), random({2, 3}, 2, DType::c128));
  const std::vector<Case> cases{
      {"eig", through_eig, eye(3, DType::f64), "3 of 3 values agree with another one to rounding"},
      {"eig", through_eig, matrix({2, 1, 0, 2}), "1 of 1 matrices are defective"},
      {"eig", through_eig, matrix({0, 1, 0, 0}), ""},
      {"eig", through_eig, matrix({2, 1, 0, 0, 2, 1, 0, 0, 2}), ""},
      {"eigh", through_eigh, eye(3, DType::f64), "3 of 3 values agree"},
      {"eigh", through_eigh, rotation, "2 of 2 values agree"},
      {"eigh", through_eigh, cast(eye(2, DType::f64), DType::c128), ""},
      {"svd", through_svd, rotation, "2 of 2 values agree"},
      {"svd", through_svd, tall, "2 of 2 values agree"},
      {"svd", through_svd, Tensor::zeros({3, 2}, DType::f64), ""},
      {"svd", through_svd, Tensor::zeros({2, 2}, DType::c128), ""},
      {"svd", through_svd, singular, "1 of 3 singular values vanish"},
  };
  for (const Case& k : cases) {
    CAPTURE(k.subject);
    CAPTURE(k.x.str());
    CapturedErrors captured;
    const int before = warnings(k.subject);
    CHECK(all_finite(k.f, k.x));
    CHECK(warnings(k.subject) > before);
    const std::string text = captured.text();
    if (before < 5) CHECK_MESSAGE(contains(text, std::string("[") + k.subject + "] warning: "), text);
    if (before < 5) CHECK_MESSAGE(contains(text, k.text), text);
  }
}

TEST_CASE("in f32 eigenvectors of some hundred rows are a basis, and those of a Jordan block are none") {
  const Scalar trace = [](const Tensor& x) { return real(sum(eigvals(x))); };
  const Tensor A = normal({400, 400}, 0, 1, 1, 1);
  const int before = warnings("eig");
  CHECK(difference(gradient(trace, A), eye(400)) < 1e-2);
  CHECK(warnings("eig") == before);
  const CapturedErrors captured;
  const Tensor jordan = cast(matrix({2, 1, 0, 2}), DType::f32);
  CHECK(difference(gradient(trace, jordan), Tensor::zeros({2, 2})) == 0);
}

TEST_CASE("a defective matrix in a batch leaves the others alone") {
  const Scalar f = [](const Tensor& x) {
    const EigResult e = eig(x);
    return real(sum(e.vectors) + sum(square(e.values)));
  };
  const Tensor jordan = matrix({2, 1, 0, 2}), other = random({2, 2}, 21);
  const CapturedErrors captured;
  CHECK(difference(gradient(f, stack({jordan, other})),
                   stack({Tensor::zeros({2, 2}, DType::f64), gradient(f, other)})) < 1e-14);
}

TEST_CASE("nothing is lost, and nobody warned, where equal eigenvalues or singular values do not matter") {
  const Tensor one = eye(3, DType::f64), rotation = matrix({0.6, -0.8, 0.8, 0.6});
  const int before = warnings("eig") + warnings("eigh") + warnings("svd");
  const auto trace = [](const Tensor& w) { return real(sum(w)); };
  CHECK(difference(gradient([&](const Tensor& x) { return trace(eigvals(x)); }, one), one) < 1e-15);
  CHECK(difference(gradient([&](const Tensor& x) { return trace(eigh(x).values); }, one), one) < 1e-15);
  CHECK(difference(gradient([&](const Tensor& x) { return trace(svd(x).S); }, rotation), rotation) < 1e-15);
  // One vanishing singular value of a real square matrix is as good as any other.
  const Tensor singular = matrix({1, 2, 2, 4.0});
  const auto turn = [](const Tensor& x) { return sum(svd(x).U); };
  CHECK(errors_at(turn, singular + Tensor::from<double>({0, 0, 0, 1e-3}, {2, 2}), 1e-4).first < 1e-8);
  CHECK(finite(gradient(turn, singular)));
  CHECK(warnings("eig") + warnings("eigh") + warnings("svd") == before);
}

TEST_CASE("matrices far from normal") {
  const Tensor A = matrix({1, 1e4, 0, 0.9});
  const EigResult r = eig(A);
  CHECK(difference(matmul(cast(A, DType::c128), r.vectors), r.vectors * unsqueeze(r.values, -2)) < 1e-15);
  const Tensor dA = gradient([](const Tensor& x) { return real(sum(square(eigvals(x)))); }, A);  // of the trace of A^2
  CHECK(difference(dA, 2.0 * transpose(A)) < 1e-9);
  CHECK(spectral_radius(A).item() == doctest::Approx(1).epsilon(1e-14));
  CHECK(difference(gradient([](const Tensor& x) { return spectral_radius(x); }, A), matrix({1, 0, 1e5, 0})) < 1e-9);
}

TEST_CASE("inside a scan: constant matrices leave the loop, others are taken apart at every step") {
  const Tensor T = random({4, 4}, 61), h0 = random({2, 4}, 62), xs = random({3, 4, 4}, 63);
  const Step step = [&](const Tensors& state, const Tensors& x) {
    const Tensor W = T / spectral_radius(T), spectrum = eigvals(W + x[0]);
    const Tensor h = tanh(matmul(state[0], W)) + 0.1 * real(sum(spectrum * spectrum * spectrum));
    return Next{{h}, {spectral_radius(x[0] + matmul(h, h, {.transpose_a = true}))}};
  };
  const auto run = [&](const auto& loop) {
    Tape tape;
    const ScanResult r = loop(step, Tensors{h0}, Tensors{xs}, ScanOptions{}, Loc::current());
    const Tensor loss = sum(square(r.last[0])) + sum(r.ys[0]);
    Tensors out = grad(Tensors{loss}, Tensors{T, h0, xs});
    out.push_back(loss);
    return out;
  };
  const Tensors looped = run(scan), plain = run(unroll);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(difference(looped[i], plain[i]) < 1e-13);
}

TEST_CASE("errors say what is wrong") {
  const Tensor wide = random({2, 3}, 1), flat = random({3}, 1);
  CHECK(contains(error_of([&] { eig(wide); }), "[eig] a square matrix is needed, got 2x3; got f64 (2, 3)"));
  CHECK(contains(error_of([&] { eig(wide); }), "tests/ops/spectral_test.cpp:"));
  CHECK(contains(error_of([&] { eigvals(wide); }), "a square matrix is needed"));
  CHECK(contains(error_of([&] { eigh(wide); }), "[eigh] a square matrix is needed"));
  CHECK(contains(error_of([&] { schur(wide); }), "[schur] a square matrix is needed"));
  CHECK(contains(error_of([&] { spectral_radius(wide); }), "[spectral_radius] a square matrix is needed"));
  CHECK(contains(error_of([&] { eigh(flat); }), "[eigh] a matrix needs two axes or more"));
  CHECK(contains(error_of([&] { svd(flat); }), "[svd] a matrix needs two axes or more"));
  for (double bad : {double(NAN), double(INFINITY)}) {
    Tensor x = random({2, 3, 3}, 1);
    x = x + pad(Tensor::full({1, 1, 1}, bad, DType::f64), 0, 1, 0);
    const Tensor z = cast(x, DType::c128);
    const std::string value = std::isnan(bad) ? "nan" : "inf";
    for (const Tensor& a : {x, z}) {
      CHECK(contains(error_of([&] { eig(a); }), "[eig] all elements must be finite: (0, 0) of matrix 1 is " + value));
      CHECK(contains(error_of([&] { eigh(a); }), "[eigh] all elements must be finite"));
      CHECK(contains(error_of([&] { svd(a); }), "[svd] all elements must be finite"));
      CHECK(contains(error_of([&] { schur(a); }), "[schur] all elements must be finite"));
      CHECK(contains(error_of([&] { spectral_radius(a); }), "[spectral_radius] all elements must be finite"));
    }
  }
  const Tensor A = random({3, 3}, 1);
  Tape tape;
  const std::string text = error_of([&] { grad(real(sum(schur(A).T)), {A}); });
  CHECK(contains(text, "[schur] this op has no derivative, and one was asked for"));
  CHECK(contains(text, "tests/ops/spectral_test.cpp:"));
}

TEST_CASE("warnings are counted by subject and fall silent after five") {
  CapturedErrors captured;
  for (int i = 0; i < 8; ++i) warn("test", fmt::format("number {}", i));
  CHECK(warnings("test") == 8);
  CHECK(warnings("another") == 0);
  const std::string text = captured.text();
  CHECK(text.rfind("[test] warning: number 0\n", 0) == 0);
  CHECK(contains(text, "number 4 (further warnings are not shown)\n"));
  CHECK(!contains(text, "number 5"));
}
