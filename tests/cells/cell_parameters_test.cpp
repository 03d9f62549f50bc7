// What a cell may register as a parameter.
#include "cells/cell.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {
struct Own final : Cell {
  explicit Own(const Init& init) : Cell(1, 1, init) {}
  using Cell::fixed;
  using Cell::parameter;
  Tensors step(const Tensors& state, const Tensor&) const override { return state; }
};
}  // namespace

TEST_CASE("names of parameters: what tables, files and pages can have") {
  const auto said = [](const std::string& name) {
    return error_of([&] { Own(Init(1)).parameter(name, Tensor::zeros({2})); });
  };
  for (const char* name : {"W", "W_1", "3", "h_0", "shift.W", "a.b-c.d_e", "θ", "W'", "W(x)"})
    CHECK(said(name).empty());
  for (const std::string name : {"", "a b", "a/b", "a=b", "a,b", "a\nb", "a\"b", "a\x7f"}) {
    const std::string rule =
        "[parameter] \"" + name + "\": a name has one character or more, no spaces, and none of / = , \"";
    CHECK(said(name) == rule);
    CHECK(error_of([&] { Own(Init(1)).fixed(name, Tensor::zeros({2})); }) == rule);
  }
}

TEST_CASE("two parameters of one name or one tensor, and none at all") {
  Own cell(Init(1));
  const Tensor w = cell.parameter("W", Tensor::zeros({2}));
  CHECK(error_of([&] { cell.parameter("W", Tensor::zeros({2})); }) == "[parameter] two parameters are called \"W\"");
  CHECK(error_of([&] { cell.fixed("V", w); }) == "[parameter] \"W\" and \"V\" are one tensor");
  CHECK(error_of([&] { cell.parameter("V", Tensor()); }) == "[parameter] \"V\" has no tensor");
}
