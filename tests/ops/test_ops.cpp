// Every op of the registry, driven by the table in op_cases.cpp: values in all dtypes, derivatives, the form for all
// time steps, and refusal of dtypes it does not take.
#include <algorithm>
#include <map>
#include <set>

#include "engine/scan/program.h"
#include "tests/ops/op_cases.h"

using namespace reel;
using namespace reel::test;

namespace {
DType wide(DType d) { return d == DType::f32 ? DType::f64 : d == DType::c64 ? DType::c128 : d; }

const Op* op_named(const std::string& name) {
  for (const Op* op : op_registry()) {
    if (op->traits.name == name) return op;
  }
  return nullptr;
}

/// f64 where the op takes it.
DType usual(const OpCase& c) {
  for (DType d : {DType::f64, DType::c128}) {
    if (std::find(c.dtypes.begin(), c.dtypes.end(), d) != c.dtypes.end()) return d;
  }
  return c.dtypes[0];
}

/// Ops of complex numbers alone, whose functions take real numbers, too, and then call other ops.
const std::set<std::string> of_reals_too{"conj", "imag", "angle", "fft", "irfft"};

/// What one line of the table says.
struct Line {
  bool dtypes[std::size(all_dtypes)] = {};
  double value = -1, first = -1, second = -1;  // worst errors; below 0: not looked at
};
}  // namespace

TEST_CASE("every op of the registry has a case with an independent value") {
  std::set<std::string> tested;
  for (const OpCase& c : op_cases()) {
    if (c.value) tested.insert(c.op);
  }
  for (const Op* op : op_registry()) {
    if (std::string(op->traits.name) != "scan")
      CHECK_MESSAGE(tested.contains(op->traits.name), std::string(op->traits.name));
  }
}

TEST_CASE("each op takes the dtypes it says, agrees in single and double precision, and refuses the others by name") {
  for (const OpCase& c : op_cases()) {
    for (DType d : all_dtypes) {
      CAPTURE(c.op);
      CAPTURE(name_of(d));
      const Tensors in = c.inputs(d);
      if (std::find(c.dtypes.begin(), c.dtypes.end(), d) == c.dtypes.end()) {
        if (!op_named(c.op) || of_reals_too.contains(c.op)) continue;
        const std::string text = error_of([&] { c.call(in); });
        CHECK_MESSAGE(contains(text, "[" + c.op + "]"), text);
        CHECK_MESSAGE(contains(text, std::string(name_of(d))), text);
        continue;
      }
      const Tensor y = c.call(in);
      if (wide(d) == d) continue;
      Tensors exact;
      for (const Tensor& x : in) exact.push_back(cast(x, wide(x.dtype())));
      const Tensor reference = c.call(exact);
      const Tensor widened = cast(y, wide(y.dtype()));
      CHECK((c.unique ? difference(widened, reference) : c.value(exact, widened)) < c.single);
    }
  }
}

TEST_CASE("values agree with an independent definition, gradient and gradient of gradient with central differences") {
  std::map<std::string, Line> table;
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.op);
    Line& line = table[c.op];
    for (DType d : c.dtypes) line.dtypes[static_cast<std::size_t>(d)] = true;
    for (DType d : {DType::f64, DType::c128, DType::i32, DType::boolean}) {
      if (std::find(c.dtypes.begin(), c.dtypes.end(), d) == c.dtypes.end()) continue;
      CAPTURE(name_of(d));
      const Tensors in = c.inputs(d);
      const Tensor y = c.call(in);
      CAPTURE(y.spec().str());
      if (c.value && real_of(y.dtype()) != DType::f32) {
        const double error = c.value(in, y);
        line.value = std::max(line.value, error);
        CHECK(error < 1e-10);
      }
      const Op* op = op_named(c.op);
      if ((op && !op->traits.differentiable) || !is_differentiable(y.dtype()) || !is_differentiable(d)) continue;
      if (real_of(y.dtype()) == DType::f32) continue;  // cast to single precision: too coarse to take differences of
      for (std::uint64_t seed : {100, 200}) {
        const GradErrors e = grad_errors(c.call, in, seed);
        line.first = std::max(line.first, e.first);
        line.second = std::max(line.second, e.second);
        CHECK(e.first < c.tolerance);
        CHECK(e.second < c.tolerance);
      }
    }
  }
  fmt::print("{:<24} {:<28} {:>9} {:>9} {:>9}\n", "op", "dtypes", "value", "gradient", "second");
  std::size_t ops = 0;
  for (const auto& [name, line] : table) {
    std::string dtypes;
    for (DType d : all_dtypes) {
      if (line.dtypes[static_cast<std::size_t>(d)]) dtypes += fmt::format("{} ", name_of(d));
    }
    const auto error = [](double e) { return e < 0 ? std::string("-") : fmt::format("{:.1e}", e); };
    fmt::print("{:<24} {:<28} {:>9} {:>9} {:>9}\n", name, dtypes, error(line.value), error(line.first),
               error(line.second));
    ops += op_named(name) ? 1 : 0;
  }
  fmt::print("{} ops, and {} functions made of them\n", ops, table.size() - ops);
}

