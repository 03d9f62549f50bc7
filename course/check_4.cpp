// Checks assignment 4 against worked numbers and definitions.
#include "course/check.h"
#include "ops/ops.h"
#include COURSE_ANSWER

using namespace course;
using namespace reel;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed) { return uniform(shape, -1, 1, seed, 0, DType::f64); }

double largest(const Tensor& x) { return max(abs(reshape(x, {-1}))).item(); }

/// 0.5^10 = 1/1024
std::string ask_horizon() {
  const double got = answer::horizon(0.5, 1.0 / 1024);
  if (same(10, got)) {
    const double t = answer::horizon(0.9, 0.3), right = 11.427172663391419;  // 0.9^11.427 = 0.3
    return same(right, t) ? "" : "0.9 falls to 0.3 after 11.43 steps: " + differ(right, t) + ". Both numbers matter";
  }
  const std::string why = "0.5 falls to 1/1024 after 10 steps: " + differ(10, got) + ". ";
  if (same(0.1, got)) return why + "That is upside down: modulus^t = share, so t = log(share) / log(modulus)";
  if (same(-10, got)) return why + "Both logarithms are negative, and so their ratio is positive";
  return why + "Solve modulus^t = share for t by logarithms";
}

std::string ask_orthogonal() {
  const Tensor M = random({5, 5}, 1), I = eye(5, DType::f64), W = answer::orthogonal(M);
  if (!(W.shape() == M.shape())) return "expected a matrix of shape (5, 5), got " + W.shape().str();
  const Tensor A = M - transpose(M), right = solve(I + A, I - A);
  if (largest(W - right) < 1e-9) return "";
  if (largest(matmul(transpose(W), W) - I) > 1e-9) {
    if (largest(W - solve(I + M, I - M)) < 1e-9)
      return "W^T W is not I: M is not skew-symmetric, take A = M - M^T first";
    if (largest(W - solve(I + M + transpose(M), I - M - transpose(M))) < 1e-9)
      return "W^T W is not I: A = M + M^T is symmetric; skew-symmetric is M - M^T";
    return "W^T W is not I: its largest difference is " + text(largest(matmul(transpose(W), W) - I));
  }
  return "W is orthogonal, but another matrix: take (I + A)^-1 (I - A)";
}

std::string ask_mingru() {
  const Tensor h = random({2, 3}, 2), x = random({2, 4}, 3), W_z = random({3, 4}, 4), b_z = random({3}, 5),
               W_h = random({3, 4}, 6), b_h = random({3}, 7);
  const Tensor got = answer::mingru(h, x, W_z, b_z, W_h, b_h);
  if (!(got.shape() == h.shape())) return "expected the shape " + h.shape().str() + ", got " + got.shape().str();
  // by plain numbers
  const auto hs = h.values<double>(), xs = x.values<double>(), wz = W_z.values<double>(), bz = b_z.values<double>(),
             wh = W_h.values<double>(), bh = b_h.values<double>(), all = got.values<double>();
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = 0; j < 3; ++j) {
      double a = bz[j], v = bh[j];
      for (std::size_t k = 0; k < 4; ++k) {
        a += wz[j * 4 + k] * xs[b * 4 + k];
        v += wh[j * 4 + k] * xs[b * 4 + k];
      }
      const double z = 1 / (1 + std::exp(-a)), before = hs[b * 3 + j], right = (1 - z) * before + z * v,
                   is = all[b * 3 + j];
      if (same(right, is)) continue;
      const std::string why = "unit " + std::to_string(j) + ": " + differ(right, is) + ". ";
      if (same(z * before + (1 - z) * v, is)) return why + "The gate is the wrong way round: z writes, 1 - z keeps";
      if (same((1 - a) * before + a * v, is)) return why + "The gate needs its sigmoid, which keeps it between 0 and 1";
      if (same((1 - z) * before + z * std::tanh(v), is)) return why + "What is written has no tanh in minGRU";
      if (same(before + z * v, is)) return why + "The old state must fade by 1 - z, or it grows without end";
      return why + "Write the three equations down one by one";
    }
  }
  return "";
}

/// sigmoid(b)^T = 1/2
std::string ask_bias() {
  for (const double T : {1.0, 20.0, 1000.0}) {
    const double got = answer::forget_bias(T), kept = std::pow(1 / (1 + std::exp(-got)), T);
    if (same(0.5, kept)) continue;
    std::string why = "T = " + text(T) + ": expected that half is kept, but it is " + text(kept);
    if (same(std::pow(0.5, 1 / T), got))
      why += ". That is f itself; b is what the sigmoid makes f of: log(f / (1 - f))";
    return why;
  }
  return "";
}

}  // namespace

int main() {
  Check check;
  check.ask("horizon", ask_horizon);
  check.ask("an orthogonal matrix", ask_orthogonal);
  check.ask("minGRU", ask_mingru);
  check.ask("the bias of a forget gate", ask_bias);
  return check.done();
}
