// Mistakes that many make in assignment 1: each gets a sentence of its own.
#pragma once
#include <algorithm>
#include <functional>

#include "course/check.h"
#include "course/toy.h"

namespace toy {

inline Number operator-(const Number& a, const Number& b) { return binary(a, b, a.value - b.value, 1, 1); }

inline Number operator/(const Number& a, const Number& b) {
  return binary(a, b, a.value / b.value, 1 / b.value, -1 / (b.value * b.value));
}

inline Number exp(const Number& x) { return unary(x, std::exp(x.value), x.value * std::exp(x.value - 1)); }

inline Number tanh(const Number& x) { return unary(x, std::tanh(x.value), 1 - x.value * x.value); }

inline Number relu(const Number& x) { return unary(x, std::max(x.value, 0.0), x.value >= 0 ? 1 : 0); }

inline double difference(const std::function<double(double)>& f, double x, double h) { return (f(x + h) - f(x)) / h; }

}  // namespace toy
