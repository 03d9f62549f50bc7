// Fourier transforms, with FFTW.
#include <fftw3.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/cpu.h"
#include "backends/cpu/threads/enough.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

/// FFTW's functions for one precision.
template <class T>
struct Fftw;
#define FFTW(T, prefix)                                                                         \
  template <>                                                                                   \
  struct Fftw<T> {                                                                              \
    using Plan = prefix##_plan;                                                                 \
    using Complex = prefix##_complex;                                                           \
    static constexpr auto plan = prefix##_plan_dft_1d;                                          \
    static constexpr auto plan_real_forward = prefix##_plan_dft_r2c_1d;                         \
    static constexpr auto plan_real_backward = prefix##_plan_dft_c2r_1d;                        \
    static constexpr auto destroy = prefix##_destroy_plan;                                      \
    static constexpr auto alignment = prefix##_alignment_of;                                    \
    static void run(Plan p, std::complex<T>* in, std::complex<T>* out) {                        \
      prefix##_execute_dft(p, reinterpret_cast<Complex*>(in), reinterpret_cast<Complex*>(out)); \
    }                                                                                           \
    static void run(Plan p, T* in, std::complex<T>* out) {                                      \
      prefix##_execute_dft_r2c(p, in, reinterpret_cast<Complex*>(out));                         \
    }                                                                                           \
    static void run(Plan p, std::complex<T>* in, T* out) {                                      \
      prefix##_execute_dft_c2r(p, reinterpret_cast<Complex*>(in), out);                         \
    }                                                                                           \
  };
FFTW(float, fftwf)
FFTW(double, fftw)
#undef FFTW

std::mutex planner;  // FFTW's planner is not thread-safe; running plans needs no lock

/// FFTW_ESTIMATE measures nothing, so the plan is always the same; it only checks the alignment of the arrays.
template <class T>
std::shared_ptr<void> make_plan(FftKind kind, int n) {
  using Complex = typename Fftw<T>::Complex;
  alignas(64) Complex in[1], out[1];
  T* const real_in = in[0];
  T* const real_out = out[0];
  const std::lock_guard guard(planner);
  const auto plan = [&] {
    switch (kind) {
      case FftKind::real_forward:
        return Fftw<T>::plan_real_forward(n, real_in, out, FFTW_ESTIMATE);
      case FftKind::real_backward:
        return Fftw<T>::plan_real_backward(n, in, real_out, FFTW_ESTIMATE);
      default:
        return Fftw<T>::plan(n, in, out, kind == FftKind::forward ? FFTW_FORWARD : FFTW_BACKWARD, FFTW_ESTIMATE);
    }
  }();
  REEL_ASSERT(plan != nullptr);
  return {plan, [](void* p) {
            const std::lock_guard lock(planner);
            Fftw<T>::destroy(static_cast<typename Fftw<T>::Plan>(p));
          }};
}

/// Runs a plan on one row after another. Rows without the plan's alignment go through aligned buffers.
template <class T, class In, class Out>
class RowTransform {
 public:
  RowTransform(Backend& cpu, std::shared_ptr<void> plan, std::int64_t ins, std::int64_t outs)
      : cpu_(cpu), plan_(std::move(plan)), ins_(ins), outs_(outs) {}

  /// A buffer for a row, to fill and pass to run(), which overwrites it.
  In* buffer() { return room<In>(in_block_, ins_); }

  /// Leaves the row at `in` unchanged unless it is buffer().
  void run(const In* in, Out* out) {
    if (!aligned(in)) {
      std::copy_n(in, ins_, buffer());
      in = buffer();
    }
    Out* const target = aligned(out) ? out : room<Out>(out_block_, outs_);
    Fftw<T>::run(static_cast<typename Fftw<T>::Plan>(plan_.get()), const_cast<In*>(in), target);
    if (target != out) std::copy_n(target, outs_, out);
  }

 private:
  template <class Element>
  static bool aligned(const Element* p) {
    return Fftw<T>::alignment(reinterpret_cast<T*>(const_cast<Element*>(p))) == 0;
  }
  template <class Element>
  Element* room(StoragePtr& block, std::int64_t n) {
    if (!block) block = StoragePtr(cpu_.allocate(static_cast<std::size_t>(n) * sizeof(Element)));
    return reinterpret_cast<Element*>(block->data);
  }

