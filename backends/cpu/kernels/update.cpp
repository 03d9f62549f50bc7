// Optimizer updates in place, vectorized.
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/cpu.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/threads/enough.h"
#include "ops/functors/update.h"

namespace reel::cpu {

namespace {

/// Of the elements from `first` to `last`.
using Kernel = void (*)(const UpdateArgs&, const UpdatePlace&, const UpdateNumbers&, std::int64_t first,
                        std::int64_t last);

template <class Rule, class T>
void update_kernel(const UpdateArgs& args, const UpdatePlace& a, const UpdateNumbers& numbers, std::int64_t first,
                   std::int64_t last) {
  using Batch = xsimd::batch<T>;
  constexpr auto width = static_cast<std::int64_t>(Batch::size);
  const Rule rule = at_step(args.params.as<Rule>(), *a.rate, numbers);
  const Batch scale(static_cast<T>(numbers.scale)), limit(static_cast<T>(args.limit));
  T* const p = static_cast<T*>(a.parameter);
  const T* const gradient = static_cast<const T*>(a.gradient);
  T* s[3];
  for (int k = 0; k < 3; ++k) s[k] = k < Rule::states ? static_cast<T*>(a.state[k]) : p;  // unused states alias p
  const auto block = [&](T* p_, const T* g_, T* s0, T* s1, T* s2) {
    Batch values = Batch::load_unaligned(p_), unused(T(0));
    Batch state[3] = {Batch::load_unaligned(s0), Rule::states > 1 ? Batch::load_unaligned(s1) : unused,
                      Rule::states > 1 ? Batch::load_unaligned(s2) : unused};
    Batch g = xsimd::max(xsimd::min(Batch::load_unaligned(g_) * scale, limit), -limit);
    args.decay(values, g, rule.rate);
    rule(values, g, state[0], state[1], state[2]);
    values.store_unaligned(p_);
    state[0].store_unaligned(s0);
    if (Rule::states > 1) state[1].store_unaligned(s1), state[2].store_unaligned(s2);
  };
  std::int64_t i = first;
  for (; i + width <= last; i += width) block(p + i, gradient + i, s[0] + i, s[1] + i, s[2] + i);
  if (i == last) return;
  T tail[5][Batch::size] = {};
  const std::int64_t rest = last - i;
  const T* sources[5] = {p, gradient, s[0], s[1], s[2]};
  const int arrays = 2 + Rule::states;
  for (int k = 0; k < arrays; ++k) std::copy_n(sources[k] + i, rest, tail[k]);
  block(tail[0], tail[1], tail[2], tail[3], tail[4]);
  std::copy_n(tail[0], rest, p + i);
  for (int k = 0; k < Rule::states; ++k) std::copy_n(tail[2 + k], rest, s[k] + i);
}

template <class... Rule>
constexpr auto table(TypeList<Rule...>) {
  return std::array<std::array<Kernel, 2>, sizeof...(Rule)>{
      {{update_kernel<Rule, float>, update_kernel<Rule, double>}...}};
}

}  // namespace

void Cpu::update(const UpdateArgs& a) {
  static constexpr auto kernels = table(UpdateRules{});
  if (!is_floating(a.dtype)) unsupported("optimiser steps of complex or integer parameters");
  const auto kernel = kernels[static_cast<std::size_t>(a.rule)][column_of(a.dtype)];
  UpdateNumbers numbers;
  std::memcpy(&numbers, a.numbers, sizeof numbers);
  if (std::isnan(numbers.scale)) return;
  for (const UpdatePlace& place : a.places)
    shared(place.n, enough_elements,
           [&](std::int64_t first, std::int64_t last) { kernel(a, place, numbers, first, last); });
}

void Cpu::clip(const ClipArgs& a) { *a.scale = clip_scale(a.numbers, a.n, a.limit); }

}  // namespace reel::cpu
