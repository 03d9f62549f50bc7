// What ops say of the rows of a batch, by which threads share them: where `rows` says yes, the op of some rows gives
// those rows of its result; where `reduces_rows` does, the results of parts of the rows add up to the whole. For every
// op of the registry, in all calls that the cases of test_ops make, whichever inputs are shared out.
#include <algorithm>
#include <set>

#include "engine/scan/program.h"
#include "tests/ops/op_cases.h"

using namespace reel;
using namespace reel::test;

namespace {

Tensor part(const Tensor& x, std::int64_t first, std::int64_t last) {
  Shape shape = x.shape();
  shape.set(0, last - first);
  return x.view(shape, first * x.shape().product(1, x.rank()));
}

/// A call as a loop over time makes it: results have their place, which nothing has written to.
Tensors run(const Op& op, const Attrs& attrs, const Tensors& in, const std::vector<Spec>& specs) {
  Tensors out;
  for (const Spec& spec : specs) {
    if (op.alias) {
      const std::int64_t skip = op.alias(attrs, pointers(in));
      REQUIRE(skip >= 0);
      REQUIRE(skip + spec.shape.numel() <= in[0].numel());
      return {in[0].view(spec.shape, skip)};
    }
    out.push_back(Tensor::empty(spec));
    const double nobody = is_differentiable(spec.dtype) ? std::nan("") : 77;
    out.back().backend().fill({spec.dtype, out.back().numel(), nobody, out.back().data()});
  }
  op.run(attrs, pointers(in), out);
  return out;
}

/// Splits of 0..B-1: each by itself, and two uneven halves.
std::vector<std::vector<std::int64_t>> splits_of(std::int64_t B) {
  std::vector<std::vector<std::int64_t>> all{{0, 1, B}, {0, B - 1, B}, {}};
  for (std::int64_t b = 0; b <= B; ++b) all.back().push_back(b);
  return all;
}

struct Seen {
  std::set<std::string> rows, sums;
};

/// One call, with the inputs of `mask` shared out.
void check(const Op& op, const Attrs& attrs, const Tensors& in, const Tensors& whole, unsigned mask, Seen& seen) {
  Mapped sharded;
  std::int64_t B = -1;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (in[i].rank() == 0 || (B >= 0 && in[i].dim(0) != B)) return;
    B = in[i].dim(0);
    sharded.set(i);
  }
  if (B < 2) return;
  const bool rows = op.loop.shards_rows && op.loop.shards_rows(attrs, pointers(in), sharded),
             sums = !rows && op.loop.reduces_rows && op.loop.reduces_rows(attrs, pointers(in), sharded);
  const bool has_rows =
      std::all_of(whole.begin(), whole.end(), [&](const Tensor& y) { return y.rank() > 0 && y.dim(0) == B; });
  if (!sums && !(rows && has_rows)) return;  // rows of what has none are not asked for
  (rows ? seen.rows : seen.sums).insert(op.traits.name);
  for (const std::vector<std::int64_t>& ends : splits_of(B)) {
    Tensors totals;
    for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
      Tensors some = in;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (sharded[i]) some[i] = part(in[i], ends[k], ends[k + 1]);
      }
      std::vector<Spec> specs;
      for (const Tensor& y : whole) {
        specs.push_back(y.spec());
        if (rows) specs.back().shape.set(0, ends[k + 1] - ends[k]);
      }
      const Tensors got = run(op, attrs, some, specs);
      for (std::size_t j = 0; j < got.size(); ++j) {
        if (rows) CHECK(difference(got[j], part(whole[j], ends[k], ends[k + 1])) < 1e-14);
        if (sums) totals.resize(got.size());
        if (sums) totals[j] = k == 0 ? got[j] : totals[j] + got[j];
      }
    }
    for (std::size_t j = 0; j < totals.size(); ++j) CHECK(difference(totals[j], whole[j]) < 1e-14);
  }
}

}  // namespace

TEST_CASE("what ops say of rows is so") {
  Seen seen;
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.op);
    for (const DType dtype : {DType::f64, DType::c128, DType::i32, DType::boolean}) {
      if (std::find(c.dtypes.begin(), c.dtypes.end(), dtype) == c.dtypes.end()) continue;
      const Tensors inputs = c.inputs(dtype);
      std::vector<Spec> specs;
      for (const Tensor& x : inputs) specs.push_back(x.spec());
      const Traced traced = trace(specs, [&](const Tensors& in) { return Tensors{c.call(in)}; });
      Tensors values = inputs;
      values.insert(values.end(), traced.consts.begin(), traced.consts.end());
      values.resize(traced.program.values.size());
      for (const Program::Node& node : traced.program.nodes) {
        apply_node(node, values);
        Tensors in;
        for (const int id : node.in) in.push_back(values[id]);
        const Tensors whole(values.begin() + node.out, values.begin() + node.out + node.num_outputs);
        CAPTURE(node.op->traits.name);
        for (unsigned mask = 1; mask < (1U << in.size()); ++mask) {
          CAPTURE(mask);
          check(*node.op, node.attrs, in, whole, mask, seen);
        }
      }
    }
  }
  for (const Op* op : op_registry()) {
    const std::string name = op->traits.name;
    CHECK_MESSAGE((!op->loop.shards_rows || seen.rows.contains(name)), name, ": no case whose rows can be shared out");
    CHECK_MESSAGE((!op->loop.reduces_rows || seen.sums.contains(name)), name, ": no case that sums over rows");
  }
}
