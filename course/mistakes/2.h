// Mistakes that many make in assignment 2: each gets a sentence of its own.
#pragma once
#include <algorithm>

#include "course/array.h"
#include "course/check.h"

namespace arrays {

/// The larger extent, and nothing is refused.
inline Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t back = 1; back <= a.size(); ++back) out[out.size() - back] = a[a.size() - back];
  for (std::size_t back = 1; back <= b.size(); ++back)
    out[out.size() - back] = std::max(out[out.size() - back], b[b.size() - back]);
  return out;
}

/// No zeros where an array is repeated.
inline Strides strides(const Shape& shape, const Shape& out) {
  Strides all(out.size(), 0);
  std::size_t step = 1;
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    all[out.size() - back] = step;
    step *= shape[shape.size() - back];
  }
  return all;
}

/// No broadcasting at all.
inline Array add(const Array& a, const Array& b) {
  Array out = a;
  for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) out.values[i] += b.values[i];
  return out;
}

/// The mean, of two axes at most.
inline Array sum_to(const Array& x, const Shape& shape) {
  Array out{shape, std::vector<double>(count(shape), 0.0)};
  const std::size_t n = count(shape), repeats = count(x.shape) / n;
  for (std::size_t i = 0; i < x.values.size(); ++i) out.values[i % n] += x.values[i] / static_cast<double>(repeats);
  return out;
}

}  // namespace arrays
