// Linear algebra as the CUDA backend does it, on the host: the libraries' functions are LAPACK's (fake_solver.h) and
// the small kernels are loops, so that what is row-major, column by column, conjugated or one of many is held against
// the CPU's kernels without a GPU.
#include "backends/cuda/linalg/matrices.h"
#include "backends/cuda/linalg/matrix_kernels_by.h"
#include "backends/shared/cpu_fallback.h"
#include "tests/emulator/fake_solver.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

struct Loop1 {
  template <class Body>
  void operator()(std::int64_t n, Body body) const {
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }
};

/// A device whose kernels are loops.
struct Host {
  gpu::Cublas blas = fake_cublas();
  gpu::Cusolver solver = fake_cusolver();
  gpu::MatrixKernelsBy<Loop1> kernels{Loop1{}};
  gpu::Matrices at{backend("cpu"), blas, solver, kernels};
};

constexpr bool has_geev = CUSOLVER_VERSION >= REEL_CUSOLVER_GEEV;
constexpr DType fields[] = {DType::f32, DType::f64, DType::c64, DType::c128};
double tolerance(DType d) { return real_of(d) == DType::f32 ? 2e-4 : 1e-11; }

/// Rubbish, so that nothing is right because it was there.
Tensor unset(const Shape& shape, DType d) {
  return is_differentiable(d) ? Tensor::full(shape, NAN, d) : Tensor::full(shape, d == DType::i32 ? -7 : 1, d);
}

/// Where a result goes: a tensor is a handle.
template <class T = void>
T* to(Tensor t) {
  if constexpr (std::is_void_v<T>)
    return t.data();
  else
    return t.data_as<T>();
}

/// Results of both ways, by `run(out, native)`: out is made of these specs.
void compare(const std::vector<std::pair<Shape, DType>>& specs,
             const std::function<bool(const Tensors& out, bool native)>& run) {
  Tensors wanted, got;
  for (const auto& [shape, d] : specs) {
    wanted.push_back(unset(shape, d));
    got.push_back(unset(shape, d));
  }
  run(wanted, false);
  REQUIRE(run(got, true));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CAPTURE(i);
    CHECK(difference(got[i], wanted[i]) < tolerance(specs[0].second));
  }
}

/// Random matrices with distinct values of all kinds.
Tensor matrices(std::int64_t batch, std::int64_t m, std::int64_t n, DType d, std::uint64_t seed, double diagonal = 0) {
  std::vector<std::complex<double>> v = elements(random({batch, m, n}, seed, d));
  for (std::size_t k = 0; k < v.size(); ++k) {
    const auto place = static_cast<std::int64_t>(k) % (m * n);
    if (place / n == place % n) v[k] += diagonal * (1 + 0.3 * static_cast<double>(place / n));
  }
  return cast(Tensor::from<std::complex<double>>(v, {batch, m, n}), d);
}

/// Calls f(dtype, batch, m, n) for all dtypes and odd shapes.
void each_shape(const std::function<void(DType, std::int64_t, std::int64_t, std::int64_t)>& f, bool square = false) {
  for (const DType d : fields) {
    for (const auto& [m, n] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 2}, {5, 5}, {17, 17}, {7, 3}, {3, 7}, {1, 5}, {6, 1}}) {
      for (const std::int64_t batch : {1, 3}) {
        if (square && m != n) continue;
        CAPTURE(name_of(d));
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(batch);
        f(d, batch, m, n);
      }
    }
  }
}

}  // namespace

