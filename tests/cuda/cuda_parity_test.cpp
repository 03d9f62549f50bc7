// The GPU against the CPU: every op of the table, value and gradients, and the loss and gradients of every cell. Needs
// a GPU; says that it is skipped where there is none.
#include <limits>
#include <map>

#include "cells/cell.h"
#include "ops/linalg.h"
#include "ops/matrix.h"
#include "ops/spectral.h"
#include "tests/ops/op_cases.h"
#include "tests/support/gpu.h"
#include "tests/support/random_loops.h"

using namespace reel;
using namespace reel::test;

namespace {

Backend* gpu() {
  static Backend* const found = gpu_or_skip("cuda,sync");
  return found;
}

/// Makes tensors that nobody places on one device, while it lives.
struct On {
  explicit On(const Backend& device) { set_default_backend(device.name()); }
  ~On() { set_default_backend("cpu"); }
};

Tensor moved(const Tensor& x, Backend& to) {
  Tensor out = Tensor::empty({x.dtype(), x.shape(), &to});
  std::vector<std::byte> bytes(x.bytes());
  x.backend().read(bytes.data(), x.data(), bytes.size());
  to.write(out.data(), bytes.data(), bytes.size());
  return out;
}
Tensors moved(const Tensors& xs, Backend& to) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(moved(x, to));
  return out;
}

/// The value, and the gradients of a fixed sum of it.
Tensors value_and_gradients(const TensorFunction& f, const Tensors& in, bool differentiable) {
  Tape tape;
  Tensors wrt;
  for (const Tensor& x : in) {
    if (is_differentiable(x.dtype())) wrt.push_back(x);
  }
  const Tensor y = f(in);
  Tensors out{y};
  if (!differentiable || wrt.empty() || !is_differentiable(y.dtype())) return out;
  const Tensor w = moved(random(y.shape(), 7, y.dtype()), y.backend());
  for (const Tensor& g : grad({inner(w, y)}, wrt)) out.push_back(g);
  return out;
}

/// The largest residual of all factorisations of A, which are made on a device and looked at on the CPU.
double factorisation_residual(const Tensor& A, const Tensor& singular_values, Backend& device) {
  const auto wide = [](const Tensor& x) { return cast(x, DType::c128); };
  const auto there = [&](const std::function<Tensors(const Tensor&)>& f) {
    Tensors out;
    {
      const On on(device);
      out = f(moved(A, device));
    }
    for (Tensor& t : out) t = wide(moved(t, backend("cpu")));
    return out;
  };
  const Tensor a = wide(A);
  const std::int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  double worst = 0;
  const auto same = [&](const Tensor& x, const Tensor& y) { worst = std::max(worst, difference(x, y + x * 0.0)); };
  const auto basis = [&](const Tensor& x) { same(matmul(adjoint(x), x), eye(x.dim(-1), DType::c128)); };
  const Tensors f = there([](const Tensor& x) {
    const Lu r = lu(x);
    return Tensors{r.P, r.L, r.U};
  });
  same(matmul(f[0], matmul(f[1], f[2])), a);
  const Tensors q = there([](const Tensor& x) {
    const Qr r = qr(x);
    return Tensors{r.Q, r.R};
  });
  same(matmul(q[0], q[1]), a);
  basis(q[0]);
  const Tensors s = there([](const Tensor& x) {
    const SvdResult r = svd(x);
    return Tensors{r.U, r.S, r.Vh};
  });
  same(matmul(s[0] * unsqueeze(s[1], -2), s[2]), a);
  same(s[1], wide(singular_values));
  basis(s[0]);
  const Tensor inverse = there([](const Tensor& x) { return Tensors{pinv(x)}; })[0];
  same(m >= n ? matmul(inverse, a) : matmul(a, inverse), eye(k, DType::c128));
  if (m >= n) basis(there([](const Tensor& x) { return Tensors{polar_factor(x)}; })[0]);
  if (m != n) return worst;
  const Tensors x = there([](const Tensor& b) {
    const Tensor upper = triu(b) + 2 * eye(b.dim(-1), b.dtype());
    return Tensors{upper, triangular_solve(upper, b, {.upper = true}),
                   triangular_solve(upper, b, {.upper = true, .adjoint = true}), solve(b, upper)};
  });
  same(matmul(x[0], x[1]), a);
  same(matmul(adjoint(x[0]), x[2]), a);
  same(matmul(a, x[3]), x[0]);
  const Tensors d = there([](const Tensor& b) {
    const SignAndLog r = slogdet(b);
    return Tensors{r.sign, r.log_abs};
  });
  const SignAndLog wanted = slogdet(a);
  same(d[0], wanted.sign);
  same(d[1], wide(wanted.log_abs));
  const Tensors e = there([](const Tensor& b) {
    const EigResult r = eig(b);
    return Tensors{r.values, r.vectors};
  });
  same(matmul(a, e[1]), e[1] * unsqueeze(e[0], -2));
  return worst;
}

