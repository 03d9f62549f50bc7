// Checks assignment 3: each derivative against the engine's own gradient, which its tests hold against differences.
#include <map>

#include "course/check.h"
#include "ops/ops.h"
#include COURSE_ANSWER

using namespace course;
using namespace reel;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed) { return uniform(shape, -1, 1, seed, 0, DType::f64); }
Tensor random_complex(const Shape& shape, std::uint64_t seed) {
  return complex(random(shape, seed), random(shape, seed + 100));
}

bool equal_to(const Tensor& a, const Tensor& b) {
  return a.defined() && a.shape() == b.shape() && a.dtype() == b.dtype() &&
         max(abs(reshape(a - b, {-1}))).item() < 1e-9;
}

struct Mistake {
  Tensor value;
  std::string sentence;
};

/// Why a gradient is wrong; nothing if it is right.
std::string judge(const std::string& which, const Tensor& expected, const Tensor& got,
                  const std::vector<Mistake>& mistakes) {
  if (equal_to(got, expected)) return "";
  if (!got.defined()) return which + " is missing";
  if (!(got.shape() == expected.shape())) {
    std::string why = which + ": expected the shape " + expected.shape().str() + ", got " + got.shape().str();
    for (const Mistake& m : mistakes)
      if (equal_to(got, m.value)) why += ". " + m.sentence;
    return why;
  }
  if (equal_to(-got, expected)) return which + ": the sign is wrong";
  for (const Mistake& m : mistakes)
    if (equal_to(got, m.value)) return which + ": " + m.sentence;
  return which + " is wrong: its first element should be " + text(real(reshape(expected, {-1})).values<double>()[0]) +
         ", and is " + text(real(reshape(got, {-1})).values<double>()[0]);
}

std::string ask_tanh() {
  const Tensor x = random({3, 4}, 1), dy = random({3, 4}, 2);
  const Tape tape;
  const Tensor y = tanh(x);
  const Tensor right = grad({y}, {x}, {.cotangents = {dy}})[0];
  const NoGrad pause;
  return judge("the gradient of x", right, answer::tanh_backward(x, y, dy),
               {{1 - y * y, "the factor dy is missing: the gradient of the result comes in, and is passed on"},
                {dy * (1 - x * x), "the square is that of the result: 1 - y^2, not 1 - x^2"},
                {dy * (1 - y), "the result must be squared: 1 - y^2"},
                {dy * y, "that multiplies by the value; multiply by the slope, 1 - y^2"}});
}

std::string ask_mul(const Tensor& a, const Tensor& b, const Tensor& dy) {
  const Tape tape;
  const Tensor y = a * b;
  const Tensors right = grad(Tensors{y}, Tensors{a, b}, {.cotangents = {dy}});
  const NoGrad pause;
  const Tensors got = answer::mul_backward(a, b, dy);
  if (got.size() != 2) return "two gradients are expected, that of a and that of b";
  const bool is_c = is_complex(a.dtype());
  std::vector<Mistake> of_a{{dy * a, "the slope with respect to a is b"}, {b, "the factor dy is missing"}},
      of_b{{dy * b, "the slope with respect to b is a"}, {a, "the factor dy is missing"}};
  if (is_c) {
    of_a.push_back({dy * b, "the conjugate is missing: a complex slope s hands on dy * conj(s)"});
    of_b.push_back({dy * a, "the conjugate is missing: a complex slope s hands on dy * conj(s)"});
  }
  const std::string why = judge("the gradient of a", right[0], got[0], of_a);
  return why.empty() ? judge("the gradient of b", right[1], got[1], of_b) : why;
}

/// For A [n, k] and B [k, m]; where all are squares, shapes cannot show what is wrong.
std::string ask_matmul(std::int64_t n, std::int64_t k, std::int64_t m) {
  const Tensor A = random({n, k}, 5), B = random({k, m}, 6), dY = random({n, m}, 7);
  const Tape tape;
  const Tensors right = grad(Tensors{matmul(A, B)}, Tensors{A, B}, {.cotangents = {dY}});
  const NoGrad pause;
  const Tensors got = answer::matmul_backward(A, B, dY);
  if (got.size() != 2) return "two gradients are expected, that of A and that of B";
  std::vector<Mistake> of_A, of_B;
  if (n == k && k == m) {
    of_A = {{matmul(dY, B), "B must be transposed"}, {matmul(transpose(B), dY), "the factors are in the wrong order"}};
    of_B = {{matmul(A, dY), "A must be transposed"}, {matmul(dY, transpose(A)), "the factors are in the wrong order"}};
  }
  const std::string why = judge("the gradient of A", right[0], got[0], of_A);
  return why.empty() ? judge("the gradient of B", right[1], got[1], of_B) : why;
}

/// Compares the sweep of f(xs) with the engine's.
std::string ask_sweep(const std::function<Tensor(const Tensors&)>& f, const Tensors& xs,
                      const std::vector<std::string>& names, const std::string& hint) {
  const Tape tape;
  const Tensor y = f(xs);
  const Tensors right = grad({y}, xs);
  const NoGrad pause;  // a sweep that forgets it would write on the tape that it reads
  std::map<std::uint64_t, Tensor> got;
  try {
    got = answer::sweep(tape, y);
  } catch (const Error& e) {
    return std::string(e.what()) + ". " + hint;
  }
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto found = got.find(xs[i].id());
    if (found == got.end()) return "the gradient of " + names[i] + " is missing";
    if (const std::string why = judge("the gradient of " + names[i], right[i], found->second, {}); !why.empty())
      return why + ". " + hint;
  }
  return "";
}

}  // namespace

int main() {
  Check check;
  check.ask("tanh", ask_tanh);
  check.ask("a * b, real", [] { return ask_mul(random({5}, 3), random({5}, 4), random({5}, 8)); });
  check.ask("a * b, complex",
            [] { return ask_mul(random_complex({5}, 3), random_complex({5}, 4), random_complex({5}, 8)); });
  check.ask("the product of matrices", [] {
    const std::string why = ask_matmul(3, 3, 3);
    return why.empty() ? ask_matmul(2, 3, 4) : why;
  });
  check.ask("sweep: a chain", [] {
    return ask_sweep([](const Tensors& x) { return sum(tanh(exp(x[0]))); }, {random({3}, 9)}, {"x"},
                     "Go from the last operation to the first");
  });
  check.ask("sweep: a value that is used twice", [] {
    return ask_sweep([](const Tensors& x) { return sum(tanh(x[0]) * x[0]); }, {random({3}, 10)}, {"x"},
                     "A value that is used twice gets the sum of both gradients: add, do not replace");
  });
  check.ask("sweep: broadcasting", [] {
    return ask_sweep([](const Tensors& x) { return sum(x[0] * x[1]); }, {random({2, 3}, 11), random({3}, 12)},
                     {"a", "b"}, "Use sum_to: the gradient of a value has the shape of the value");
  });
  check.ask("sweep: operations that the result does not depend on", [] {
    return ask_sweep(
        [](const Tensors& x) {
          const Tensor unused = exp(x[0]);
          return sum(x[0] * x[0]);
        },
        {random({3}, 13)}, {"x"}, "Skip an operation whose result has no gradient");
  });
  return check.done();
}
