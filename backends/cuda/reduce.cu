// reduce and sum of squares. Sums of f32 and c64 are kept in double, so that long ones lose nothing.
#include "backends/cuda/elementwise.h"
#include "backends/cuda/fold.h"
#include "backends/cuda/reduce_plan.h"

namespace reel::cuda {

namespace {

struct Itself {
  template <class W, class T>
  __device__ static W take(T x) {
    return widened<W>(x);
  }
};
struct SquaredSize {
  template <class W, class T>
  __device__ static W take(T x) {
    if constexpr (is_complex_type<T>)
      return static_cast<W>(x.real()) * static_cast<W>(x.real()) + static_cast<W>(x.imag()) * static_cast<W>(x.imag());
    else
      return static_cast<W>(x) * static_cast<W>(x);
  }
};

/// Stage one reads `in` as the plan says and leaves results in `out`, or parts of them in `parts`, which are results x
/// splits; stage two (`gathers`) reads those.
template <class Rule, class Take, class In, class W, class Out>
__global__ void fold(ReducePlan p, bool gathers, const In* in, W* parts, Out* out) {
  alignas(16) __shared__ unsigned char memory[threads_per_block * sizeof(W)];
  W* const room = reinterpret_cast<W*>(memory);
  const int t = static_cast<int>(threadIdx.x);
  const int lane = p.rows ? t % p.down : t / p.across, column = p.rows ? t / p.down : t % p.across;
  const std::int64_t groups = (p.results + p.across - 1) / p.across;
  for (std::int64_t b = blockIdx.x; b < groups * p.splits; b += gridDim.x) {
    const std::int64_t split = b / groups, o = b % groups * p.across + column;
    W total = Rule::template neutral<W>();
    std::int64_t at[2] = {};
    if (o < p.results) {
      p.kept.offsets(static_cast<std::uint32_t>(o), at);
      const std::int64_t base = gathers ? o * p.count : at[0], first = split * p.per_split,
                         last = first + p.per_split < p.count ? first + p.per_split : p.count;
      for (std::int64_t r = first + lane; r < last; r += p.down) {
        std::int64_t skip[1];
        p.reduced.offsets(static_cast<std::uint32_t>(r), skip);
        total = Rule::combine(total, Take::template take<W>(in[base + skip[0]]));
      }
    }
    room[t] = total;
    fold_group<Rule>(room, p.rows ? t - lane : column, p.rows ? 1 : p.across, lane, p.down);
    if (lane == 0 && o < p.results) {
      if (p.splits > 1)
        parts[o * p.splits + split] = room[t];
      else
        out[at[1]] = narrowed<Out>(room[t]);
    }
    __syncthreads();
  }
}

unsigned grid_of(const ReducePlan& p) { return blocks_for((p.results + p.across - 1) / p.across * p.splits, 1); }

/// Both stages; `parts` is room for what the first one leaves, if there are two.
template <class Rule, class Take, class W, class In, class Out>
void run(const ReducePlan& p, const In* in, W* parts, Out* out, cudaStream_t stream) {
  fold<Rule, Take><<<grid_of(p), threads_per_block, 0, stream>>>(p, false, in, parts, out);
  if (p.splits == 1) return;
  const ReducePlan second = plan_second_stage(p);
  fold<Rule, Itself><<<grid_of(second), threads_per_block, 0, stream>>>(second, true, parts, parts, out);
}

template <class T>
__global__ void fill_neutral(std::int64_t n, T value, T* out) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) out[i] = value;
}

}  // namespace

void Cuda::reduce(const ReduceArgs& a) {
  if (a.out_numel == 0) return;
  const ReducePlan plan = plan_reduction(a.loop);
  if (plan.results >= most_elements || plan.count >= most_elements) unsupported("reduce of 2^31 elements or more");
  const auto go = [&]<class Rule, class T>(Rule, std::type_identity<T>) {
    using W = typename Rule::template Wide<T>;
    StoragePtr parts;
    if (plan.splits > 1) parts = scratch(static_cast<std::size_t>(plan.results * plan.splits) * sizeof(W));
    run<Rule, Itself>(plan, static_cast<const T*>(a.in), parts ? reinterpret_cast<W*>(parts->data) : nullptr,
                      static_cast<T*>(a.out), stream());
  };
  const auto extreme = [&]<class T>(std::type_identity<T> type) {
    a.kind == Reduction::max ? go(Larger{}, type) : go(Smaller{}, type);
  };
  const auto nothing = [&]<class T>(std::type_identity<T>) {  // of no elements: what the rule begins with
    using Limits = std::numeric_limits<T>;
    T value{};
    if constexpr (!is_complex_type<T>) {
      const T high = Limits::has_infinity ? Limits::infinity() : Limits::max(),
              low = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
      if (a.kind != Reduction::sum) value = a.kind == Reduction::max ? low : high;
    }
    fill_neutral<<<blocks_for(a.out_numel), threads_per_block, 0, stream()>>>(a.out_numel, value,
                                                                              static_cast<T*>(a.out));
  };
  dispatch(a.dtype, [&]<class E>(std::type_identity<E>) {
    using T = std::conditional_t<std::is_same_v<E, bool>, std::uint8_t,
                                 std::conditional_t<std::is_same_v<E, std::int32_t>, std::uint32_t, device_type<E>>>;
    const bool sum = a.kind == Reduction::sum;
    if (is_complex(a.dtype) && !sum) unsupported("max and min of complex numbers");
    if (a.dtype == DType::boolean && sum) unsupported("sum of bool");
    if (a.loop.numel() == 0) {
      nothing(std::type_identity<std::conditional_t<std::is_same_v<E, bool>, std::uint8_t, device_type<E>>>{});
    } else if constexpr (is_complex_type<T>) {
      go(Plus{}, std::type_identity<T>{});
    } else if constexpr (std::is_same_v<E, bool>) {
      extreme(std::type_identity<T>{});
    } else if (sum) {
      go(Plus{}, std::type_identity<T>{});  // of unsigned numbers in place of i32: it may wrap
    } else {
      extreme(std::type_identity<device_type<E>>{});
    }
  });
  launched("reduce", {plan.results, plan.count});
}

void Cuda::sum_of_squares(DType dtype, std::int64_t n, const void* x, double* out) {
  if (n == 0) return fill({DType::f64, 1, 0, out});
  Loop<2> loop;
  loop.push(n, {1, 0});
  const ReducePlan plan = plan_reduction(loop);
  if (n >= most_elements) unsupported("sum_of_squares of 2^31 elements or more");
  const StoragePtr room = scratch(static_cast<std::size_t>(plan.splits) * sizeof(double));
  dispatch(dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (std::is_same_v<E, bool>)
      unsupported("sum_of_squares of bool");
    else
      run<Plus, SquaredSize>(plan, static_cast<const device_type<E>*>(x), reinterpret_cast<double*>(room->data), out,
                             stream());
  });
  launched("sum_of_squares", {n});
}

}  // namespace reel::cuda
