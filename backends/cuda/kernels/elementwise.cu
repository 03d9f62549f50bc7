// cast, select, fill.
#include <cmath>
#include <cstring>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/shared/convert.h"

namespace reel::cuda {

namespace {

template <class To>
struct As {
  template <class From>
  __device__ To operator()(From x) const {
    return element_cast<To>(x);
  }
};

struct Choose {
  template <class Word>
  __device__ Word operator()(bool condition, Word a, Word b) const {
    return condition ? a : b;
  }
};
template <class Word>
struct Always {
  Word value;
  __device__ Word operator()() const { return value; }
};

}  // namespace

void Cuda::cast(const CastArgs& a) {
  if (a.n == 0) return;
  dispatch(a.from, [&]<class From>(std::type_identity<From>) {
    dispatch(a.to, [&]<class To>(std::type_identity<To>) {
      using T = device_type<To>;
      map_all(As<T>(), a.n, stream(), static_cast<T*>(a.out), static_cast<const device_type<From>*>(a.in));
    });
  });
  launched("cast", {a.n});
}

void Cuda::select(const SelectArgs& s) {
  if (s.n == 0) return;
  with_word(size_of(s.dtype), [&]<class Word>(Word) {
    map_all(Choose(), s.n, stream(), static_cast<Word*>(s.out), s.condition, static_cast<const Word*>(s.a),
            static_cast<const Word*>(s.b));
  });
  launched("select", {s.n});
}

void Cuda::fill(const FillArgs& a) {
  if (a.n == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(a.n) * size_of(a.dtype);
  if (bytes > few_bytes && a.value == 0.0 && !std::signbit(a.value.real()) && !std::signbit(a.value.imag())) {
    check(cudaMemsetAsync(a.out, 0, bytes, stream()), "fill");
  } else {
    dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
      const T value = element_cast<T>(a.value);
      with_word(sizeof(T), [&]<class Word>(Word word) {
        std::memcpy(&word, &value, std::min(sizeof value, sizeof word));  // the same size
        map_all(Always<Word>{word}, a.n, stream(), static_cast<Word*>(a.out));
      });
    });
  }
  launched("fill", {a.n});
}

}  // namespace reel::cuda