using Results = std::vector<std::vector<std::complex<double>>>;

/// What the device makes of a run. Its operands lie there as far off alignment as here, and results are spoilt before.
Results by_device(FusedRunMaker& run, Backend& device) {
  constexpr std::size_t line = 64;
  std::vector<StoragePtr> rooms;
  std::vector<FusedOperand> there = run.operands;
  const auto bytes = [&](const FusedOperand& o) {
    return static_cast<std::size_t>(run.rows * run.columns) * o.element_bytes;
  };
  for (const FusedCall& c : run.calls) {
    const FusedOperand& out = run.operands[static_cast<std::size_t>(c.out)];
    if (!out.local) std::memset(out.data, 1, bytes(out));
  }
  for (FusedOperand& o : there) {
    if (o.local) continue;
    rooms.emplace_back(device.allocate(bytes(o) + line));
    std::byte* const to = rooms.back()->data + reinterpret_cast<std::uintptr_t>(o.data) % line;
    device.write(to, o.data, bytes(o));
    o.data = to;
  }
  device.fused({run.rows, run.columns, run.calls, there});
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (!there[i].local) device.read(run.operands[i].data, there[i].data, bytes(there[i]));
  }
  return run.results();
}

/// What the device makes of a loop, whose results are spoilt before.
Results by_device(RandomLoop& loop, Backend& device) {
  std::vector<StoragePtr> rooms;
  std::vector<std::byte*> there;
  const auto here = loop.buffers();
  const auto sizes = loop.bytes();
  for (std::size_t k = 0; k < here.size(); ++k) {
    rooms.emplace_back(device.allocate(sizes[k]));
    there.push_back(rooms.back()->data);
    device.write(there.back(), here[k], sizes[k]);
  }
  device.run(loop.lowered(), there);
  for (std::size_t k = 0; k < here.size(); ++k) device.read(here[k], there[k], sizes[k]);
  return loop.results();
}

/// Are all calls of a run ones that the device makes kernels of? Those of complex numbers need headers.
bool takes_run(const FusedRunMaker& run, Backend& device) {
  return std::all_of(run.calls.begin(), run.calls.end(), [&](const FusedCall& c) { return device.fuses(c); });
}

double parity(DType d) { return real_of(d) == DType::f32 ? 1e-5 : is_differentiable(d) ? 1e-11 : 0; }

}  // namespace

TEST_CASE("every op: value and gradients on the GPU are the CPU's") {
  if (!gpu()) return;
  std::map<std::string, bool> ends;
  for (const Op* op : op_registry()) ends[op->traits.name] = !op->traits.differentiable;
  double worst_single = 0, worst_double = 0;
  for (const OpCase& c : op_cases()) {
    for (DType d : c.dtypes) {
      CAPTURE(c.op);
      CAPTURE(name_of(d));
      const Tensors in = c.inputs(d);
      const bool differentiable = !ends[c.op];
      const Tensors wanted = value_and_gradients(c.call, in, differentiable);
      Tensors got;
      {
        const On device(*gpu());
        got = value_and_gradients(c.call, moved(in, *gpu()), differentiable);
      }
      REQUIRE(got.size() == wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        if (!got[i].defined() && !wanted[i].defined()) continue;
        const double error = difference(got[i], wanted[i]);
        // Both are within c.single of the exact value.
        const double limit = real_of(d) == DType::f32 ? std::max(parity(d), 2 * c.single) : parity(wanted[i].dtype());
        CHECK_MESSAGE(error <= limit, fmt::format("{} on {}: {:.2g}, at most {:.2g}", c.op, name_of(d), error, limit));
        (real_of(d) == DType::f32 ? worst_single : worst_double) =
            std::max(real_of(d) == DType::f32 ? worst_single : worst_double, error);
      }
    }
  }
  fmt::print("ops: largest difference {:.1e} in single, {:.1e} in double precision\n", worst_single, worst_double);
}

TEST_CASE("runs at random: the kernel that is made of them is the CPU's on the GPU, to the last bit") {
  if (!gpu()) return;
  int taken = 0;
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {3, 7}, {5, 1}, {1, 900}, {40, 1024}, {33, 999}, {20, 2048}}) {
    for (int calls : {2, 9, 20}) {
      const auto run = random_run(static_cast<std::uint64_t>(columns + calls), rows, columns, calls);
      if (!takes_run(*run, *gpu())) continue;
      ++taken;
      const Results wanted = run->cpu_fallback();
      CHECK_MESSAGE((by_device(*run, *gpu()) == wanted), fmt::format("{} calls on {} x {}", calls, rows, columns));
    }
  }
  CHECK(taken > 0);
}

