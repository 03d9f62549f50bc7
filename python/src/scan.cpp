// reel.scan: a step in Python, traced once; all time steps then run without Python. reel/_scan.py has what users call.
#include <nanobind/stl/pair.h>

#include <algorithm>

#include "backends/cpu/threads/denormals.h"
#include "python/src/python.h"

namespace reel::python {

namespace {

/// Throws Error for a state that only changes its dtype, as it does where f32 meets weights of f64.
void check_dtypes(const char* function, const Tensors& before, const Tensors& after) {
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const Tensor &b = before[i], &a = after[i];
    if (!a.defined() || !(a.shape() == b.shape()) || a.dtype() == b.dtype()) continue;
    fail(function, here(),
         "state {} must keep its dtype and shape: it is {}, and {} after the step. Hint: begin with "
         "init.cast(\"{}\"), or cast what the step computes with to {}",
         i, b.spec().str(), a.spec().str(), name_of(a.dtype()), name_of(b.dtype()));
  }
}

}  // namespace

Step step_of(const char* function, const nb::callable& f) {
  return [function, &f](const Tensors& state, const Tensors& x) -> Next {
    wait_if_ending();
    const nb::gil_scoped_acquire held;
    const auto [next, y] = nb::cast<std::pair<Tensors, Tensors>>(f(state, x));
    check_dtypes(function, state, next);
    return {next, y};
  };
}

namespace {

using Runner = ScanResult (*)(const Step&, const Tensors&, const Tensors&, const ScanOptions&, Loc);

template <Runner runner>
nb::tuple run(const nb::callable& f, const Tensors& state, const Tensors& xs, bool reverse, std::int64_t length,
              std::int64_t checkpoint_every) {
  const Loc where = here();
  ScanResult result;
  {
    const Step step = step_of(runner == static_cast<Runner>(&unroll) ? "unroll" : "scan", f);
    const Interruptible released;
    result =
        runner(step, state, xs, {.reverse = reverse, .length = length, .checkpoint_every = checkpoint_every}, where);
  }
  return nb::make_tuple(result.last, result.ys);
}

}  // namespace

void bind_scan(nb::module_& m) {
  m.def("_scan", &run<&scan>);
  m.def("_unroll", &run<&unroll>);
  m.def(
      "set_threads",
      [](int threads) {
        if (threads < 1) fail("set_threads", here(), "1 or more threads are needed, got {}", threads);
        const nb::gil_scoped_release released;  // it waits for the loops that run on other threads
        backend().set_threads(threads);
      },
      nb::arg("threads"), "Sets how many threads ops and scans may use; 1 before the first call.");
  m.def(
      "threads", [] { return backend().threads(); }, "How many threads ops and scans may use.");
  m.def(
      "flush_denormals", &flush_denormals, nb::arg("on") = true,
      "Flushes denormals, numbers below 1e-38 (f64: 2e-308), to zero on this thread, and on Reel's threads while they "
      "work for it; this is much faster where denormals arise. Reel's programs do so by default, Python does not. "
      "torch.set_flush_denormal() has the same effect. Returns False where the processor cannot.");
}

}  // namespace reel::python
