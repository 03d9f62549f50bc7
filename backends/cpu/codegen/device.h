// What compiled fusion groups include: SIMD batches, the functors, and loads of a part of a row.
#pragma once
#include "backends/cpu/simd/simd.h"
#include "backends/shared/place.h"
#include "engine/device/kernels.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cpu {

/// The functor at an index of its list.
template <int i>
using Unary = typename Place<i, UnaryFunctors>::type;
template <int i>
using Binary = typename Place<i, BinaryFunctors>::type;

/// The same value, of which the compiler does not see where it is from: it would contract products and sums of two
/// calls to one operation with one rounding, and the interpreter rounds twice.
template <class V>
V fixed(V v) {
  asm("" : "+v"(v.data));
  return v;
}

/// Elements c, c + 1, ... of a row; the last batch of a row (Part is true) has only n - c of them, then zeros.
template <class V, class Part, class T>
V load(Part, const T* row, std::int64_t c, std::int64_t n) {
  if constexpr (!Part::value) {
    return V::load_unaligned(row + c);
  } else {
    alignas(64) T some[V::size] = {};
    std::copy(row + c, row + n, some);
    return V::load_aligned(some);
  }
}

/// Elements c - shift, c - shift + 1, ... of a row of n, which wraps around; 0 < shift < n.
template <class V, class Part, class T>
V load_rolled(Part part, const T* row, std::int64_t c, std::int64_t shift, std::int64_t n) {
  const std::int64_t size = Part::value ? n - c : static_cast<std::int64_t>(V::size);
  if (!Part::value && c >= shift) return V::load_unaligned(row + c - shift);
  if (!Part::value && c + size <= shift) return V::load_unaligned(row + c - shift + n);
  alignas(64) T some[V::size] = {};
  for (std::int64_t i = 0; i < size; ++i) some[i] = row[c + i >= shift ? c + i - shift : c + i - shift + n];
  return V::load_aligned(some);
}

template <class V, class Part, class T>
void store(Part, V v, T* row, std::int64_t c, std::int64_t n) {
  if constexpr (!Part::value) {
    v.store_unaligned(row + c);
  } else {
    alignas(64) T some[V::size];
    v.store_aligned(some);
    std::copy(some, some + (n - c), row + c);
  }
}

}  // namespace reel::cpu
