// Lecture 1: a tape for scalars. It records each operation with its slopes, and goes back through them for the
// gradient.
#pragma once
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace toy {

/// One operation: where its inputs stand on the tape, and the derivative of its result with respect to each.
struct Node {
  std::size_t a, b;
  double slope_a, slope_b;
};

/// The operations in the order in which they ran. An input of the computation is a node, too, with slopes of 0.
using Tape = std::vector<Node>;

/// A number that knows its node.
struct Number {
  double value;
  Tape* tape;
  std::size_t at;
};

/// Puts an operation on the tape and returns its result.
inline Number record(Tape& tape, double value, const Node& node) {
  tape.push_back(node);
  return {value, &tape, tape.size() - 1};
}

/// An input of the computation.
inline Number input(Tape& tape, double value) { return record(tape, value, {0, 0, 0, 0}); }

/// The tape of both numbers. Throws std::invalid_argument if they have different ones.
inline Tape& shared(const Number& a, const Number& b) {
  if (a.tape != b.tape) throw std::invalid_argument("the numbers are on different tapes");
  return *a.tape;
}

/// An operation of one number: its value and its slope.
inline Number unary(const Number& x, double value, double slope) {
  return record(*x.tape, value, {x.at, x.at, slope, 0});
}

/// An operation of two numbers.
inline Number binary(const Number& a, const Number& b, double value, double slope_a, double slope_b) {
  return record(shared(a, b), value, {a.at, b.at, slope_a, slope_b});
}

inline Number operator+(const Number& a, const Number& b) { return binary(a, b, a.value + b.value, 1, 1); }
inline Number operator*(const Number& a, const Number& b) { return binary(a, b, a.value * b.value, b.value, a.value); }
inline Number sin(const Number& x) { return unary(x, std::sin(x.value), std::cos(x.value)); }

/// The derivative of y with respect to every node of its tape.
inline std::vector<double> gradient(const Number& y) {
  const Tape& tape = *y.tape;
  std::vector<double> d(tape.size(), 0.0);
  d[y.at] = 1;
  for (std::size_t i = y.at + 1; i-- > 0;) {  // from the last operation to the first
    d[tape[i].a] += d[i] * tape[i].slope_a;
    d[tape[i].b] += d[i] * tape[i].slope_b;
  }
  return d;
}

}  // namespace toy
