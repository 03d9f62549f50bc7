// The reduction kernel, by the plan of reduce_plan.h: reduce.cu launches it, and a test runs it on the host.
#pragma once
#include "backends/cuda/kernels/reduce_ops.h"
#include "backends/cuda/kernels/reduce_plan.h"

namespace reel::cuda {

/// The value of another lane of the warp.
template <class T>
__device__ T of_lane(T x, int distance) {
  if constexpr (is_complex_type<T>)
    return T(of_lane(x.real(), distance), of_lane(x.imag(), distance));
  else if constexpr (sizeof(T) < sizeof(int))
    return static_cast<T>(__shfl_xor_sync(0xffffffffU, static_cast<int>(x), distance));
  else
    return __shfl_xor_sync(0xffffffffU, x, distance);
}

/// Reduces elements `lane`, lane + lanes, ... of n, with several independent accumulators, so that loads do not wait
/// for each other. take(r) loads the r-th.
template <class Rule, class W, int at_once, class Take>
__device__ W fold_strided(std::int64_t n, int lane, int lanes, Take take) {
  W part[at_once];
#pragma unroll
  for (int k = 0; k < at_once; ++k) part[k] = Rule::template neutral<W>();
  std::int64_t r = lane;
  for (; r + (at_once - 1) * lanes < n; r += at_once * lanes) {
    decltype(take(r)) x[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) x[k] = take(r + k * lanes);
#pragma unroll
    for (int k = 0; k < at_once; ++k) part[k] = x[k].template onto<Rule>(part[k]);
  }
  for (; r < n; r += lanes) part[0] = take(r).template onto<Rule>(part[0]);
#pragma unroll
  for (int k = 1; k < at_once; ++k) part[0] = Rule::combine(part[0], part[k]);
  return part[0];
}

/// Elements that a thread has loaded, to be reduced into its total.
template <class In, int n>
struct Read {
  AlignedVector<In, n> x;
  template <class Rule, class W>
  __device__ W onto(W total) const {
#pragma unroll
    for (int k = 0; k < n; ++k) total = Rule::combine(total, widened<W>(x.at[k]));
    return total;
  }
};

/// Stage one reads `in` as the plan says and writes results to `out`, or partial ones to `parts` [results x splits];
/// stage two (`gathers`) reduces those. Contiguous elements of a row are taken `per` at a time, with one load if they
/// are `aligned`.
template <class Rule, int per, class In, class W, class Out>
__global__ void reduce(ReducePlan p, bool gathers, bool aligned, const In* in, W* parts, Out* out) {
  alignas(16) __shared__ unsigned char memory[threads_per_block * sizeof(W)];
  W* const room = reinterpret_cast<W*>(memory);
  const int t = static_cast<int>(threadIdx.x);
  const int lane = p.rows ? t % p.down : t / p.across, column = p.rows ? t / p.down : t % p.across;
  const bool in_warp = p.rows && p.down <= 32;  // the threads of a result are lanes of one warp
  const std::int64_t groups = (p.results + p.across - 1) / p.across;
  for (std::int64_t b = blockIdx.x; b < groups * p.splits; b += gridDim.x) {
    const std::int64_t split = b / groups, o = b % groups * p.across + column;
    W total = Rule::template neutral<W>();
    std::int64_t at[2] = {};
    if (o < p.results) {
      p.kept.offsets(static_cast<std::uint32_t>(o), at);
      const std::int64_t base = gathers ? o * p.count : at[0], first = split * p.per_split,
                         last = first + p.per_split < p.count ? first + p.per_split : p.count;
      if constexpr (per > 1) {
        const In* const x = in + base + first;
        const std::int64_t whole = (last - first) / per;
        total = fold_strided<Rule, W, 4>(whole, lane, p.down, [&](std::int64_t r) {
          if (aligned) return Read<In, per>{reinterpret_cast<const AlignedVector<In, per>*>(x)[r]};
          Read<In, per> y;
#pragma unroll
          for (int k = 0; k < per; ++k) y.x.at[k] = x[r * per + k];
          return y;
        });
        for (std::int64_t r = whole * per + lane; r < last - first; r += p.down)
          total = Rule::combine(total, widened<W>(x[r]));
      } else {
        total = fold_strided<Rule, W, 8>(last - first, lane, p.down, [&](std::int64_t r) {
          std::int64_t skip[1] = {(first + r) * p.stride};
          if (p.stride == 0) p.reduced.offsets(static_cast<std::uint32_t>(first + r), skip);
          return Read<In, 1>{{in[base + skip[0]]}};
        });
      }
    }
    if (in_warp) {
      for (int half = p.down / 2; half > 0; half /= 2) total = Rule::combine(total, of_lane(total, half));
    } else {
      room[t] = total;
      reduce_group<Rule>(room, p.rows ? t - lane : column, p.rows ? 1 : p.across, lane, p.down);
      total = room[t];
    }
    if (lane == 0 && o < p.results) {
      if (p.splits > 1)
        parts[o * p.splits + split] = total;
      else
        out[at[1]] = narrowed<Out>(total);
    }
    if (!in_warp) __syncthreads();
  }
}

}  // namespace reel::cuda
