#include <algorithm>
#include <map>

#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

/// The element of a side of a product at `at` (leading places), row i, column j, as the flags say.
Complex entry(const Host& x, Place lead, std::int64_t i, std::int64_t j, bool transpose, bool conj) {
  lead.resize(static_cast<std::size_t>(x.shape.rank()) - 2);  // none where it is shared
  lead.push_back(transpose ? j : i);
  lead.push_back(transpose ? i : j);
  return conj ? std::conj(x(lead)) : x(lead);
}

/// Einstein's sum, letter by letter: over all values of all letters, added up where the output's letters say.
ValueCheck summed(const std::vector<std::string>& inputs, const std::string& output) {
  const auto extents = [=](const Hosts& in) {
    std::map<char, std::int64_t> n;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      for (std::size_t i = 0; i < inputs[k].size(); ++i) {
        std::int64_t& own = n.try_emplace(inputs[k][i], 1).first->second;
        if (own == 1) own = in[k].shape[static_cast<int>(i)];
      }
    }
    return n;
  };
  const auto shape = [=](const Hosts& in) {
    Place dims;
    for (char c : output) dims.push_back(extents(in).at(c));
    return Shape(std::span<const std::int64_t>(dims));
  };
  return by_places(shape, [=](const Hosts& in, const Place& at) {
    const auto n = extents(in);
    std::string letters;
    Place free;
    for (const auto& [c, extent] : n) {
      letters += c;
      free.push_back(output.find(c) == std::string::npos ? extent : 1);
    }
    Complex sum = 0;
    each_place(Shape(std::span<const std::int64_t>(free)), [&](const Place& value) {
      Complex term = 1;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        Place here;
        for (std::size_t i = 0; i < inputs[k].size(); ++i) {
          const char c = inputs[k][i];
          const std::size_t in_output = output.find(c);
          const std::int64_t v = in_output == std::string::npos ? value[letters.find(c)] : at[in_output];
          here.push_back(in[k].shape[static_cast<int>(i)] == 1 ? 0 : v);
        }
        term *= in[k](here);
      }
      sum += term;
    });
    return sum;
  });
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  for (int flags = 0; flags < 16; ++flags) {
    const MatmulFlags f{(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
    const auto product = [&](Shape a, Shape b, const Shape& result) {
      for (const auto& [turned, side] : {std::pair{f.transpose_a, &a}, {f.transpose_b, &b}}) {
        const int last = side->rank() - 1;
        if (turned) *side = side->erase(last).insert(last - 1, (*side)[last]);
      }
      cases.push_back({"matmul", [=](const Tensors& x) { return matmul(x[0], x[1], f); },
                       [=](DType d) {
                         return Tensors{input(a, 81, d, -1, 1), input(b, 82, d, -1, 1)};
                       },
                       fields,
                       by_places([=](const Hosts&) { return result; },
                                 [=](const Hosts& in, const Place& at) {
                                   const Place lead(at.begin(), at.end() - 2);
                                   const std::int64_t i = at[at.size() - 2], j = at.back();
                                   Complex sum = 0;
                                   for (std::int64_t k = 0; k < a[a.rank() - (f.transpose_a ? 2 : 1)]; ++k)
                                     sum += entry(in[0], lead, i, k, f.transpose_a, f.conj_a) *
                                            entry(in[1], lead, k, j, f.transpose_b, f.conj_b);
                                   return sum;
                                 })});
    };
    product({3, 4}, {4, 2}, {3, 2});
    product({3, 3}, {3, 3}, {3, 3});
    product({2, 3, 4}, {2, 4, 5}, {2, 3, 5});
    product({2, 3, 4}, {4, 5}, {2, 3, 5});
    product({3, 4}, {2, 4, 5}, {2, 3, 5});
    if (f.conj_a || f.conj_b) continue;
    product({1, 1}, {1, 1}, {1, 1});
    product({2, 0}, {0, 3}, {2, 3});
    product({0, 2}, {2, 3}, {0, 3});
    product({2, 3, 3, 4}, {2, 3, 4, 2}, {2, 3, 3, 2});
  }

  const auto sums = [&](const char* op, const TensorFunction& f, const std::vector<Shape>& shapes,
                        const std::vector<std::string>& letters, const std::string& output,
                        const std::vector<DType>& dtypes) {
    cases.push_back({op, f,
                     [=](DType d) {
                       Tensors in;
                       for (const Shape& s : shapes) in.push_back(input(s, 83 + in.size(), d));
                       return in;
                     },
                     dtypes, summed(letters, output)});
  };
  const auto times = [](const Tensors& x) { return matmul(x[0], x[1]); };
  sums("matmul", times, {{3}, {3, 4}}, {"k", "kn"}, "n", fields);
  sums("matmul", times, {{3, 4}, {4}}, {"mk", "k"}, "m", fields);
  sums("matmul", times, {{2, 3, 4}, {4}}, {"bmk", "k"}, "bm", fields);
  sums("matmul", times, {{3}, {2, 3, 4}}, {"k", "bkn"}, "bn", fields);
  sums("matmul", times, {{2, 1, 3, 4}, {5, 4, 2}}, {"abmk", "bkn"}, "abmn", fields);
  sums("matmul", times, {{1, 3, 4}, {0, 4, 2}}, {"bmk", "bkn"}, "bmn", fields);
  sums("matmul", times, {{4}, {4}}, {"k", "k"}, "", fields);
  sums("matmul", times, {{0}, {0}}, {"k", "k"}, "", fields);
  const auto einsum_of = [](std::string text) {
    return [=](const Tensors& x) { return x.size() == 1 ? einsum(text, x[0]) : einsum(text, x[0], x[1]); };
  };
  sums("einsum", einsum_of("...ij,...jk->...ik"), {{2, 1, 3, 4}, {5, 4, 2}}, {"abij", "bjk"}, "abik", fields);
  sums("einsum", einsum_of("b...i, i -> ...b"), {{3, 2, 2, 4}, {4}}, {"bxyi", "i"}, "xyb", fields);
  sums("einsum", einsum_of("...ii"), {{2, 3, 3}}, {"bii"}, "b", fields);
  sums("einsum", einsum_of("z..., a...z"), {{3, 2}, {4, 2, 3}}, {"zx", "axz"}, "xa", fields);
  sums("einsum", einsum_of("...i,j"), {{3}, {2}}, {"i", "j"}, "ij", fields);
  sums(
      "linear", [](const Tensors& x) { return linear(x[0], x[1]); }, {{2, 3, 4}, {5, 4}}, {"bti", "oi"}, "bto", fields);
  cases.push_back({"linear", [](const Tensors& x) { return linear(x[0], x[1], x[2]); },
                   [](DType d) {
                     return Tensors{input({3, 4}, 84, d), input({5, 4}, 85, d), input({5}, 86, d)};
                   },
                   fields,
                   by_places(
                       [](const Hosts&) {
                         return Shape{3, 5};
                       },
                       [](const Hosts& in, const Place& at) {
                         Complex sum = in[2]({at[1]});
                         for (std::int64_t k = 0; k < 4; ++k) sum += in[0]({at[0], k}) * in[1]({at[1], k});
                         return sum;
                       })});
  for (std::int64_t n : {5, 1, 0}) {
    sums(
        "dot", [](const Tensors& x) { return dot(x[0], x[1]); }, {{n}, {n}}, {"k", "k"}, "", fields);
    sums(
        "outer", [](const Tensors& x) { return outer(x[0], x[1]); }, {{n}, {3}}, {"i", "j"}, "ij", all_numbers);
    cases.push_back({"vdot", [](const Tensors& x) { return vdot(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input({n}, 87, d), input({n}, 88, d)};
                     },
                     fields,
                     by_places([](const Hosts&) { return Shape{}; },
                               [=](const Hosts& in, const Place&) {
                                 Complex sum = 0;
                                 for (std::int64_t k = 0; k < n; ++k) sum += std::conj(in[0]({k})) * in[1]({k});
                                 return sum;
                               })});
  }
  for (const Shape& shape : {Shape{3, 3}, Shape{1, 1}, Shape{0, 0}})
    sums(
        "matrix_trace", [](const Tensors& x) { return matrix_trace(x[0]); }, {shape}, {"ii"}, "", all_numbers);
  sums(
      "matrix_trace", [](const Tensors& x) { return matrix_trace(x[0]); }, {{2, 3, 3}}, {"bii"}, "b", all_numbers);

  const auto one = [&](const std::string& x, const std::string& output, const Shape& shape) {
    sums(
        "einsum", [=](const Tensors& in) { return einsum(x + "->" + output, in[0]); }, {shape}, {x}, output,
        all_numbers);
  };
  one("ij", "ji", {2, 3});
  one("ijk", "kij", {2, 3, 4});
  one("ii", "", {3, 3});
  one("ii", "i", {3, 3});
  one("iji", "j", {3, 2, 3});
  one("iii", "i", {2, 2, 2});
  one("ij", "i", {2, 3});
  one("ij", "", {2, 3});
  one("", "", {});
  one("ij", "j", {0, 3});
  const auto two = [&](const std::string& a, const std::string& b, const std::string& output, const Shape& sa,
                       const Shape& sb) {
    sums(
        "einsum", [=](const Tensors& in) { return einsum(a + ", " + b + " -> " + output, in[0], in[1]); }, {sa, sb},
        {a, b}, output, fields);
  };
  two("ij", "jk", "ik", {2, 3}, {3, 4});
  two("ji", "kj", "ik", {3, 2}, {4, 3});
  two("bij", "bjk", "bik", {2, 2, 3}, {2, 3, 4});
  two("bij", "bkj", "kbi", {2, 2, 3}, {2, 4, 3});
  two("bi", "bi", "b", {3, 4}, {3, 4});
  two("i", "i", "", {4}, {4});
  two("i", "j", "ij", {2}, {3});
  two("i", "j", "ji", {2}, {3});
  two("ij", "ij", "ij", {2, 3}, {2, 3});
  two("ijk", "jil", "kl", {2, 3, 4}, {3, 2, 2});  // two summed letters, in another order
  two("ijk", "lm", "im", {2, 3, 2}, {2, 3});      // letters that one side sums alone
  two("ii", "ij", "j", {3, 3}, {3, 2});
  two("iij", "jkk", "ik", {2, 2, 3}, {3, 2, 2});
  two("ij", "jk", "ik", {2, 1}, {3, 4});  // an extent of 1 stretches
  two("ij", "ik", "ijk", {1, 2}, {3, 2});
  two("ij", "jk", "ik", {2, 0}, {0, 3});
  two("abc", "cad", "dba", {2, 3, 2}, {2, 2, 3});
  two("", "ij", "ji", {}, {2, 3});
});

}  // namespace

}  // namespace reel::test
