// The extent of a tensor along each axis; row-major, at most eight axes, extents may be 0. Every shape is checked on
// construction, so that no product of its extents, in elements or in bytes, overflows std::int64_t.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace reel {

class Shape {
 public:
  static constexpr int max_rank = 8;
  /// The largest product of the extents that are not 0, so that a product of any of them, times 16 bytes, is at most
  /// 2^62.
  static constexpr std::int64_t max_product = std::int64_t{1} << 58;

  Shape() = default;
  /// Throws RuleError when there are more axes than max_rank, an extent is negative, or the product exceeds
  /// max_product.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  bool operator==(const Shape& other) const {  // a loop: for few axes it is faster than memcmp
    bool same = rank_ == other.rank_;
    for (int i = 0; same && i < rank_; ++i) same = (*this)[i] == other[i];
    return same;
  }
  friend std::optional<Shape> broadcast(const Shape& a, const Shape& b);

  std::int64_t numel() const { return product(0, rank_); }
  /// The product of the extents of axes first..last-1.
  std::int64_t product(int first, int last) const;
  /// This shape with an axis of extent n inserted before `axis`.
  Shape insert(int axis, std::int64_t n) const;
  /// This shape without `axis`.
  Shape erase(int axis) const;
  /// Sets the extent of an axis.
  void set(int axis, std::int64_t n) {
    dims_[static_cast<std::size_t>(axis)] = n;
    check();
  }
  /// "(20, 128)"
  std::string str() const;

 private:
  void check() const {
    std::int64_t product = 1;
    bool good = true;
    for (int i = 0; i < rank_; ++i) {
      const std::int64_t n = (*this)[i];
      good &= n >= 0 && !__builtin_mul_overflow(product, n > 0 ? n : 1, &product);
    }
    if (!good || product > max_product) refuse();
  }
  [[noreturn]] void refuse() const;

  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// The shape both broadcast to (NumPy's rule: aligned at the last axis, extents of 1 stretch), or nullopt.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// Saturating arithmetic for extents that users choose: overflow gives the largest std::int64_t, which Shape rejects.
inline std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}
inline std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

/// A negative axis counts from the end; throws RuleError when out of range for `rank`.
int checked_axis(std::int64_t axis, int rank);

}  // namespace reel
