// What the elementwise arithmetic of a training step takes at least on the CPU, on one thread: each function at the
// rate that it has on SIMD batches in registers, measured in the same run. Counted from the traced step and its
// gradient, in real numbers: a complex element is two, or four where it is multiplied. A sum is an addition for each
// element that it reads, a rotation a product and a multiplication and addition for each element. Fourier transforms
// are 5 n log2 n additions for each row; solvers and factorizations are not counted.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "backends/cpu/simd/simd.h"
#include "bench/clock.h"
#include "bench/work.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::bench {

/// The same batch, of which the compiler knows nothing any more; no instruction.
inline xsimd::batch<float> unknown(xsimd::batch<float> x) {
  asm volatile("" : "+x"(x.data));
  return x;
}

/// Seconds per element of f: least of several rounds, on arguments in registers.
template <class F>
double seconds_per_element() {
  using Batch = xsimd::batch<float>;
  constexpr int rounds = 2000, independent = 8;
  const F f{};
  const auto round = [&](Batch a, Batch b) {
    for (int i = 0; i < rounds; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < independent; ++k) {
        if constexpr (std::is_invocable_v<F, Batch>)
          unknown(f(unknown(a)));
        else
          unknown(f(unknown(a), b));
      }
    }
  };
  double least = 1e300;
  for (int again = 0; again < 20; ++again) least = std::min(least, seconds([&] { round(Batch(0.4F), Batch(0.75F)); }));
  return least / (static_cast<double>(rounds) * independent * static_cast<double>(Batch::size));
}

/// Seconds per element of every function of real numbers, by name.
inline const std::map<std::string, double>& function_costs() {
  static const std::map<std::string, double> costs = [] {
    std::map<std::string, double> all;
    const auto add = [&]<class F>(std::type_identity<F>) {
      if constexpr (takes<F>(DType::f32)) {
        if constexpr (std::is_same_v<result_of<F, float>, float>) all[F::name] = seconds_per_element<F>();
      }
    };
    [&]<class... F>(TypeList<F...>) { (add(std::type_identity<F>{}), ...); }(UnaryFunctors{});
    [&]<class... F>(TypeList<F...>) { (add(std::type_identity<F>{}), ...); }(BinaryFunctors{});
    return all;
  }();
  return costs;
}

/// Seconds that one call of an op takes at least.
inline double seconds_of(const Program& p, const Program::Node& node) {
  const auto& costs = function_costs();
  const double addition = costs.at("add"), product = costs.at("mul");
  const Spec &in = p.values[node.in.empty() ? node.out : node.in[0]], &out = p.values[node.out];
  const std::string_view name = node.op->traits.name;
  const auto elements = [](const Spec& s) {
    return static_cast<double>(s.shape.numel()) * (is_complex(s.dtype) ? 2 : 1);
  };
  if (name == "sum" || name == "norm" || name == "max") return elements(in) * addition;
  if (name == "rotate") return elements(out) * (addition + product);
  if (name.find("fft") != std::string_view::npos) {
    const auto n = static_cast<double>(std::max(in.shape[in.shape.rank() - 1], out.shape[out.shape.rank() - 1]));
    return 5 * std::max(elements(in), elements(out)) / 2 * std::log2(n) * addition;
  }
  const auto cost = costs.find(std::string(name));
  if (node.op->traits.kind != Kind::elementwise) return 0;
  if (cost == costs.end()) return elements(out) * addition;  // comparisons, selections
  const bool products = is_complex(in.dtype) && (name == "mul" || name == "div");
  return elements(out) * cost->second * (products ? 2 : 1);
}

/// Of a program that is run once, with its loops.
inline double arithmetic_of(const Program& p) {
  double total = 0;
  for (const Program::Node& node : p.nodes) {
    if (node.op != &op_of<Scan>()) {
      total += seconds_of(p, node);
      continue;
    }
    const Loop& loop = node.attrs.as<Scan>().loop();
    total += static_cast<double>(loop.signature.length) * arithmetic_of(loop.body);
    total += arithmetic_of(loop.prologue.program) + arithmetic_of(loop.epilogue.program);
  }
  return total;
}

/// Seconds of the elementwise arithmetic of a step of this model, forward and gradient, on one thread.
inline double arithmetic_of(const Model& model, const Tensor& x) {
  Tensors parameters;
  for (const Parameter& p : model.trained()) parameters.push_back(p.value);
  const Traced step = trace({x.spec()}, [&](const Tensors& in) { return grad({sum(model(in[0]))}, parameters); });
  return arithmetic_of(step.program);
}

}  // namespace reel::bench
