// argsort: the elements of a column are sorted together with their indices.
#include <algorithm>
#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/threads/enough.h"
#include "backends/shared/order.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t enough = 1 << 12;  // fewest elements that pay for a second thread

/// Sorts columns `first` to `last` - 1.
template <class T, bool descending>
void sort_columns(const PlacesArgs& a, std::int64_t first, std::int64_t last) {
  struct Item {
    T value;
    std::int32_t place;
    bool operator<(const Item& other) const { return comes_before(descending, value, place, other.value, other.place); }
  };
  std::vector<Item> items(static_cast<std::size_t>(a.n));
  for (std::int64_t c = first; c < last; ++c) {
    const std::int64_t o = c / a.inner, i = c % a.inner;
    const T* const in = static_cast<const T*>(a.in) + o * a.n * a.inner + i;
    std::int32_t* const out = a.out + o * a.count * a.inner + i;
    for (std::int64_t j = 0; j < a.n; ++j)
      items[static_cast<std::size_t>(j)] = {in[j * a.inner], static_cast<std::int32_t>(j)};
    const auto end = items.begin() + a.count;
    if (a.count < a.n) std::nth_element(items.begin(), end, items.end());
    std::sort(items.begin(), end);
    for (std::int64_t j = 0; j < a.count; ++j) out[j * a.inner] = items[static_cast<std::size_t>(j)].place;
  }
}

}  // namespace

void Cpu::argsort(const PlacesArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argsort of complex numbers or bool");
    else
      shared(
          a.outer * a.inner, enough_rows(a.n, enough),
          [&](std::int64_t first, std::int64_t last) {
            a.largest ? sort_columns<T, true>(a, first, last) : sort_columns<T, false>(a, first, last);
          },
          1);
  });
}

}  // namespace reel::cpu