TEST_CASE("solve and triangular_solve: all forms, shared operands, right sides of any width") {
  const Host host;
  int forms = 0;
  each_shape(
      [&](DType d, std::int64_t batch, std::int64_t n, std::int64_t) {
        for (int form = 0; form < 32; ++form) {
          const bool upper = form & 1, unit = form & 2, adjoint = form & 4, one_a = form & 8, one_b = form & 16;
          const std::int64_t k = 1 + form % 3 * 2;
          const Tensor a = matrices(one_a ? 1 : batch, n, n, d, 3, 3), b = matrices(one_b ? 1 : batch, n, k, d, 4);
          CAPTURE(form);
          compare({{{batch, n, k}, d}}, [&](const Tensors& out, bool native) {
            const SolveArgs s{d,        adjoint,  n,         k, batch, one_a ? 0 : n * n, one_b ? 0 : n * k,
                              a.data(), b.data(), to(out[0])};
            if (native) return gpu::cusolver_solve(host.at, s);
            backend("cpu").solve(s);
            return true;
          });
          // What is on the other side of the diagonal, and on it for a unit one, is not read.
          std::vector<std::complex<double>> v = elements(a);
          for (std::size_t i = 0; i < v.size(); ++i) {
            const std::int64_t place = static_cast<std::int64_t>(i) % (n * n), row = place / n, column = place % n;
            if (row == column ? unit : upper == (column < row)) v[i] = NAN;
          }
          const Tensor triangle = cast(Tensor::from<std::complex<double>>(v, a.shape()), d);
          compare({{{batch, n, k}, d}}, [&](const Tensors& out, bool native) {
            const TriangularSolveArgs s{d,
                                        upper,
                                        unit,
                                        adjoint,
                                        1e-6,
                                        n,
                                        k,
                                        batch,
                                        one_a ? 0 : n * n,
                                        one_b ? 0 : n * k,
                                        triangle.data(),
                                        b.data(),
                                        to(out[0])};
            if (native) return gpu::cusolver_triangular_solve(host.at, s);
            backend("cpu").triangular_solve(s);
            return true;
          });
          ++forms;
        }
      },
      true);
  CHECK(forms == 4 * 4 * 2 * 32);
}

TEST_CASE("cholesky, lu, qr") {
  const Host host;
  each_shape([&](DType d, std::int64_t batch, std::int64_t m, std::int64_t n) {
    const std::int64_t r = std::min(m, n);
    const Tensor a = matrices(batch, m, n, d, 5);
    compare({{{batch, m, m}, d}, {{batch, m, r}, d}, {{batch, r, n}, d}}, [&](const Tensors& out, bool native) {
      const LuArgs s{d, m, n, batch, a.data(), to(out[0]), to(out[1]), to(out[2])};
      if (native) return gpu::cusolver_lu(host.at, s);
      backend("cpu").lu(s);
      return true;
    });
    compare({{{batch, m, r}, d}, {{batch, r, n}, d}}, [&](const Tensors& out, bool native) {
      const QrArgs s{d, m, n, batch, a.data(), to(out[0]), to(out[1])};
      if (native) return gpu::cusolver_qr(host.at, s);
      backend("cpu").qr(s);
      return true;
    });
    if (m != n) return;
    const Tensor h = matmul(a, conj(a), {.transpose_b = true}) + eye(n, d);
    compare({{{batch, n, n}, d}}, [&](const Tensors& out, bool native) {
      const CholeskyArgs s{d, n, batch, h.data(), to(out[0])};
      if (native) return gpu::cusolver_cholesky(host.at, s);
      backend("cpu").cholesky(s);
      return true;
    });
  });
}

TEST_CASE("determinant: whatever of it is asked for") {
  const Host host;
  each_shape(
      [&](DType d, std::int64_t batch, std::int64_t n, std::int64_t) {
        const Tensor a = matrices(batch, n, n, d, 6);
        for (int wanted = 1; wanted < 8; ++wanted) {
          compare({{{batch}, d}, {{batch}, d}, {{batch}, real_of(d)}}, [&](const Tensors& out, bool native) {
            const auto part = [&](int i) { return wanted & (1 << i) ? to(out[static_cast<std::size_t>(i)]) : nullptr; };
            for (int i = 0; i < 3; ++i) {  // what is not wanted is not written
              if (!part(i))
                backend("cpu").fill(
                    {out[static_cast<std::size_t>(i)].dtype(), batch, 5, to(out[static_cast<std::size_t>(i)])});
            }
            const DeterminantArgs s{d, n, batch, a.data(), part(0), part(1), part(2)};
            if (native) return gpu::cusolver_determinant(host.at, s);
            backend("cpu").determinant(s);
            return true;
          });
        }
      },
      true);
}

