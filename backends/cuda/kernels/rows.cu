// row_function: softmax and its relatives, standardize, norms. One warp or block for each row, with sums in double.
// cross_entropy likewise.
#include "backends/cuda/kernels/check_index.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/reduce_ops.h"
#include "backends/cuda/kernels/warp.h"
#include "backends/shared/lp_norm.h"

namespace reel::cuda {

namespace {

/// The threads that share a row: a warp, or all of the block, whose warps have a shared buffer for their values.
template <int width>
struct RowGroup {
  double* room;
  int lane;

  /// Reduces all threads' values and returns the result to all. All threads of the block must call it.
  template <class Rule>
  __device__ double all(double mine) const {
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2)
      mine = Rule::combine(mine, __shfl_xor_sync(~0U, mine, distance));
    if constexpr (width > warp) {
      __syncthreads();
      if (lane % warp == 0) room[lane / warp] = mine;
      __syncthreads();
      mine = room[0];
      for (int w = 1; w < width / warp; ++w) mine = Rule::combine(mine, room[w]);
    }
    return mine;
  }
  /// Reduces f(i) over i < n.
  template <class Rule, class F>
  __device__ double reduce(std::int64_t n, F f) const {
    double mine = Rule::template neutral<double>();
    for (std::int64_t i = lane; i < n; i += width) mine = Rule::combine(mine, f(i));
    return all<Rule>(mine);
  }
  template <class T>
  __device__ T largest(const T* x, std::int64_t n) const {
    return static_cast<T>(reduce<MaxOp>(n, [&](std::int64_t i) { return static_cast<double>(x[i]); }));
  }
  /// The sum of f(i) over i < n, in double.
  template <class F>
  __device__ double sum_of(std::int64_t n, F f) const {
    return reduce<SumOp>(n, [&](std::int64_t i) { return static_cast<double>(f(i)); });
  }
};

/// Calls f(group, r) for the rows of each group of threads, and the same number of times in all of a block, which meet
/// at barriers: r may be `rows` or more.
template <int width, class F>
__device__ void each_group(std::int64_t rows, F f) {
  __shared__ double room[threads_per_block / warp];
  constexpr int groups = threads_per_block / width;
  static_assert(width == warp || groups == 1);
  const int t = static_cast<int>(threadIdx.x);
  const RowGroup<width> group{room, t % width};
  for (std::int64_t r0 = std::int64_t{blockIdx.x} * groups; r0 < rows; r0 += std::int64_t{gridDim.x} * groups) {
    const std::int64_t r = r0 + t / width;
    f(group, r);
  }
}

/// (sum |x|^p)^(1/p) of elements of `parts` components each.
template <int parts, int width, class T>
__device__ double norm(const RowGroup<width>& group, const T* x, std::int64_t n, double p) {
  const double top =
      group.template reduce<MaxOp>(parts * n, [&](std::int64_t i) { return ::fabs(static_cast<double>(x[i])); });
  const bool plain = top > 0 && math::isfinite(top);  // no early return: all threads must reach the barriers
  const LpScale scale = plain ? lp_scale(top) : LpScale{1, 1};
  const auto scaled = [&](std::int64_t i) { return x[i] * scale.two * scale.one; };
  const double sum = group.template reduce<SumOp>(n, [&](std::int64_t i) {
    double square;
    if constexpr (parts == 1)
      square = scaled(i) * scaled(i);
    else
      square = scaled(2 * i) * scaled(2 * i) + scaled(2 * i + 1) * scaled(2 * i + 1);
    if (p == 2) return square;
    const double size = parts == 1 ? ::fabs(scaled(i)) : ::sqrt(square);
    const int whole = whole_exponent(p);
    return whole > 0 ? math::whole_power(size, whole) : ::pow(size, p);
  });
  if (n == 0) return 0;
  return !plain ? top : top * (p == 2 ? ::sqrt(sum) : ::pow(sum, 1 / p));
}

/// T is the component type; an element has `parts` components.
template <int width, int parts, class T>
__global__ void each_row(RowFunction function, std::int64_t rows, std::int64_t n, double parameter, const T* in,
                         T* out) {
  each_group<width>(rows, [&](const RowGroup<width>& group, std::int64_t r) {
    const std::int64_t mine = r < rows ? n : 0;  // groups without a row still take part in the barriers
    const T* x = in + (r < rows ? r : 0) * parts * n;
    T* y = out + (r < rows ? r : 0) * n;
    const auto each = [&](auto f) {
      for (std::int64_t i = group.lane; i < mine; i += width) y[i] = static_cast<T>(f(i));
    };
    const auto put = [&](double value) {
      if (group.lane == 0 && r < rows) out[r] = static_cast<T>(value);
    };
    if (function == RowFunction::norm) {
      put(norm<parts>(group, x, mine, parameter));
    } else if constexpr (parts == 1) {
      if (function == RowFunction::standardize) {
        const double mean = group.sum_of(mine, [&](std::int64_t i) { return x[i]; }) / static_cast<double>(n);
        const double squares = group.sum_of(mine, [&](std::int64_t i) {
          const double d = x[i] - mean;
          return d * d;
        });
        const double variance = squares / static_cast<double>(n);
        const double factor = 1 / ::sqrt(variance + parameter);
        each([&](std::int64_t i) { return (x[i] - mean) * factor; });
      } else {
        const T top = group.largest(x, mine);
        const auto shifted = [&](std::int64_t i) { return math::exponential(x[i] - top); };
        const double total = group.sum_of(mine, shifted);
        if (function == RowFunction::softmax) {
          const T divisor = static_cast<T>(total);
          each([&](std::int64_t i) { return shifted(i) / divisor; });
        } else if (function == RowFunction::log_softmax) {
          const T rest = static_cast<T>(::log(total));
          each([&](std::int64_t i) { return x[i] - top - rest; });
        } else {
          put(math::isfinite(static_cast<double>(top)) ? top + ::log(total) : static_cast<double>(top));
        }
      }
    }
  });
}

/// A row whose target is no class is skipped.
template <int width, class T>
__global__ void cross_entropies(std::int64_t rows, std::int64_t n, const T* logits, const std::int32_t* target, T* loss,
                                T* residual, FaultSlot* fault) {
  each_group<width>(rows, [&](const RowGroup<width>& group, std::int64_t r) {
    const bool has_row = r < rows && good(target, r, n, fault);
    const std::int64_t mine = has_row ? n : 0;  // groups without a row still take part in the barriers
    const T* const x = logits + (has_row ? r : 0) * n;
    const T top = group.largest(x, mine);
    const auto shifted = [&](std::int64_t i) { return math::exponential(x[i] - top); };
    const double total = group.sum_of(mine, shifted);
    for (std::int64_t i = group.lane; i < mine; i += width)
      residual[r * n + i] = shifted(i) / static_cast<T>(total) - T(i == target[r]);
    if (has_row && group.lane == 0) loss[r] = static_cast<T>(::log(total)) - (x[target[r]] - top);
  });
}

/// Calls f.template operator()<width>(blocks): so many threads share a row.
template <class F>
void with_groups(std::int64_t rows, std::int64_t n, F f) {
  if (n <= 512)
    f.template operator()<warp>(blocks_for(rows, threads_per_block / warp));
  else
    f.template operator()<threads_per_block>(blocks_for(rows, 1));
}

}  // namespace

