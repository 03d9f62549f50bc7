// The right side of products, copied into the order in which libxsmm's code reads it.
#pragma once
#include "backends/cpu/kernels/xsmm_products.h"
#include "engine/device/backend.h"

namespace reel::cpu {

/// b [k, n] as panels [k, width] of its columns, one after the other. Rows of b itself are apart: the processor does
/// not foresee where the next one lies, and if the distance is a power of two they share few sets of the L1 cache. A
/// product has the bits of libxsmm's without a copy.
template <class T>
class Panels {
 public:
  static constexpr std::int64_t width = 128 / sizeof(T);
  /// Can there be panels of T here?
  static bool exist() { return std::is_floating_point_v<T> && xsmm_is_ready(); }
  /// Does libxsmm take several times as long for the last of n columns? AVX2 has no masks for part of a vector, but
  /// instructions for half of one.
  static constexpr bool pads(std::int64_t n) {
    const std::int64_t last = n % lanes<T>;
    return vector_bytes < 64 && last != 0 && 2 * last != lanes<T>;
  }

  Panels(Backend& cpu, const Product<T>& p)
      : k_(p.k),
        n_(p.n),
        memory_(cpu.allocate(static_cast<std::size_t>(k_ * (n_ - n_ % width + padded(n_ % width))) * sizeof(T))) {
    const std::int64_t rest = n_ % width, row = p.transpose_b() ? 1 : p.ldb, column = p.transpose_b() ? p.ldb : 1;
    const auto copy = [&](std::int64_t first, std::int64_t panels, std::int64_t columns) {
      StridedLoop<2> loop;
      loop.push(panels, {width * column, width * k_});
      loop.push(k_, {row, padded(columns)});
      loop.push(columns, {column, 1});
      if (panels * columns > 0) cpu.copy({dtype_of<T>(), loop, p.b + first * column, panel(first)});
    };
    if (padded(rest) > rest) std::fill_n(panel(n_ - rest), k_ * padded(rest), T{});
    copy(0, n_ / width, width);
    copy(n_ - rest, 1, rest);
  }

  /// p.c = p.a b for p.n columns of b from `first` on, a multiple of the width; false if libxsmm has no code for it.
  bool multiply(const Product<T>& p, std::int64_t first = 0) const {
    if constexpr (std::is_floating_point_v<T>) {
      const std::int64_t rest = p.n % width;
      for (std::int64_t i = 0; i < p.m; i += rows) {
        Product<T> q = p.part(i, std::min(p.m, i + rows), 0, p.n);
        q.n = q.ldb = width;
        const auto kernel = p.n >= width ? xsmm_kernel(q, k_, false) : nullptr;
        if (p.n >= width && !kernel) return false;
        for (std::int64_t j = 0; j + width <= p.n; j += width) kernel(panel(first + j), q.a, q.c + j);
        q.c += p.n - rest;
        if (rest > 0 && !multiply_last(q, panel(first + p.n - rest), rest)) return false;
      }
      return true;
    } else {
      return false;
    }
  }

 private:
  static constexpr std::int64_t rows = 64;  // of a at a time, which stay in the cache
  static std::int64_t padded(std::int64_t columns) { return (columns + lanes<T> - 1) / lanes<T> * lanes<T>; }
  T* panel(std::int64_t first) const { return reinterpret_cast<T*>(memory_->data) + first * k_; }
  /// `rows` at most by the last panel, which has few columns.
  bool multiply_last(Product<T> q, const T* b, std::int64_t columns) const {
    T spare[rows * width];
    T* const c = q.c;
    const std::int64_t apart = q.ldc;
    q.n = columns;
    q.ldb = padded(columns);
    if (pads(columns)) q.n = q.ldc = q.ldb, q.c = spare;
    const auto kernel = xsmm_kernel(q, k_, false);
    if (!kernel) return false;
    kernel(b, q.a, q.c);
    for (std::int64_t i = 0; pads(columns) && i < q.m; ++i) std::copy_n(spare + i * q.ldc, columns, c + i * apart);
    return true;
  }

  std::int64_t k_, n_;
  StoragePtr memory_;
};

}  // namespace reel::cpu
