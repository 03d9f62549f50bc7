#include "engine/core/shape.h"

#include <algorithm>

#include "engine/core/error.h"

namespace reel {

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > max_rank) rule_error("a tensor has at most {} axes, got {}", max_rank, dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  check();
}

void Shape::refuse() const {
  for (int i = 0; i < rank_; ++i)
    if ((*this)[i] < 0) rule_error("the extent of an axis is 0 or more, got {} for axis {}", (*this)[i], i);
  rule_error("a tensor has at most 2^58 elements, got shape {}", str());
}

std::int64_t Shape::product(int first, int last) const {
  std::int64_t n = 1;
  for (int i = first; i < last; ++i) n *= (*this)[i];
  return n;
}

Shape Shape::insert(int axis, std::int64_t n) const {
  if (rank_ == max_rank) rule_error("a tensor has at most {} axes, {} has no room for another", max_rank, str());
  Shape out = *this;
  std::copy_backward(out.dims_.begin() + axis, out.dims_.begin() + rank_, out.dims_.begin() + rank_ + 1);
  ++out.rank_;
  out.set(axis, n);
  return out;
}

Shape Shape::erase(int axis) const {
  Shape out = *this;
  std::copy(out.dims_.begin() + axis + 1, out.dims_.begin() + rank_, out.dims_.begin() + axis);
  --out.rank_;
  return out;
}

std::string Shape::str() const {
  std::string text = "(";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + (rank_ == 1 ? ",)" : ")");
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int lead = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const std::int64_t m = longer[lead + i], n = shorter[i];
    if (m != n && m != 1 && n != 1) return std::nullopt;
    out.dims_[static_cast<std::size_t>(lead + i)] = m == 1 ? n : m;
  }
  out.check();
  return out;
}

int checked_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) rule_error("axis {} is out of range for a tensor of rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace reel
