// What kernels compute of complex numbers, with the number type they have there, against std::complex on the host.
#include <cstring>
#include <limits>

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
  if (!finite) return;  // has a test case of its own
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

/// The ends of the range, where intermediate results overflow or vanish.
template <class R>
std::vector<R> edges() {
  using Limits = std::numeric_limits<R>;
  const R high = std::log(Limits::max()), inf = Limits::infinity();
  std::vector<R> out{0,
                     Limits::denorm_min(),
                     3 * Limits::min(),
                     R(1e-9),
                     R(0.5),
                     1,
                     R(1.00001),
                     R(2.5),
                     19,
                     21,
                     high - 1,
                     high + R(0.5),
                     2 * high,
                     Limits::max() / 3,
                     Limits::max(),
                     inf};
  for (std::size_t k = 0, n = out.size(); k < n; ++k) out.push_back(-out[k]);
  out.push_back(Limits::quiet_NaN());
  return out;
}

/// Is one part of a result as good as the wanted one, beside another? `signs`: zeros have one.
template <class R>
bool agrees(double got, double wanted, double other, bool signs, double tolerance) {
  if (std::isnan(wanted)) return true;
  if (std::isinf(wanted)) return std::isnan(other) ? std::isinf(got) : got == wanted;
  if (wanted == 0 && got == 0 && signs) return std::signbit(got) == std::signbit(wanted);
  const double step = std::numeric_limits<R>::min();  // subnormal numbers have few digits
  const double size = std::isfinite(other) ? std::max(std::abs(wanted), std::abs(other)) : std::abs(wanted);
  return std::abs(got - wanted) <= tolerance * size + step;
}

template <class G, class R, class... Z>
void compare_at_the_edges(std::complex<double> g, std::complex<double> w, double tolerance, const Z&... of) {
  constexpr bool power = std::is_same_v<G, Power> || std::is_same_v<G, Pow>;
  const bool signs = !power && (... && (std::isfinite(of.real()) && std::isfinite(of.imag())));
  std::string text;
  for (const auto& z : {of...}) text += fmt::format("{:+g}{:+g}i ", z.real(), z.imag());
  CHECK_MESSAGE((agrees<R>(g.real(), w.real(), w.imag(), signs, tolerance) &&
                 agrees<R>(g.imag(), w.imag(), w.real(), signs, tolerance)),
                fmt::format("{} of {}: {:+.17g}{:+.17g}i, the host has {:+.17g}{:+.17g}i", G::name, text, g.real(),
                            g.imag(), w.real(), w.imag()));
}

template <class R, class... F>
void at_the_edges(TypeList<F...>) {
  const auto one = [&]<class G>(std::type_identity<G>) {
    if constexpr (takes<G>(dtype_of<std::complex<R>>())) {
      const G f = make<G>();
      for (const R re : edges<R>()) {
        for (const R im : edges<R>())
          compare_at_the_edges<G, R>(plain(f(gpu::DeviceComplex<R>(re, im))), plain(f(std::complex<R>(re, im))),
                                     sizeof(R) == 4 ? 1e-5 : 1e-12, std::complex<R>(re, im));
      }
    }
  };
  (one(std::type_identity<F>{}), ...);
}

template <class R, class... F>
void pairs_at_the_edges(TypeList<F...>) {
  const auto one = [&]<class G>(std::type_identity<G>) {
    if constexpr (takes<G>(dtype_of<std::complex<R>>())) {
      const G f = make<G>();
      const R inf = std::numeric_limits<R>::infinity();
      for (const R re : edges<R>()) {
        for (const R im : edges<R>()) {
          for (const auto& w : {std::complex<R>(0, 0), std::complex<R>(2, 0), std::complex<R>(R(0.5), -1),
                                std::complex<R>(-1, R(0.25)), std::complex<R>(inf, 0), std::complex<R>(1, -inf)})
            compare_at_the_edges<G, R>(
                plain(f(gpu::DeviceComplex<R>(re, im), gpu::DeviceComplex<R>(w.real(), w.imag()))),
                plain(f(std::complex<R>(re, im), w)), sizeof(R) == 4 ? 2e-4 : 1e-11, std::complex<R>(re, im), w);
        }
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

// The CPU backend's answers are those of C99: what is finite or infinite there is so on a GPU. Where it has NaN
// anything goes, and so do signs of zeros and infinities beside NaN, which C99 leaves open; of powers all signs of
// zeros.
TEST_CASE("functions at infinities, NaN, zeros of both signs, huge and tiny numbers are the host's") {
  at_the_edges<float>(UnaryFunctors{});
  at_the_edges<double>(UnaryFunctors{});
  pairs_at_the_edges<float>(BinaryFunctors{});
  pairs_at_the_edges<double>(BinaryFunctors{});
}

TEST_CASE("complex numbers of kernels lie as the host's do") {
  const gpu::DeviceComplex<double> z(1.5, -2.5);
  double parts[2];
  std::memcpy(parts, &z, sizeof parts);
  CHECK(parts[0] == 1.5);
  CHECK(parts[1] == -2.5);
  CHECK(sizeof(gpu::DeviceComplex<float>) == 8);
}
