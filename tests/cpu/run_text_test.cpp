// The text of a fusion group: as many calls one after the other as there may be.
#include "backends/shared/run_text.h"

#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "tests/support/check.h"

using namespace reel;

TEST_CASE("a chain of very many calls has a line for each, in order") {
  constexpr int n = 100000;
  std::vector<FusedCall> calls;
  for (int i = 0; i < n; ++i) {
    FusedCall call{.kind = FusedCall::Kind::map, .functor = index_of<Tanh, UnaryFunctors>};
    call.in[0] = i;
    call.out = i + 1;
    calls.push_back(call);
  }
  RunText text(
      calls, std::vector<DType>(n + 1, DType::f32), std::vector<char>(n + 1, 0), 8, 0,
      [](int operand, std::int64_t shift) { return RunText::name(operand, shift); }, "");
  CHECK(text.value(n) == "v100000");
  CHECK(std::count(text.lines().begin(), text.lines().end(), '\n') == n);
  CHECK(text.lines().starts_with("const float v1 = Unary<"));
  CHECK(text.lines().find("(v1);") < text.lines().find("(v99999);"));
}

TEST_CASE("sums with values that are rolled, computed at every shift, stop at a limit") {
  constexpr int levels = 200;
  std::vector<FusedCall> calls;
  for (int i = 0; i < levels; ++i) {  // v += roll(v, 2^i)
    FusedCall roll{.kind = FusedCall::Kind::roll, .functor = 1 << (i % 10)};
    roll.in[0] = 2 * i;
    roll.out = 2 * i + 1;
    FusedCall sum{.kind = FusedCall::Kind::zip, .functor = index_of<Add, BinaryFunctors>};
    sum.in[0] = 2 * i;
    sum.in[1] = 2 * i + 1;
    sum.out = 2 * i + 2;
    calls.insert(calls.end(), {roll, sum});
  }
  constexpr int n = 2 * levels + 1;
  RunText text(
      calls, std::vector<DType>(n, DType::f32), std::vector<char>(n, 0), 1024, 0,
      [](int operand, std::int64_t shift) { return RunText::name(operand, shift); }, "");
  text.stop_at(1000);
  CHECK(text.value(n - 1).empty());
  CHECK(text.gave_up());
  CHECK(std::count(text.lines().begin(), text.lines().end(), '\n') <= 1000);
}
