// Lecture 2: an array of numbers with a shape, stored in row-major order, as a tensor of Reel is.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace arrays {

using Shape = std::vector<std::size_t>;    // the extent of each axis; no axes: a scalar
using Strides = std::vector<std::size_t>;  // of each axis: how many elements further its next index is

struct Array {
  Shape shape;
  std::vector<double> values;  // the last axis varies fastest
};

/// The number of elements.
inline std::size_t count(const Shape& shape) {
  std::size_t n = 1;
  for (const std::size_t extent : shape) n *= extent;
  return n;
}

}  // namespace arrays
