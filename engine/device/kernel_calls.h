// The list of kernels. It generates the methods of a backend, calls as values, and everything that treats all kernels
// alike: the recorder, the interpreter of loops, tests.
#pragma once
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "engine/device/kernels.h"

namespace reel {

class Backend;

// K(name, Args): backend.name(Args). These can be calls of a loop.
#define REEL_KERNELS(K)            \
  K(fill, FillArgs)                \
  K(copy, CopyArgs)                \
  K(cast, CastArgs)                \
  K(map, MapArgs)                  \
  K(zip, ZipArgs)                  \
  K(select, SelectArgs)            \
  K(fused, FusedArgs)              \
  K(reduce, ReduceArgs)            \
  K(argmax, PlacesArgs)            \
  K(argcummax, PlacesArgs)         \
  K(argsort, PlacesArgs)           \
  K(recurrence, RecurrenceArgs)    \
  K(row_function, RowFunctionArgs) \
  K(gemm, GemmArgs)                \
  K(gather_rows, RowsArgs)         \
  K(segment_sum, RowsArgs)         \
  K(sum_rows, SumRowsArgs)         \
  K(take_along, TakeArgs)          \
  K(scatter_add, TakeArgs)         \
  K(rotate, RotateArgs)            \
  K(random, RandomArgs)            \
  K(fft, FftArgs)                  \
  K(real_fft, RealFftArgs)
// K(result, name, Args). These cannot: linear algebra throws on bad values, and eig and spectral_radius return a count
// to the host (ops/functors/linalg.h); an optimiser's step and a cross entropy are in no loop (ops/functors/update.h,
// cross_entropy.h).
#define REEL_OTHER_KERNELS(K)                          \
  K(std::int64_t, eig, EigArgs)                        \
  K(void, eigh, EighArgs)                              \
  K(void, svd, SvdArgs)                                \
  K(void, schur, SchurArgs)                            \
  K(std::int64_t, spectral_radius, SpectralRadiusArgs) \
  K(void, solve, SolveArgs)                            \
  K(void, triangular_solve, TriangularSolveArgs)       \
  K(void, sylvester, SylvesterArgs)                    \
  K(void, lu, LuArgs)                                  \
  K(void, cholesky, CholeskyArgs)                      \
  K(void, qr, QrArgs)                                  \
  K(void, determinant, DeterminantArgs)                \
  K(void, pinv, PinvArgs)                              \
  K(void, polar_factor, PolarFactorArgs)               \
  K(void, cross_entropy, CrossEntropyArgs)             \
  K(void, update, UpdateArgs)                          \
  K(void, sums_of_squares, SquaresArgs)                \
  K(void, clip, ClipArgs)
// The declarations in a backend that has all of them.
#define REEL_OVERRIDE(name, Args) void name(const Args&) override;
#define REEL_OVERRIDE_OTHER(result, name, Args) result name(const Args&) override;

#define REEL_KERNEL_NAME(name, Args) name,
enum class Kernel : std::uint8_t { REEL_KERNELS(REEL_KERNEL_NAME) host };
#undef REEL_KERNEL_NAME

/// A call that is not a kernel: an op that computes on the host, or a loop inside a loop. `run` receives the addresses
/// of its operands.
struct HostArgs {
  std::function<void(std::span<std::byte* const> operands)> run;
  std::vector<std::byte*> operands;
  void arrays(auto&& f) {
    for (std::byte*& operand : operands) f(operand);
  }
};

/// A kernel call as a value.
class KernelCall {
 public:
  KernelCall() = default;
  template <Kernel kernel, class Args>
  static KernelCall of(const Args& args) {
    return KernelCall(std::in_place_index<static_cast<std::size_t>(kernel)>, args);
  }
  Kernel kernel() const { return static_cast<Kernel>(args_.index()); }
  const char* name() const;
  void run(Backend& backend) const;
  /// The arguments; null if it calls another kernel.
  template <Kernel kernel>
  const auto* as() const {
    return std::get_if<static_cast<std::size_t>(kernel)>(&args_);
  }
  /// Calls f(pointer) for each array.
  template <class F>
  void arrays(F&& f) {
    std::visit([&](auto& args) { args.arrays([&](auto*& pointer, auto...) { f(pointer); }); }, args_);
  }

 private:
  template <class Index, class Args>
  KernelCall(Index index, const Args& args) : args_(index, args) {}

#define REEL_KERNEL_ARGS(name, Args) Args,
  std::variant<REEL_KERNELS(REEL_KERNEL_ARGS) HostArgs> args_;
#undef REEL_KERNEL_ARGS
};

}  // namespace reel