TEST_CASE("svd, pinv, polar: tall, wide, square") {
  const Host host;
  each_shape([&](DType d, std::int64_t batch, std::int64_t m, std::int64_t n) {
    const std::int64_t k = std::min(m, n);
    const Tensor a = matrices(batch, m, n, d, 7, 1);
    compare({{{batch, m, k}, d}, {{batch, k}, real_of(d)}, {{batch, k, n}, d}, {{batch, k}, DType::i32}},
            [&](const Tensors& out, bool native) {
              const SvdArgs s{d, batch, m, n, a.data(), to(out[0]), to(out[1]), to(out[2]), to<std::int32_t>(out[3])};
              if (native) return gpu::cusolver_svd(host.at, s);
              backend("cpu").svd(s);
              return true;
            });
    for (const double rcond : {0.0, 0.6}) {  // 0.6 leaves out some
      compare({{{batch, n, m}, d}}, [&](const Tensors& out, bool native) {
        const PinvArgs s{d, m, n, batch, rcond, a.data(), to(out[0])};
        if (native) return gpu::cusolver_pinv(host.at, s);
        backend("cpu").pinv(s);
        return true;
      });
    }
    if (m < n) return;
    compare({{{batch, m, n}, d}}, [&](const Tensors& out, bool native) {
      const PolarFactorArgs s{d, m, n, batch, a.data(), to(out[0])};
      if (native) return gpu::cusolver_polar_factor(host.at, s);
      backend("cpu").polar_factor(s);
      return true;
    });
  });
}

TEST_CASE("eig and eigh: pairs of real matrices, complex ones, vectors in the gauge") {
  const Host host;
  int pairs = 0;
  each_shape(
      [&](DType d, std::int64_t batch, std::int64_t n, std::int64_t) {
        const Tensor a = matrices(batch, n, n, d, 8);
        const DType c = complex_of(d);
        if (has_geev)
          compare({{{batch, n}, c}, {{batch, n, n}, c}, {{batch, n}, DType::i32}, {{batch}, DType::boolean}},
                  [&](const Tensors& out, bool native) {
                    const EigArgs s{
                        d, batch, n, a.data(), to(out[0]), to(out[1]), to<std::int32_t>(out[2]), to<bool>(out[3])};
                    if (!native) return backend("cpu").eig(s) == 0;
                    const bool good = gpu::cusolver_eig(host.at, s) == 0;
                    const auto w = elements(out[0]);
                    for (std::size_t j = 0; j + 1 < w.size(); ++j)
                      pairs += w[j].imag() > 0 && w[j + 1] == std::conj(w[j]);
                    return good;
                  });
        compare({{{batch, n}, real_of(d)}, {{batch, n, n}, d}, {{batch, n}, DType::i32}},
                [&](const Tensors& out, bool native) {
                  const EighArgs s{d, batch, n, a.data(), to(out[0]), to(out[1]), to<std::int32_t>(out[2])};
                  if (native) return gpu::cusolver_eigh(host.at, s);
                  backend("cpu").eigh(s);
                  return true;
                });
      },
      true);
  if (has_geev) CHECK(pairs > 20);
}

TEST_CASE("vectors that are no basis are counted, as the CPU counts them") {
  if (!has_geev) return;
  const Host host;
  const Tensor a = Tensor::from<double>({2, 1, 0, 2, 1, 2, 3, 4, 0, 1, 0, 0}, {3, 2, 2});
  const Tensor values = unset({3, 2}, DType::c128), vectors = unset({3, 2, 2}, DType::c128),
               places = unset({3, 2}, DType::i32), independent = unset({3}, DType::boolean);
  const EigArgs s{DType::f64, 3, 2, a.data(), to(values), to(vectors), to<std::int32_t>(places), to<bool>(independent)};
  CHECK(gpu::cusolver_eig(host.at, s) == 2);
  CHECK(independent.values<bool>() == std::vector<bool>{false, true, false});
  CHECK(backend("cpu").eig(s) == 2);
  CHECK(independent.values<bool>() == std::vector<bool>{false, true, false});
}