void Cuda::cross_entropy(const CrossEntropyArgs& a) {
  if (a.rows == 0) return;
  FaultSlot* const fault = faults_->slot({"cross_entropy", a.n});
  dispatch_floating(a.dtype, [&]<class T>(std::type_identity<T>) {
    with_groups(a.rows, a.n, [&]<int width>(int blocks) {
      cross_entropies<width><<<blocks, threads_per_block, 0, stream()>>>(a.rows, a.n, static_cast<const T*>(a.logits),
                                                                         a.target, static_cast<T*>(a.loss),
                                                                         static_cast<T*>(a.residual), fault);
    });
  });
  launched("cross_entropy", {a.rows, a.n});
  if (options_.sync) faults_->check_all(stream(), true);
}

void Cuda::row_function(const RowFunctionArgs& a) {
  if (a.rows == 0) return;
  const auto go = [&]<class T, int parts>() {
    const T* in = static_cast<const T*>(a.in);
    T* out = static_cast<T*>(a.out);
    with_groups(a.rows, a.n, [&]<int width>(int blocks) {
      each_row<width, parts><<<blocks, threads_per_block, 0, stream()>>>(a.function, a.rows, a.n, a.parameter, in, out);
    });
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      go.template operator()<T, 1>();
    } else if constexpr (is_complex_type<T>) {
      if (a.function != RowFunction::norm) unsupported("row_function of complex numbers, but for norm");
      go.template operator()<typename T::value_type, 2>();
    } else {
      unsupported("row_function of integers or bool");
    }
  });
  launched("row_function", {a.rows, a.n});
}

}  // namespace reel::cuda