  Backend& cpu_;
  std::shared_ptr<void> plan_;
  std::int64_t ins_, outs_;
  StoragePtr in_block_, out_block_;
};

/// x *= scale: by real numbers, which are vectorized.
template <class T>
void multiply(std::complex<T>* x, std::int64_t n, T scale) {
  T* const parts = reinterpret_cast<T*>(x);
  for (std::int64_t k = 0; k < 2 * n; ++k) parts[k] *= scale;
}

/// Scales the coefficients of one row by `ends` and `inner`.
template <class T>
void weigh(const RealFftArgs& a, std::complex<T>* y) {
  y[0] *= static_cast<T>(a.ends);
  if (a.n % 2 == 0) y[a.n / 2] *= static_cast<T>(a.ends);
  if (a.inner != 1) multiply(y + 1, (a.n - 1) / 2, static_cast<T>(a.inner));
}

constexpr std::int64_t enough = 1 << 13;  // fewest elements that pay for a second thread

}  // namespace

std::shared_ptr<void> FftPlans::get(FftKind kind, DType precision, std::int64_t n) {
  REEL_ASSERT(n >= 1 && n <= std::numeric_limits<int>::max());
  const std::lock_guard guard(mutex_);
  const auto key = std::tuple(kind, precision, n);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  if (plans_.size() == most_plans || (plans_.size() >= any_length && elements_ + n > most_elements)) {
    plans_.clear();
    elements_ = 0;
  }
  elements_ += n;
  const int length = static_cast<int>(n);
  return plans_[key] =
             dispatch_floating(precision, [&]<class T>(std::type_identity<T>) { return make_plan<T>(kind, length); });
}

void Cpu::fft(const FftArgs& a) {
  dispatch(a.dtype, [&]<class C>(std::type_identity<C>) {
    if constexpr (is_complex_type<C>) {
      using T = typename C::value_type;
      const auto plan = fft_plans_.get(a.inverse ? FftKind::backward : FftKind::forward, dtype_of<T>(), a.n);
      const T scale = static_cast<T>(a.scale);
      shared(
          a.rows, enough_rows(a.n, enough),
          [&](std::int64_t first, std::int64_t last) {
            RowTransform<T, C, C> row(*this, plan, a.n, a.n);
            for (std::int64_t r = first; r < last; ++r) {
              C* const out = static_cast<C*>(a.out) + r * a.n;
              row.run(static_cast<const C*>(a.in) + r * a.n, out);
              if (a.scale != 1) multiply(out, a.n, scale);
            }
          },
          1);
    } else {
      unsupported("fft of real numbers");
    }
  });
}

void Cpu::real_fft(const RealFftArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      using C = std::complex<T>;
      const std::int64_t m = a.n / 2 + 1;
      const auto plan = fft_plans_.get(a.inverse ? FftKind::real_backward : FftKind::real_forward, a.dtype, a.n);
      const auto forward = [&](std::int64_t first, std::int64_t last) {
        RowTransform<T, T, C> row(*this, plan, a.n, m);
        for (std::int64_t r = first; r < last; ++r) {
          C* const out = static_cast<C*>(a.out) + r * m;
          row.run(static_cast<const T*>(a.in) + r * a.n, out);
          weigh(a, out);
        }
      };
      const auto backward = [&](std::int64_t first, std::int64_t last) {
        RowTransform<T, C, T> row(*this, plan, m, a.n);
        for (std::int64_t r = first; r < last; ++r) {
          C* const spectrum = row.buffer();  // FFTW overwrites it
          std::copy_n(static_cast<const C*>(a.in) + r * m, m, spectrum);
          spectrum[0].imag(0);
          if (a.n % 2 == 0) spectrum[m - 1].imag(0);
          weigh(a, spectrum);
          row.run(spectrum, static_cast<T*>(a.out) + r * a.n);
        }
      };
      if (a.inverse)
        shared(a.rows, enough_rows(a.n, enough), backward, 1);
      else
        shared(a.rows, enough_rows(a.n, enough), forward, 1);
    } else {
      unsupported("real_fft of this dtype");
    }
  });
}

}  // namespace reel::cpu
