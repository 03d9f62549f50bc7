// Optimizer updates in place, one thread per element, one kernel for all parameters.
#include <array>

#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/runtime/faults.h"
#include "ops/functors/update.h"

namespace reel::cuda {

namespace {

template <class T>
struct Arrays {
  const double* rate;
  T* parameter;
  const T* gradient;
  T* state[3];
};
/// The parameters of a launch. Passed as a kernel argument, so nothing has to stay alive in device memory.
template <class T>
struct Places {
  Chunks chunks;
  Arrays<T> arrays[Chunks::most];
};

template <class Rule, class T>
__global__ void update_elements(Rule rule, T limit, WeightDecay decay, const UpdateNumbers* numbers,
                                const __grid_constant__ Places<T> places) {
  const UpdateNumbers now = *numbers;
  if (std::isnan(now.scale)) return;
  const T scale = static_cast<T>(now.scale);
  for (std::int64_t chunk = blockIdx.x; chunk < places.chunks.count(); chunk += gridDim.x) {
    const int k = places.chunks.array(chunk);
    const Arrays<T>& a = places.arrays[k];
    const Rule step = at_step(rule, *a.rate, now);
    const std::int64_t last = places.chunks.last(chunk, k);
    for (std::int64_t i = places.chunks.first(chunk, k) + threadIdx.x; i < last; i += threads_per_block) {
      T p = a.parameter[i], state[3] = {};
#pragma unroll
      for (int s = 0; s < Rule::states; ++s) state[s] = a.state[s][i];
      const T scaled = a.gradient[i] * scale;  // clamped so that a NaN survives
      T g = scaled > limit ? limit : scaled < -limit ? -limit : scaled;
      decay(p, g, step.rate);
      step(p, g, state[0], state[1], state[2]);
      a.parameter[i] = p;
#pragma unroll
      for (int s = 0; s < Rule::states; ++s) a.state[s][i] = state[s];
    }
  }
}

/// Runs in one block. After a fault, which the next read reports, there is no update either.
__global__ void find_scale(std::int64_t n, const double* numbers, double limit, const FaultSlot* slots,
                           std::int64_t all_slots, double* scale) {
  bool bad = false;
  for (std::int64_t i = threadIdx.x; i < all_slots; i += threads_per_block) bad = bad || slots[i] != ~FaultSlot{0};
  if (__syncthreads_or(bad))
    *scale = std::numeric_limits<double>::quiet_NaN();
  else if (threadIdx.x == 0)
    *scale = clip_scale(numbers, n, limit);
}

using Kernel = void (*)(const UpdateArgs&, std::span<const UpdatePlace>, cudaStream_t);

template <class Rule, class T>
void launch(const UpdateArgs& a, std::span<const UpdatePlace> some, cudaStream_t stream) {
  Places<T> places{};
  static_assert(sizeof places < 3840);
  for (const UpdatePlace& p : some) {
    Arrays<T>& to = places.arrays[places.chunks.arrays];
    to = {p.rate, static_cast<T*>(p.parameter), static_cast<const T*>(p.gradient), {}};
    for (int k = 0; k < Rule::states; ++k) to.state[k] = static_cast<T*>(p.state[k]);
    places.chunks.push(p.n);
  }
  update_elements<Rule, T><<<blocks_for(places.chunks.count(), 1), threads_per_block, 0, stream>>>(
      a.params.as<Rule>(), static_cast<T>(a.limit), a.decay, reinterpret_cast<const UpdateNumbers*>(a.numbers), places);
}

template <class... Rule>
constexpr auto table(TypeList<Rule...>) {
  return std::array<std::array<Kernel, 2>, sizeof...(Rule)>{{{launch<Rule, float>, launch<Rule, double>}...}};
}

}  // namespace

void Cuda::update(const UpdateArgs& a) {
  static constexpr auto kernels = table(UpdateRules{});
  if (!is_floating(a.dtype)) unsupported("optimiser steps of complex or integer parameters");
  in_launches(std::span(a.places), [&](std::span<const UpdatePlace> some) {
    kernels[static_cast<std::size_t>(a.rule)][column_of(a.dtype)](a, some, stream());
    launched("update", {std::ssize(some)});
  });
}

void Cuda::clip(const ClipArgs& a) {
  const std::span<const FaultSlot> slots = faults_->all();
  find_scale<<<1, threads_per_block, 0, stream()>>>(a.n, a.numbers, a.limit, slots.data(), std::ssize(slots), a.scale);
  launched("clip", {a.n});
}

}  // namespace reel::cuda
