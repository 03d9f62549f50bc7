// The optimisers' steps in place, an element a thread.
#include <array>

#include "backends/cuda/cuda.h"
#include "backends/cuda/elementwise.h"
#include "ops/functors/update.h"

namespace reel::cuda {

namespace {

template <class T>
struct Arrays {
  T* parameter;
  const T* gradient;
  T* state[3];
};

template <class Rule, class T>
__global__ void update_elements(Rule rule, std::int64_t n, T scale, T limit, Arrays<T> a) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) {
    T p = a.parameter[i], state[3] = {};
#pragma unroll
    for (int k = 0; k < Rule::states; ++k) state[k] = a.state[k][i];
    const T scaled = a.gradient[i] * scale;  // a NaN is not to be lost between the limits
    rule(p, scaled > limit ? limit : scaled < -limit ? -limit : scaled, state[0], state[1], state[2]);
    a.parameter[i] = p;
#pragma unroll
    for (int k = 0; k < Rule::states; ++k) a.state[k][i] = state[k];
  }
}

using Kernel = void (*)(const UpdateArgs&, cudaStream_t);

template <class Rule, class T>
void launch(const UpdateArgs& a, cudaStream_t stream) {
  Arrays<T> arrays{static_cast<T*>(a.parameter), static_cast<const T*>(a.gradient), {}};
  for (int k = 0; k < Rule::states; ++k) arrays.state[k] = static_cast<T*>(a.state[k]);
  update_elements<Rule, T><<<blocks_for(a.n), threads_per_block, 0, stream>>>(*static_cast<const Rule*>(a.params), a.n,
                                                                              static_cast<T>(a.gradient_scale),
                                                                              static_cast<T>(a.gradient_limit), arrays);
}

template <class... Rule>
constexpr auto table(TypeList<Rule...>) {
  return std::array<std::array<Kernel, 2>, sizeof...(Rule)>{{{launch<Rule, float>, launch<Rule, double>}...}};
}

}  // namespace

void Cuda::update(const UpdateArgs& a) {
  static constexpr auto kernels = table(UpdateRules{});
  if (!is_floating(a.dtype)) unsupported("optimiser steps of complex or integer parameters");
  if (a.n == 0) return;
  kernels[static_cast<std::size_t>(a.rule)][a.dtype == DType::f32 ? 0 : 1](a, stream());
  launched("update", {a.n});
}

}  // namespace reel::cuda
