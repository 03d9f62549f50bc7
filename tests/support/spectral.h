// Shared by the tests of spectra: derivatives of a scalar of one matrix, and what is written to stderr.
#pragma once
#include <unistd.h>

#include <cstdio>

#include "ops/spectral_parts.h"
#include "tests/support/check.h"

namespace reel::test {

/// What is written to stderr while it lives.
class CapturedErrors {
 public:
  CapturedErrors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~CapturedErrors() {
    restore();
    std::fclose(file_);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  std::string text() {
    restore();
    std::rewind(file_);
    std::string out;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) out += static_cast<char>(c);
    return out;
  }

 private:
  void restore() {
    if (before_ < 0) return;
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    before_ = -1;
  }
  std::FILE* file_;
  int before_;
};

using Scalar = std::function<Tensor(const Tensor&)>;

/// Gradient and gradient of gradient of the real scalar f at x along random directions of length 1, against central
/// differences of step h, extrapolated.
inline GradErrors errors_at(const Scalar& f, const Tensor& x, double h) {
  const auto direction = [&](std::uint64_t seed) {
    const Tensor d = random(x.shape(), seed, x.dtype());
    return d * (1 / std::sqrt(inner(d, d).item()));
  };
  const Tensor u = direction(901), v = direction(902);
  const auto slope = [&](const Tensor& at) {
    Tape tape;
    return inner(v, grad(Tensors{f(at)}, Tensors{at})[0]).item();
  };
  const auto derivative = [&](const std::function<double(const Tensor&)>& g, const Tensor& along) {
    const auto central = [&](double step) { return (g(x + along * step) - g(x - along * step)) / (2 * step); };
    return (4 * central(h / 2) - central(h)) / 3;
  };
  const auto relative = [](double a, double b) { return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-3}); };
  GradErrors errors;
  errors.first = relative(slope(x), derivative([&](const Tensor& at) { return f(at).item(); }, v));
  Tape tape;
  const Tensor s = inner(v, grad(Tensors{f(x)}, Tensors{x}, {.create_graph = true})[0]);
  errors.second = relative(inner(u, grad(Tensors{s}, Tensors{x})[0]).item(), derivative(slope, u));
  return errors;
}

inline Tensor gradient(const Scalar& f, const Tensor& x) {
  Tape tape;
  return grad(Tensors{f(x)}, Tensors{x})[0];
}

inline bool finite(const Tensor& x) {
  for (const std::complex<double>& v : elements(x)) {
    if (!std::isfinite(v.real()) || !std::isfinite(v.imag())) return false;
  }
  return true;
}

/// Value, gradient and gradient of gradient are finite.
inline bool all_finite(const Scalar& f, const Tensor& x) {
  Tape tape;
  const Tensor y = f(x);
  const Tensor g = grad(Tensors{y}, Tensors{x}, {.create_graph = true})[0];
  return finite(y) && finite(g) && finite(grad(Tensors{inner(random(x.shape(), 903, x.dtype()), g)}, Tensors{x})[0]);
}

inline Tensor matrix(std::initializer_list<double> values) {
  const auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(values.size())));
  return Tensor::from<double>(values, {n, n});
}

}  // namespace reel::test
