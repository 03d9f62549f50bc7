// zip: one kernel for each functor and dtype, and a second one for operands that cannot be vectorized.
#include "backends/cuda/kernels/elementwise.h"

namespace reel::cuda {

namespace {

/// Index g of the loop is a vector of `per` results. An operand that is constant over a vector is loaded once.
template <class F, class T, class Out, int per>
__global__ void zip_elements(Applied<F> f, OffsetCalculator<3> offsets_of, std::uint32_t places, bool same_a,
                             bool same_b, const T* a, const T* b, Out* out) {
#pragma unroll 1
  for (std::uint32_t g = static_cast<std::uint32_t>(thread()); g < places;
       g += static_cast<std::uint32_t>(all_threads())) {
    std::int64_t at[3];
    offsets_of.offsets(g, at);
    if constexpr (per == 1) {
      out[at[2]] = f(a[at[0]], b[at[1]]);
    } else {
      AlignedVector<T, per> x, y;
      if (same_a) {
        const T one = a[at[0]];
#pragma unroll
        for (int k = 0; k < per; ++k) x.at[k] = one;
      } else {
        x = *reinterpret_cast<const AlignedVector<T, per>*>(a + at[0]);
      }
      if (same_b) {
        const T one = b[at[1]];
#pragma unroll
        for (int k = 0; k < per; ++k) y.at[k] = one;
      } else {
        y = *reinterpret_cast<const AlignedVector<T, per>*>(b + at[1]);
      }
      AlignedVector<Out, per> results;
#pragma unroll
      for (int k = 0; k < per; ++k) results.at[k] = f(x.at[k], y.at[k]);
      *reinterpret_cast<AlignedVector<Out, per>*>(out + at[2]) = results;
    }
  }
}

using Kernel = void (*)(const ZipArgs&, const StridedLoop<3>& part, const StridedLoop<3>::Offsets& first, cudaStream_t);

/// Launches one part of a loop, at most 2^31 - 1 elements.
template <class F, class T>
void launch(const ZipArgs& z, const StridedLoop<3>& part, const StridedLoop<3>::Offsets& first, cudaStream_t stream) {
  using Out = applied<F, T, T>;
  constexpr int per = neighbours<T, Out>;
  const T *a = static_cast<const T*>(z.a) + first[0], *b = static_cast<const T*>(z.b) + first[1];
  Out* out = static_cast<Out*>(z.out) + first[2];
  const auto run = [&]<int n>(std::integral_constant<int, n>, const StridedLoop<3>& loop, std::int64_t skip) {
    const auto inner = loop.inner_stride();
    const std::int64_t places = loop.numel();
    zip_elements<F, T, Out, n><<<blocks_for(places), threads_per_block, 0, stream>>>(
        Applied<F>{z.params.as<F>()}, OffsetCalculator<3>(loop), static_cast<std::uint32_t>(places), inner[0] == 0,
        inner[1] == 0, a + skip * inner[0], b + skip * inner[1], out + skip * inner[2]);
  };
  const auto one = [&](const StridedLoop<3>& loop, std::int64_t skip) {
    run(std::integral_constant<int, 1>{}, loop, skip);
  };
  if constexpr (per > 1) {
    const bool laid = (part.inner_stride()[0] == 0 || aligned(a, sizeof(T) * per)) &&
                      (part.inner_stride()[1] == 0 || aligned(b, sizeof(T) * per)) && aligned(out, sizeof(Out) * per);
    constexpr bool may_repeat[] = {true, true, false};
    constexpr std::int64_t large = 1 << 14;
    StridedLoop<3> packs = part;
    std::int64_t rest = 0;
    if (packs.rank == 1 && packs.dims[0] > large) {  // the remainder of a long run pays for its own launch
      rest = packs.dims[0] % per;
      packs.dims[0] -= rest;
    }
    if (laid && vectorize(packs, per, may_repeat)) {
      run(std::integral_constant<int, per>{}, packs, 0);
      if (rest == 0) return;
      StridedLoop<3> last = part;
      last.dims[0] = rest;
      return one(last, part.dims[0] - rest);
    }
  }
  one(part, 0);
}

const auto zips = functor_table<Kernel>(
    BinaryFunctors{},
    []<class F, class T>(std::type_identity<F>, std::type_identity<T>) -> Kernel { return launch<F, T>; });

}  // namespace

void Cuda::zip(const ZipArgs& a) {
  const auto& kernel = kernel_for(zips, a);
  each_part(a.loop, [&](const StridedLoop<3>& part, const StridedLoop<3>::Offsets& first) {
    kernel.launch(a, part, first, stream());
    launched("zip", kernel.name, {part.numel()});
  });
}

}  // namespace reel::cuda
