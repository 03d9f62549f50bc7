// copy: elements change place, unseen.
#include <cstring>

#include "backends/cpu/cpu.h"

namespace reel::cpu {

namespace {

struct Sixteen {
  std::uint64_t low, high;
};

template <class Element>
void copy_elements(const CopyArgs& a) {
  const Element* const in0 = static_cast<const Element*>(a.in);
  Element* const out0 = static_cast<Element*>(a.out);
  const std::int64_t n = a.loop.inner_dim();
  const auto stride = a.loop.inner_stride();
  const std::int64_t si = stride[0], so = stride[1];
  a.loop.for_each_run([&](const Loop<2>::Offsets& at) {
    const Element* in = in0 + at[0];
    Element* out = out0 + at[1];
    if (si == 1 && so == 1)
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Element));
    else
      for (std::int64_t i = 0; i < n; ++i) out[i * so] = in[i * si];
  });
}

}  // namespace

void Cpu::copy(const CopyArgs& a) {
  switch (a.element_bytes) {
    case 1:
      return copy_elements<std::uint8_t>(a);
    case 4:
      return copy_elements<std::uint32_t>(a);
    case 8:
      return copy_elements<std::uint64_t>(a);
    default:
      return copy_elements<Sixteen>(a);
  }
}

}  // namespace reel::cpu
