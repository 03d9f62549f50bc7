// What kernels compute of complex numbers, with the number type they have there, against std::complex on the host.
#include <cstring>

#include "backends/cuda/kernels/complex.h"
// The functors come after the number type, whose functions they are to find.
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

template <class R>
std::complex<double> plain(gpu::DeviceComplex<R> z) {
  return {z.real(), z.imag()};
}
template <class R>
std::complex<double> plain(std::complex<R> z) {
  return {z.real(), z.imag()};
}
template <class R>
std::complex<double> plain(R x) {
  return {static_cast<double>(x), 0};
}

/// Numbers in all quadrants, on the axes and branch cuts, from both sides, small and large.
template <class R>
std::vector<std::complex<R>> numbers_to_try() {
  std::vector<std::complex<R>> out;
  for (double re : {0.0, -0.0, 1e-9, 0.3, -0.3, 1.0, -1.0, 1.7, -1.7, 12.0, -12.0}) {
    for (double im : {0.0, -0.0, 1e-9, -1e-9, 0.4, -0.4, 1.0, -1.0, 2.5, -2.5, 11.0})
      out.emplace_back(static_cast<R>(re), static_cast<R>(im));
  }
  return out;
}

template <class F>
F make() {
  if constexpr (std::is_same_v<F, Affine>)
    return {0.7, -0.3};
  else if constexpr (std::is_same_v<F, Power>)
    return {1.5};
  else if constexpr (std::is_same_v<F, Clamp>)
    return {-1, 1};
  else
    return {};
}

void compare(const char* name, std::complex<double> got, std::complex<double> wanted, double tolerance,
             const std::string& of) {
  const bool finite = std::isfinite(wanted.real()) && std::isfinite(wanted.imag());
  if (!finite) return;  // what infinities come to is the libraries' own affair
  const double error = std::abs(got - wanted) / std::max(1.0, std::abs(wanted));
  CHECK_MESSAGE(error < tolerance, fmt::format("{} of {}: {:+.17g}{:+.17g}i, the host has {:+.17g}{:+.17g}i", name, of,
                                               got.real(), got.imag(), wanted.real(), wanted.imag()));
}

template <class R, class... F>
void unary(TypeList<F...>) {
  const double tolerance = sizeof(R) == 4 ? 1e-5 : 1e-12;
  const auto one = [&]<class G>(std::type_identity<G>) {
    if constexpr (takes<G>(dtype_of<std::complex<R>>())) {
      const G f = make<G>();
      for (const auto& z : numbers_to_try<R>())
        compare(G::name, plain(f(gpu::DeviceComplex<R>(z.real(), z.imag()))), plain(f(z)), tolerance,
                fmt::format("{:+g}{:+g}i", z.real(), z.imag()));
    }
  };
  (one(std::type_identity<F>{}), ...);
}

template <class R, class... F>
void binary(TypeList<F...>) {
  const double tolerance = sizeof(R) == 4 ? 2e-4 : 1e-11;  // powers amplify the rounding of a logarithm
  const auto one = [&]<class G>(std::type_identity<G>) {
    if constexpr (takes<G>(dtype_of<std::complex<R>>())) {
      const G f = make<G>();
      for (const auto& z : numbers_to_try<R>()) {
        for (const auto& w : {std::complex<R>(2, 0), std::complex<R>(0.5F, -1), std::complex<R>(-1, 0.25F)})
          compare(G::name,
                  plain(f(gpu::DeviceComplex<R>(z.real(), z.imag()), gpu::DeviceComplex<R>(w.real(), w.imag()))),
                  plain(f(z, w)), tolerance,
                  fmt::format("{:+g}{:+g}i, {:+g}{:+g}i", z.real(), z.imag(), w.real(), w.imag()));
      }
    }
  };
  (one(std::type_identity<F>{}), ...);
}

}  // namespace

TEST_CASE("functions of complex numbers are the host's") {
  unary<float>(UnaryFunctors{});
  unary<double>(UnaryFunctors{});
  binary<float>(BinaryFunctors{});
  binary<double>(BinaryFunctors{});
}

TEST_CASE("complex numbers of kernels lie as the host's do") {
  const gpu::DeviceComplex<double> z(1.5, -2.5);
  double parts[2];
  std::memcpy(parts, &z, sizeof parts);
  CHECK(parts[0] == 1.5);
  CHECK(parts[1] == -2.5);
  CHECK(sizeof(gpu::DeviceComplex<float>) == 8);
}