TEST_CASE("what is wrong is noticed, and left to the CPU's kernel") {
  const Host host;
  const auto square = [](std::initializer_list<double> v) { return Tensor::from<double>(v, {1, 2, 2}); };
  const Tensor good = square({2, 1, 1, 3}), singular = square({1, 2, 2, 4}), nan = square({1, NAN, 2, 3}),
               infinite = square({1, 2, INFINITY, 4}), huge = square({1e200, 0, 0, 1e200}),
               tiny = square({1, 2, 0, 1e-9});
  const Tensor out = unset({1, 2, 2}, DType::f64), more = unset({1, 2, 2}, DType::f64),
               third = unset({1, 2, 2}, DType::f64), places = unset({1, 2}, DType::i32),
               complex = unset({1, 2, 2}, DType::c128), values = unset({1, 2}, DType::c128);
  bool independent = false;
  std::int32_t* const largest = to<std::int32_t>(places);
  const DType d = DType::f64;
  const auto solve = [&](const Tensor& a, const Tensor& b) {
    return gpu::cusolver_solve(host.at, {d, false, 2, 2, 1, 4, 4, a.data(), b.data(), to(out)});
  };
  const auto triangular = [&](const Tensor& a, const Tensor& b, bool upper, bool unit) {
    return gpu::cusolver_triangular_solve(host.at,
                                          {d, upper, unit, false, 1e-6, 2, 2, 1, 4, 4, a.data(), b.data(), to(out)});
  };
  const auto lu = [&](const Tensor& a) {
    return gpu::cusolver_lu(host.at, {d, 2, 2, 1, a.data(), to(out), to(more), to(third)});
  };
  const auto qr = [&](const Tensor& a) { return gpu::cusolver_qr(host.at, {d, 2, 2, 1, a.data(), to(out), to(more)}); };
  const auto cholesky = [&](const Tensor& a) { return gpu::cusolver_cholesky(host.at, {d, 2, 1, a.data(), to(out)}); };
  const auto determinant = [&](const Tensor& a) {
    return gpu::cusolver_determinant(host.at, {d, 2, 1, a.data(), to(out), nullptr, nullptr});
  };
  const auto eigh = [&](const Tensor& a) {
    return gpu::cusolver_eigh(host.at, {d, 1, 2, a.data(), to(out), to(more), largest});
  };
  const auto eig = [&](const Tensor& a) {
    return gpu::cusolver_eig(host.at, {d, 1, 2, a.data(), to(values), to(complex), largest, &independent}).has_value();
  };
  const auto svd = [&](const Tensor& a) {
    return gpu::cusolver_svd(host.at, {d, 1, 2, 2, a.data(), to(out), to(more), to(third), largest});
  };
  const auto pinv = [&](const Tensor& a) {
    return gpu::cusolver_pinv(host.at, {d, 2, 2, 1, 1e-15, a.data(), to(out)});
  };
  const auto polar = [&](const Tensor& a) {
    return gpu::cusolver_polar_factor(host.at, {d, 2, 2, 1, a.data(), to(out)});
  };
  CHECK((solve(good, good) && triangular(good, good, true, false) && lu(good) && qr(good) && cholesky(good) &&
         determinant(good) && eigh(good) && eig(good) == has_geev && svd(good) && pinv(good) && polar(good)));
  for (const Tensor& bad : {nan, infinite}) {
    CHECK(!solve(bad, good));
    CHECK(!solve(good, bad));
    CHECK(!triangular(good, bad, true, false));
    CHECK(!lu(bad));
    CHECK(!qr(bad));
    CHECK(!cholesky(bad));
    CHECK(!determinant(bad));
    CHECK(!eigh(bad));
    CHECK(!eig(bad));
    CHECK(!svd(bad));
    CHECK(!pinv(bad));
    CHECK(!polar(bad));
  }
  CHECK(!triangular(nan, good, true, false));  // above the diagonal
  CHECK(triangular(nan, good, false, false));
  CHECK(!triangular(infinite, good, false, false));
  CHECK(triangular(infinite, good, true, false));
  CHECK(!triangular(tiny, good, true, false));  // of a diagonal beyond the tolerance
  CHECK(triangular(tiny, good, true, true));
  CHECK(!triangular(square({1, 0, 0, 0}), good, true, false));
  CHECK(!solve(singular, good));
  CHECK(!determinant(singular));
  CHECK(!determinant(huge));
  CHECK(!cholesky(square({1, 2, 2, 1})));
  CHECK(!polar(singular));
  CHECK(!solve(square({1e-200, 0, 0, 1e-200}), huge));  // overflows
  CHECK(!triangular(square({1e-200, 0, 0, 1e-200}), huge, true, false));
}

