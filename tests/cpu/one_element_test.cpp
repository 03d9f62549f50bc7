// An element alone has the bits that it has in a longer array: loops over one row, and plain ops, compute alike.
#include <cstring>

#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "tests/support/check.h"
#include "tests/support/sanitizers.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t n = 83;

/// Calls f with a functor of each type.
template <class... F>
void each(TypeList<F...>, auto&& f) {
  (f(F{}), ...);
}

/// The bytes of elements first..last-1 of the result; `alone`: each from a call of its own.
std::vector<std::byte> results(const auto& call, DType in, DType out, bool alone) {
  const auto step = static_cast<std::ptrdiff_t>(size_of(in)), bytes = static_cast<std::ptrdiff_t>(size_of(out));
  std::vector<std::byte> y(static_cast<std::size_t>(n * bytes));
  for (std::int64_t i = 0; i < (alone ? n : 1); ++i) call(alone ? 1 : n, i * step, y.data() + i * bytes);
  return y;
}

}  // namespace

TEST_CASE("an element alone has the bits that it has among others, in every function of one or two numbers") {
#if defined(REEL_ADDRESS_SANITIZER) || defined(REEL_THREAD_SANITIZER)
  return;  // less is inlined there, and what is not inlined is not contracted: a tail may round otherwise
#endif
  for (const DType d : all_dtypes) {
    const DType field = is_floating(d) || is_complex(d) ? d : DType::f32;
    const Tensor a = cast(random({n}, 1, field, -3, 3), d), b = cast(random({n}, 2, field, 1, 4), d);
    const auto *x = static_cast<const std::byte*>(a.data()), *y = static_cast<const std::byte*>(b.data());
    const auto check = [&]<class F>(F, const auto& call) {
      CAPTURE(name_of(d));
      CAPTURE(F::name);
      CHECK(results(call, d, result_dtype<F>(d), true) == results(call, d, result_dtype<F>(d), false));
    };
    each(UnaryFunctors{}, [&]<class F>(F f) {
      if (!takes<F>(d)) return;
      check(f, [&](std::int64_t size, std::ptrdiff_t at, std::byte* out) {
        a.backend().map({index_of<F, UnaryFunctors>, f, d, size, x + at, out});
      });
    });
    each(BinaryFunctors{}, [&]<class F>(F f) {
      if (!takes<F>(d)) return;
      check(f, [&](std::int64_t size, std::ptrdiff_t at, std::byte* out) {
        ZipArgs args{index_of<F, BinaryFunctors>, f, d, {}, x + at, y + at, out};
        args.loop.push(size, {1, 1, 1});
        a.backend().zip(args);
      });
    });
  }
}