TEST_CASE("the gradient of a cast is the gradient in the other dtype, its real part for a real input") {
  const Tensor w = random({3}, 2, DType::c64), x = random({3}, 1);
  Tape tape;
  const auto [narrow] = grad(inner(w, cast(x, DType::c64)), {x});
  CHECK(difference(narrow, cast(w, DType::f64)) == 0);
}

TEST_CASE("nothing flows back through a result that is not floating point") {
  for (const OpCase& c : op_cases()) {
    const Op* op = op_named(c.op);
    if (!op || op->traits.differentiable) continue;
    const Tensors in = c.inputs(usual(c));
    if (!is_differentiable(in[0].dtype())) continue;
    Tape tape;
    const Tensor x = in[0] * 2.0;
    Tensors moved = in;
    moved[0] = x;
    const Tensor y = c.call(moved);
    if (is_differentiable(y.dtype())) continue;
    const auto g = grad(sum(cast(y, DType::f64)), {x});
    CHECK(difference(g[0], Tensor::zeros(x.shape(), x.dtype())) == 0);
  }
}

TEST_CASE("the form for all time steps is the op at each step, whichever inputs vary") {
  constexpr std::int64_t steps = 3;
  for (const OpCase& c : op_cases()) {
    const Tensors one = c.inputs(usual(c));
    std::vector<Spec> specs;
    for (const Tensor& x : one) specs.push_back(x.spec());
    const Traced traced = trace(specs, [&](const Tensors& in) { return Tensors{c.call(in)}; });
    if (traced.program.nodes.size() != 1 || traced.program.consts > 0 || !op_named(c.op))
      continue;  // made of several ops, which have cases of their own
    const Program::Node& node = traced.program.nodes[0];
    if (node.num_outputs != 1) continue;  // ops with several results stay inside a loop
    if (node.in.empty()) continue;        // a constant is the same at each step
    const bool has_batch = node.op->loop.vmap != nullptr;
    REQUIRE_MESSAGE(has_batch, c.op);
    const std::size_t n = node.in.size();
    for (unsigned mask = 1; mask < (1U << n); ++mask) {
      CAPTURE(c.op);
      CAPTURE(mask);
      std::vector<Tensors> at(steps, Tensors(n));
      Tensors stacked(n);
      Mapped mapped;
      for (std::size_t i = 0; i < n; ++i) {
        const Tensor& x = one[static_cast<std::size_t>(node.in[i])];
        Tensors rows;
        for (std::int64_t t = 0; t < steps; ++t) {
          const bool vary = (mask >> i & 1) != 0;
          at[static_cast<std::size_t>(t)][i] =
              vary && is_differentiable(x.dtype()) ? x * (1.0 + 0.25 * static_cast<double>(t)) : x;
          rows.push_back(at[static_cast<std::size_t>(t)][i]);
        }
        stacked[i] = (mask >> i & 1) != 0 ? stack(rows) : x;
        if ((mask >> i & 1) != 0) mapped.set(i);
      }
      const Tensor all = node.op->loop.vmap(node.attrs, pointers(stacked), mapped, steps);
      Tensor total;
      for (std::int64_t t = 0; t < steps; ++t) {
        const Tensor expected = apply(*node.op, node.attrs, pointers(at[static_cast<std::size_t>(t)]), Loc::current());
        CHECK(difference(reel::at(all, t), expected) < 1e-14);
        if (is_differentiable(expected.dtype())) total = total.defined() ? total + expected : expected;
      }
      if (!node.op->loop.vmap_sum || !total.defined()) continue;
      const Tensor sum = node.op->loop.vmap_sum(node.attrs, pointers(stacked), mapped, steps);
      if (sum.defined()) CHECK(difference(sum, total) < 1e-14);
    }
  }
}
