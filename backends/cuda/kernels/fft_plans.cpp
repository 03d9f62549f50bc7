#include "backends/cuda/kernels/fft_plans.h"

#include "backends/cuda/runtime/libraries.h"
#include "engine/core/error.h"
#include "engine/device/backend.h"

namespace reel::cuda {

static_assert(std::is_same_v<cufftHandle, int>);

FftPlans::~FftPlans() { clear(true); }

void FftPlans::clear(bool all) {
  for (auto at = plans_.begin(); at != plans_.end();) {
    if (at->second.kept && !all) {
      ++at;
      continue;
    }
    libraries_.fft().cufftDestroy(at->second.handle);
    at = plans_.erase(at);
  }
}

int FftPlans::plan(const Key& key, bool recorded) {
  const auto found = plans_.find(key);
  if (found != plans_.end()) {
    found->second.kept = found->second.kept || recorded;
    return found->second.handle;
  }
  if (recorded) throw NotCapturable("cuFFT is to make a plan first");
  if (plans_.size() >= limit) clear(false);
  const Cufft& fft = libraries_.fft();
  const bool wide = key.precision == DType::f64;
  const cufftType type = key.kind == FftKind::complex        ? (wide ? CUFFT_Z2Z : CUFFT_C2C)
                         : key.kind == FftKind::real_forward ? (wide ? CUFFT_D2Z : CUFFT_R2C)
                                                             : (wide ? CUFFT_Z2D : CUFFT_C2R);
  cufftHandle handle = 0;
  check(fft.cufftCreate(&handle), "fft: make a plan");
  long long n = key.n;
  std::size_t work = 0;
  const cufftResult code = fft.cufftMakePlanMany64(handle, 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, key.rows, &work);
  if (code != CUFFT_SUCCESS) {
    fft.cufftDestroy(handle);
    check(code, fmt::format("fft: make a plan for {} rows of {} numbers", key.rows, key.n).c_str());
  }
  check(fft.cufftSetStream(handle, stream_), "fft: set the stream");
  plans_[key] = {handle, false};
  return handle;
}

void FftPlans::run(const Key& key, bool inverse, const void* in, void* out, bool recorded) {
  const int handle = plan(key, recorded);
  const Cufft& fft = libraries_.fft();
  const int direction = inverse ? CUFFT_INVERSE : CUFFT_FORWARD;
  void* const from = const_cast<void*>(in);
  const bool wide = key.precision == DType::f64;
  cufftResult code = CUFFT_SUCCESS;
  switch (key.kind) {
    case FftKind::complex:
      code =
          wide ? fft.cufftExecZ2Z(handle, static_cast<cufftDoubleComplex*>(from), static_cast<cufftDoubleComplex*>(out),
                                  direction)
               : fft.cufftExecC2C(handle, static_cast<cufftComplex*>(from), static_cast<cufftComplex*>(out), direction);
      break;
    case FftKind::real_forward:
      code = wide ? fft.cufftExecD2Z(handle, static_cast<double*>(from), static_cast<cufftDoubleComplex*>(out))
                  : fft.cufftExecR2C(handle, static_cast<float*>(from), static_cast<cufftComplex*>(out));
      break;
    case FftKind::real_backward:
      code = wide ? fft.cufftExecZ2D(handle, static_cast<cufftDoubleComplex*>(from), static_cast<double*>(out))
                  : fft.cufftExecC2R(handle, static_cast<cufftComplex*>(from), static_cast<float*>(out));
  }
  if (code != CUFFT_SUCCESS)
    throw Error("fft", fmt::format("cuFFT failed with code {} on {} rows of {} numbers", static_cast<int>(code),
                                   key.rows, key.n));
}

}  // namespace reel::cuda
