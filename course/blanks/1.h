// Assignment 1: five operations for the toy, and differences that check any derivative. Replace each BLANK.
#pragma once
#include <algorithm>
#include <functional>

#include "course/check.h"
#include "course/toy.h"

namespace toy {

/// a - b. Write its value and its two slopes, as + and * in course/toy.h do.
inline Number operator-(const Number& a, const Number& b) { BLANK; }

/// a / b.
inline Number operator/(const Number& a, const Number& b) { BLANK; }

/// The exponential function, std::exp.
inline Number exp(const Number& x) { BLANK; }

/// The hyperbolic tangent, std::tanh.
inline Number tanh(const Number& x) { BLANK; }

/// The larger of x and 0. At 0, where it has no derivative, take 0.
inline Number relu(const Number& x) { BLANK; }

/// The derivative of f at x by a central difference: f at two points, h to the left of x and h to the right of it.
inline double difference(const std::function<double(double)>& f, double x, double h) { BLANK; }

}  // namespace toy