TEST_CASE("runs of many calls are several kernels, with values that pass from one to the next") {
  if (!gpu()) return;
  for (const std::uint64_t seed : {1, 2}) {
    const auto run = random_run(seed, 3, 70, 2000);
    const Results wanted = run->cpu_fallback();
    CHECK((by_device(*run, *gpu()) == wanted));
  }
  FusedRunMaker chain(3, 70, 3);  // the numbers alone are more than one kernel has arguments
  int x = chain.add_full(DType::f32);
  for (int i = 0; i < 2100; ++i) x = chain.map(Affine{-1, 1}, x, i + 1 < 2100);
  const Results wanted = chain.cpu_fallback();
  CHECK((by_device(chain, *gpu()) == wanted));
}

TEST_CASE("loops at random: one kernel on the GPU is the CPU's steps, to the last bit") {
  if (!gpu()) return;
  int taken = 0;
  for (const auto& loop : random_loops()) {
    if (!loop->taken_by(*gpu())) continue;
    ++taken;
    const auto start = loop->memory();
    loop->cpu_fallback();
    const Results wanted = loop->results();
    loop->restore(start);
    CHECK(by_device(*loop, *gpu()) == wanted);
  }
  CHECK(taken > 0);
}

TEST_CASE("every function in a run: the GPU against the CPU's kernel") {
  if (!gpu()) return;
  for (DType d : all_dtypes) {
    for (const std::int64_t rows : {3, 100}) {  // the latter in packs, where that is more than one
      if (rows > 3 && size_of(d) > 8) continue;
      const auto run = all_functions(d, rows, 1024);
      if (!takes_run(*run, *gpu())) continue;
      const Results wanted = run->cpu_fallback(), got = by_device(*run, *gpu());
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        double worst = 0;
        for (std::size_t e = 0; e < wanted[k].size(); ++e)
          worst = std::max(worst, std::abs(got[k][e] - wanted[k][e]) / std::max(1.0, std::abs(wanted[k][e])));
        CHECK_MESSAGE(worst < (real_of(d) == DType::f32 ? 1e-5 : 1e-13),
                      fmt::format("{}: call {}, functor {}", name_of(d), k, run->calls[k].functor));
      }
    }
  }
}

TEST_CASE("real transforms of views that begin anywhere") {
  if (!gpu()) return;
  for (DType d : {DType::f32, DType::f64}) {
    for (const std::int64_t n : {1, 7, 8}) {
      const Tensor x = random({3 * n + 1}, 31, d);
      const auto transformed = [&](const Tensor& all) { return rfft(all.view({3, n}, 1)); };
      CHECK(difference(transformed(moved(x, *gpu())), transformed(x)) <= parity(d));
    }
  }
}

TEST_CASE("every cell: loss and gradients on the GPU are the CPU's") {
  if (!gpu()) return;
  struct Size {
    DType dtype;
    std::int64_t hidden, batch;
  };
  for (const CellType& type : cell_registry()) {
    // The last one has more weights than fit into one block of a loop's kernel.
    for (const auto& [dtype, hidden, batch] :
         {Size{DType::f32, 16, 4}, Size{DType::f64, 16, 4}, Size{DType::f64, 128, 20}}) {
      const auto run = [&](Backend& device) {
        const On on(device);
        Init init(3, dtype, device);
        const auto cell = type.make(3, hidden, Settings(type.name, type.settings), init);
        Tensors wrt;
        for (const Parameter& p : cell->parameters()) {
          if (p.trained) wrt.push_back(p.value);
        }
        const Tensor xs = cast(uniform({20, batch, 3}, -1, 1, 5, 1, DType::f64, device), dtype);
        Tape tape;
        const Tensor loss = mean(square(abs(scan(*cell, cell->initial(batch), xs).hs)));
        Tensors out{loss};
        for (const Tensor& g : grad({loss}, wrt)) out.push_back(g);
        return out;
      };
      const Tensors wanted = run(backend("cpu")), got = run(*gpu());
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i].defined() != wanted[i].defined()) FAIL("a gradient is missing");
        if (got[i].defined()) worst = std::max(worst, difference(got[i], wanted[i]));
      }
      CHECK_MESSAGE(worst <= parity(dtype),
                    fmt::format("{} of {} on {}: {:.2g}", type.name, hidden, name_of(dtype), worst));
    }
  }
}

