// reduce. Sums of f32 and c64 accumulate in double, so that long sums stay accurate.
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_kernel.h"
#include "backends/cuda/kernels/reduce_parts.h"

namespace reel::cuda {

namespace {

unsigned grid_of(const ReducePlan& p) { return blocks_for((p.results + p.across - 1) / p.across * p.splits, 1); }

/// Runs both stages; `parts` is a buffer for the first stage's results, if there are two.
template <class Rule, class W, class In, class Out>
void launch(const ReducePlan& p, const In* in, W* parts, Out* out, cudaStream_t stream) {
  constexpr int per = neighbours<In>;
  if (per > 1 && p.in_rows())
    reduce<Rule, per><<<grid_of(p), threads_per_block, 0, stream>>>(p, false, p.is_aligned(in, per), in, parts, out);
  else
    reduce<Rule, 1><<<grid_of(p), threads_per_block, 0, stream>>>(p, false, false, in, parts, out);
  if (p.splits == 1) return;
  const ReducePlan second = plan_second_stage(p);
  reduce<Rule, 1><<<grid_of(second), threads_per_block, 0, stream>>>(second, true, false, parts, parts, out);
}

template <class T>
__global__ void fill_neutral(std::int64_t n, T value, T* out) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) out[i] = value;
}

}  // namespace

void Cuda::reduce(const ReduceArgs& a) {
  if (a.out_numel == 0) return;
  const auto room = [&](std::size_t bytes) { return scratch(bytes); };
  if (reduce_in_parts(a, room, [&](const ReduceArgs& part) { reduce(part); })) return;
  const ReducePlan plan = plan_reduction(a.loop);
  const auto go = [&]<class Rule, class T>(Rule, std::type_identity<T>) {
    using W = typename Rule::template Wide<T>;
    StoragePtr parts;
    if (plan.splits > 1) parts = scratch(static_cast<std::size_t>(plan.results * plan.splits) * sizeof(W));
    launch<Rule>(plan, static_cast<const T*>(a.in), parts ? reinterpret_cast<W*>(parts->data) : nullptr,
                 static_cast<T*>(a.out), stream());
  };
  const auto extreme = [&]<class T>(std::type_identity<T> type) {
    a.kind == Reduction::max ? go(MaxOp{}, type) : go(MinOp{}, type);
  };
  const auto nothing = [&]<class T>(std::type_identity<T>) {  // of an empty range: the rule's neutral element
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
    using T = std::conditional_t<std::is_same_v<E, bool>, std::uint8_t, device_type<summand<E>>>;
    const bool sum = a.kind == Reduction::sum;
    if (is_complex(a.dtype) && !sum) unsupported("max and min of complex numbers");
    if (a.dtype == DType::boolean && sum) unsupported("sum of bool");
    if (a.loop.numel() == 0) {
      nothing(std::type_identity<device_type<E>>{});
    } else if constexpr (is_complex_type<T>) {
      go(SumOp{}, std::type_identity<T>{});
    } else if constexpr (std::is_same_v<E, bool>) {
      extreme(std::type_identity<T>{});
    } else if (sum) {
      go(SumOp{}, std::type_identity<T>{});
    } else {
      extreme(std::type_identity<device_type<E>>{});
    }
  });
  launched("reduce", {plan.results, plan.count});
}

}  // namespace reel::cuda
