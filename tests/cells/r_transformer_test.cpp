// R-Transformer: what drops values in a level, and where; what padding gives.
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

TEST_CASE("r_transformer: padding gives 0, of numbers and symbols alike, also where a sequence has no steps") {
  const auto cell = level("0");
  const Tensor table = Init(3, DType::f64).normal({4, d}, 1);
  const Tensor symbols = Tensor::from<std::int32_t>({0, 1, 2, 3, 2, 1, 2, 2, 1, 0, 0, 3, 3, 1, 2}, {T, B});
  const Tensor lengths = Tensor::from<std::int32_t>({5, 2, 0}, {B});
  const auto hs = [&](CellInput in) {
    in.lengths = lengths;
    return scan(*cell, {}, in).hs;
  };
  const Tensor of_symbols = hs({symbols, table}), of_numbers = hs(embedding(symbols, table));
  CHECK(difference(of_symbols, of_numbers) == 0);
  const Tensor whole = run(*cell, embedding(symbols, table), {});
  for (std::int64_t b = 0; b < B; ++b) {
    CAPTURE(b);
    const std::int64_t n = lengths.values<std::int32_t>()[static_cast<std::size_t>(b)];
    const auto part = [&](const Tensor& x, std::int64_t first, std::int64_t last) {
      return slice(slice(x, 1, b, b + 1), 0, first, last);
    };
    CHECK(difference(part(of_symbols, 0, n), part(whole, 0, n)) < 1e-14);
    CHECK(difference(part(of_symbols, n, T), Tensor::zeros({T - n, 1, d}, DType::f64)) == 0);
  }
}