TEST_CASE("linear algebra of larger matrices, and of many: residuals on the GPU") {
  if (!gpu()) return;
  // The first is beyond the sizes whose eigenvalues are the CPU's.
  for (const Shape& shape : {Shape{310, 310}, Shape{2, 140, 70}, Shape{70, 141}, Shape{9, 40, 40}, Shape{12, 8, 8}}) {
    for (const DType d : {DType::f32, DType::f64, DType::c64, DType::c128}) {
      CAPTURE(shape.str());
      CAPTURE(name_of(d));
      const SvdResult any = svd(random(shape, 21, is_complex(d) ? DType::c128 : DType::f64));
      const std::int64_t k = any.S.dim(-1);
      const Tensor values = 2.0 - arange(k, DType::f64) / static_cast<double>(k);  // all apart
      const Tensor A = cast(matmul(any.U * cast(values, any.U.dtype()), any.Vh), d);
      const double error = factorisation_residual(A, values, *gpu());
      CHECK(error < (real_of(d) == DType::f32 ? 1e-4 : 1e-12));
    }
  }
}

TEST_CASE("long running sums, infinite rows, and lookups in parts are the CPU's to the last bit") {
  if (!gpu()) return;
  const auto same = [](const TensorFunction& f, const Tensors& in) {
    const Tensor wanted = f(in);
    const On device(*gpu());
    CHECK(elements(f(moved(in, *gpu()))) == elements(wanted));
  };
  const auto whole = [](const Shape& s) { return floor(uniform(s, -9, 9, 3, 1, DType::f64)); };  // sums are exact
  for (const bool reverse : {false, true})
    same([&](const Tensors& x) { return cumsum(x[0], -1, reverse); }, {whole({3, 100})});
  const double inf = std::numeric_limits<double>::infinity();
  same([](const Tensors& x) { return logsumexp(x[0], {1}); },
       {Tensor::from<double>({-inf, -inf, 1, inf, inf, inf}, {3, 2})});
  for (const auto& f : {all, any})
    same([&](const Tensors& x) { return cast(f(x[0], {0}, false), DType::i32); },
         {Tensor::zeros({0, 3}, DType::boolean)});
  same([](const Tensors& x) { return segment_sum(x[0], x[1], 4); }, {integers({3000}, 0, 4, 9, 4), whole({3000, 2})});
}

TEST_CASE("random numbers are the same on the GPU") {
  if (!gpu()) return;
  for (std::int64_t n : {1, 2, 1001, 1 << 20}) {
    const auto same = [&](auto make) { return difference(make(*gpu()), make(backend("cpu"))); };
    CHECK(same([&](Backend& b) { return uniform({n}, 0, 1, 9, 4, DType::f64, b); }) == 0);
    CHECK(same([&](Backend& b) { return uniform({n}, 0, 1, 9, 4, DType::f32, b); }) == 0);
    CHECK(same([&](Backend& b) { return uniform({n}, -0.1, 0.3, 9, 4, DType::f64, b); }) == 0);
    CHECK(same([&](Backend& b) { return bernoulli({n}, 0.3, 9, 4, b); }) == 0);
    CHECK(same([&](Backend& b) { return integers({n}, -5, 17, 9, 4, b); }) == 0);
    CHECK(same([&](Backend& b) { return normal({n}, 1, 2, 9, 4, DType::f64, b); }) < 1e-15 * 8);
  }
}

TEST_CASE("sums, lookups and products give the same bits every time") {
  if (!gpu()) return;
  const Tensor x = normal({300, 5000}, 0, 1, 1, 1, DType::f32, *gpu());
  const Tensor index = integers({300}, 0, 10, 1, 2, *gpu()), table = Tensor::zeros({10, 5000}, DType::f32, *gpu());
  const auto all = [&] {
    Tape tape;
    const Tensor picked = embedding(index, table);
    Tensors out{sum(x), sum(x, {0}), sum(x, {1}), matmul(x, x, {.transpose_b = true})};
    out.push_back(grad({sum(picked * x)}, Tensors{table})[0]);
    return out;
  };
  const Tensors first = all(), second = all();
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(difference(first[i], second[i]) == 0);
  const Tensors cpu = moved(first, backend("cpu"));
  CHECK(difference(cpu[1], sum(moved(x, backend("cpu")), {0})) < 1e-5);
}

TEST_CASE("out of memory says what was asked for, what is held and what is free, and leaves the device usable") {
  if (!gpu()) return;
  const std::string text = error_of([&] { Tensor::empty({DType::f64, {1LL << 40}, gpu()}); });
  CAPTURE(text);
  CHECK(contains(text, "8796093022208 bytes were asked for"));
  CHECK(contains(text, "are in use by tensors"));
  CHECK(sum(Tensor::full({10}, 1, DType::f32, *gpu())).item() == 10);
}
