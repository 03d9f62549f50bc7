// R-Transformer: what drops values in a level, and where.
#include "cells/cell.h"
#include "tests/support/cells.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t T = 5, B = 3, d = 8;

std::unique_ptr<Cell> level(const std::string& share) {
  const CellType& type = cell_type("r_transformer");
  Init init(7, DType::f64);
  return type.make(d, d, Settings(type.name, type.settings, {{"dropout", share}}), init);
}

Tensor run(const Cell& cell, const Tensor& x, std::function<Tensor(const Tensor&, double)> drop) {
  CellInput in(x);
  in.drop = std::move(drop);
  return scan(cell, {}, in).hs;
}

}  // namespace

TEST_CASE("r_transformer: drops behind each of its parts, in the weights of attention and in the wide layer") {
  const Tensor x = Init(3, DType::f64).normal({T, B, d}, 1);
  const auto cell = level("0.1");
  std::vector<std::string> shapes;
  std::vector<double> shares;
  const Tensor all = run(*cell, x, [&](const Tensor& a, double share) {
    shapes.push_back(a.shape().str());
    shares.push_back(share);
    return a;
  });
  CHECK(shapes == std::vector<std::string>{"(5, 3, 8)", "(3, 4, 5, 5)", "(5, 3, 8)", "(5, 3, 32)", "(5, 3, 8)"});
  CHECK(shares == std::vector<double>(5, 0.1));
  // where everything is kept it is the level without dropout; where everything is dropped, what is left is x
  CHECK(difference(all, run(*level("0"), x, {})) == 0);
  CHECK(difference(run(*cell, x, {}), all) == 0);  // outside of training
  CHECK(difference(run(*cell, x, [](const Tensor& a, double) { return a * 0.0; }), x) == 0);
  bool called = false;
  run(*level("0"), x, [&](const Tensor& a, double) { return called = true, a; });
  CHECK_FALSE(called);
}
