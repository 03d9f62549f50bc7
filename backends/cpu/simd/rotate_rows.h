// One layer of plane rotations, or of exchanges only. Partners are contiguous as whole vectors, or lie within one
// vector, which is then shuffled; complex numbers are pairs of real ones.
#pragma once
#include <algorithm>

#include "backends/cpu/simd/vectors.h"

namespace reel::cpu {

/// An exchange: each element, at index j (in components) with value x, becomes its partner `other`. An element has
/// `parts` components of type T.
template <class T, std::int64_t parts>
struct Exchanged {
  void one(std::int64_t, const T*, const T* other, T* out) const { std::copy_n(other, parts, out); }
  auto at(std::int64_t) const {
    return [](Vector<T>, Vector<T> other) { return other; };
  }
};

/// A rotation: c x + s x', where x' is the partner of x.
template <class T, std::int64_t parts>
struct Turned {
  const T *c, *s;

  void one(std::int64_t j, const T* x, const T* other, T* out) const {
    if constexpr (parts == 1) {
      *out = times_plus(c[j], *x, s[j] * *other);
    } else {
      const T re = real_product(c + j, x) + real_product(s + j, other),
              im = imag_product(c + j, x) + imag_product(s + j, other);
      out[0] = re;
      out[1] = im;
    }
  }
  auto at(std::int64_t j) const {
    return [cs = load(c + j), ss = load(s + j)](Vector<T> x, Vector<T> other) {
      if constexpr (parts == 1)
        return times_plus(cs, x, ss * other);
      else
        return times(cs, x) + times(ss, other);
    };
  }
  static T real_product(const T* a, const T* x) { return times_plus(a[0], x[0], -(a[1] * x[1])); }
  static T imag_product(const T* a, const T* x) { return times_plus(a[0], x[1], a[1] * x[0]); }
  static Vector<T> times(Vector<T> a, Vector<T> x) {
    return times_plus(real_twice<T>(a), x, imag_twice<T>(a) * turned<T>(x));
  }
};

/// Rows of n: blocks of 2 d components from `first` to `last`.
template <class T, std::int64_t parts, class F>
class Layer {
 public:
  Layer(std::int64_t n, std::int64_t first, std::int64_t last, std::int64_t distance, const F& f)
      : n_(parts * n), first_(parts * first), last_(parts * last), d_(parts * distance), f_(f) {}

  void rows(std::int64_t count, const T* x, T* out) const {
    if (d_ >= lanes<T>) {
      for (std::int64_t p = first_; p < last_; p += 2 * d_) halves(p, count, x, out);
    } else if (last_ - first_ < lanes<T> || !within(count, x, out)) {
      for (std::int64_t row = 0; row < count; ++row) pairs(x + row * n_, out + row * n_);
    }
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t j = 0; j < first_; j += parts) alone(j, x + row * n_, out + row * n_);
      for (std::int64_t j = last_; j < n_; j += parts) alone(j, x + row * n_, out + row * n_);
    }
  }

 private:
  void alone(std::int64_t j, const T* x, T* out) const { f_.one(j, x + j, x + j, out + j); }
  void pairs(const T* x, T* out) const {
    for (std::int64_t p = first_; p < last_; p += 2 * d_) {
      for (std::int64_t j = p; j < p + d_; j += parts) {
        f_.one(j, x + j, x + j + d_, out + j);
        f_.one(j + d_, x + j + d_, x + j, out + j + d_);
      }
    }
  }
  /// Calls at(index) for first, first + lanes, ...; the last vector overlaps if the range is no multiple of lanes.
  template <class At>
  static void each(std::int64_t first, std::int64_t last, At&& at) {
    std::int64_t j = first;
    for (; j + lanes<T> <= last; j += lanes<T>) at(j);
    if (j < last) at(last - lanes<T>);
  }
  void halves(std::int64_t p, std::int64_t count, const T* x, T* out) const {
    each(p, p + d_, [&](std::int64_t j) {
      const auto first = f_.at(j), second = f_.at(j + d_);
      for (std::int64_t i = j; i < count * n_; i += n_) {
        const Vector<T> a = load(x + i), b = load(x + i + d_);
        store(out + i, first(a, b));
        store(out + i + d_, second(b, a));
      }
    });
  }
  template <std::int64_t d>
  void shuffle(std::int64_t count, const T* x, T* out) const {
    each(first_, last_, [&](std::int64_t j) {
      const auto f = f_.at(j);
      for (std::int64_t i = j; i < count * n_; i += n_) {
        const Vector<T> v = load(x + i);
        store(out + i, f(v, across<T, d>(v)));
      }
    });
  }
  /// Rotates blocks that fit within a vector; false if they do not.
  template <std::int64_t d = parts>
  bool within(std::int64_t count, const T* x, T* out) const {
    if constexpr (2 * d > lanes<T>) {
      return false;
    } else {
      if (d_ != d) return within<2 * d>(count, x, out);
      shuffle<d>(count, x, out);
      return true;
    }
  }

  const std::int64_t n_, first_, last_, d_;
  const F& f_;
};

}  // namespace reel::cpu
