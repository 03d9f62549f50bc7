// The extent of a tensor along each axis; row-major, at most eight axes, extents may be 0.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace reel {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  bool operator==(const Shape& other) const;

  std::int64_t numel() const;
  /// The product of the extents of axes first..last-1.
  std::int64_t product(int first, int last) const;
  /// This shape with an axis of extent n put in front of `axis`.
  Shape insert(int axis, std::int64_t n) const;
  /// This shape without `axis`.
  Shape erase(int axis) const;
  /// "(20, 128)"
  std::string str() const;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// The shape both broadcast to (NumPy's rule: aligned at the last axis, 1 stretches), or nothing when they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// Axis counted from the end when negative; throws RuleError when out of range for `rank`.
int checked_axis(std::int64_t axis, int rank);

}  // namespace reel