TEST_CASE("triangular_solve while kernels are captured: what is wrong is noted, not waited for") {
  const Host host;
  gpu::FaultSlot fault = ~gpu::FaultSlot{0};
  const gpu::Matrices at{backend("cpu"), host.blas, host.solver, host.kernels, &fault};
  const Tensor b = Tensor::from<double>({1, 2}, {2, 1}), x = unset({2, 1}, DType::f64);
  const auto run = [&](std::initializer_list<double> a) {
    const Tensor triangle = Tensor::from<double>(a, {2, 2});
    CHECK(gpu::cusolver_triangular_solve(
        at, {DType::f64, false, false, false, 0, 2, 1, 1, 4, 2, triangle.data(), b.data(), to(x)}));
  };
  run({2, 0, 1, 4});
  CHECK(fault == ~gpu::FaultSlot{0});
  CHECK(x.values<double>() == std::vector<double>{0.5, 0.375});
  run({2, 0, 1, 0});
  CHECK(fault != ~gpu::FaultSlot{0});
  CHECK(gpu::fault_text({"triangular_solve", gpu::Lookup::of_matrices}, fault) ==
        "a matrix is singular, or not finite");
  run({2, 0, 1, 4});  // a fault stays until it is told
  CHECK(fault != ~gpu::FaultSlot{0});
}

TEST_CASE("through the CPU: arguments go down, results come up, what is not wanted stays away") {
  Backend& device = backend("cpu");  // any device that reads and writes
  const DType d = DType::c128;
  const Tensor a = matrices(2, 3, 3, d, 9);
  const Tensor sign = unset({2}, d), log_abs = unset({2}, DType::f64), wanted = unset({2}, d),
               wanted_log = unset({2}, DType::f64);
  const DeterminantArgs s{d, 3, 2, a.data(), nullptr, to(sign), to(log_abs)};
  cpu_fallback(device, &Backend::determinant, s);
  device.determinant({d, 3, 2, a.data(), nullptr, to(wanted), to(wanted_log)});
  CHECK(difference(sign, wanted) == 0);
  CHECK(difference(log_abs, wanted_log) == 0);
  const Tensor block = Tensor::from<double>({2, 1, 0, 2}, {1, 2, 2});
  const Tensor values = unset({1, 2}, d), vectors = unset({1, 2, 2}, d), places = unset({1, 2}, DType::i32),
               independent = unset({1}, DType::boolean);
  const EigArgs e{DType::f64,           1, 2, block.data(), to(values), to(vectors), to<std::int32_t>(places),
                  to<bool>(independent)};
  CHECK(cpu_fallback(device, &Backend::eig, e) == 1);
  CHECK(difference(values, Tensor::full({1, 2}, 2, d)) < 1e-12);
  CHECK(!independent.values<bool>()[0]);
}
