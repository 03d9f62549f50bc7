#include "tasks/app/kernel_trace.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel {

namespace {

template <class... F>
std::string functor_name(TypeList<F...>, int functor) {
  static constexpr const char* names[] = {F::name...};
  return names[functor];
}

std::string by(std::initializer_list<std::int64_t> sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }
template <std::size_t N>
std::string sizes_of(const StridedLoop<N>& loop) {
  if (loop.rank == 0) return "1";
  return fmt::format("{}", fmt::join(loop.dims.begin(), loop.dims.begin() + loop.rank, "x"));
}

/// What tells calls of one kernel apart: dtypes, sizes, functors.
template <class Args>
std::string text_of(const Args& a) {
  std::string what, sizes;
  if constexpr (requires { a.functor; })
    what = functor_name(std::conditional_t<std::is_same_v<Args, MapArgs>, UnaryFunctors, BinaryFunctors>{}, a.functor);
  if constexpr (requires { a.calls; })
    what = fmt::format("{} calls", a.calls.size());
  else if constexpr (requires { a.from; })
    what = fmt::format("{} to {}", name_of(a.from), name_of(a.to));
  else if constexpr (requires { a.dtype; })
    what += (what.empty() ? "" : " ") + std::string(name_of(a.dtype));
  if constexpr (requires { a.loop; })
    sizes = sizes_of(a.loop);
  else if constexpr (requires { a.transpose_a; })
    sizes = fmt::format("{}{} {}{}", by({a.m, a.k}), a.transpose_a ? " (transposed)" : "", by({a.k, a.n}),
                        a.transpose_b ? " (transposed)" : "");
  else if constexpr (requires { a.columns; })
    sizes = by({a.rows, a.columns});
  else if constexpr (requires { a.width; })
    sizes = by({a.outer, a.count, a.width});
  else if constexpr (requires {
                       a.inner;
                       a.outer;
                     })
    sizes = by({a.outer, a.n, a.inner});
  else if constexpr (requires { a.rows; })
    sizes = by({a.rows, a.n});
  else if constexpr (requires { a.m; })
    sizes = by({a.m, a.n});
  else if constexpr (requires { a.places; })
    sizes = fmt::format("{} parameters", a.places.size());
  else if constexpr (requires { a.of; })
    sizes = fmt::format("{} arrays", a.of.size());
  else
    sizes = by({a.n});
  if constexpr (requires { a.batch; }) {
    if (a.batch > 1) sizes += fmt::format(", {} times", a.batch);
  }
  return what + (what.empty() ? "" : " ") + sizes;
}

}  // namespace

std::string sizes_of(const KernelCall& call) {
  switch (call.kernel()) {
#define REEL_SIZES(name, Args) \
  case Kernel::name:           \
    return text_of(*call.as<Kernel::name>());
    REEL_KERNELS(REEL_SIZES)
#undef REEL_SIZES
    case Kernel::host:
      break;
  }
  return "";
}

Storage* KernelTrace::allocate(std::size_t bytes) {
  Storage* const out = device_.allocate(bytes);
  out->backend = this;
  return out;
}

void KernelTrace::release(Storage* storage) {
  storage->backend = &device_;
  device_.release(storage);
}

template <class Args, class F>
auto KernelTrace::timed(const char* kernel, const Args& args, F f) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto add = [&] {
    const std::chrono::duration<double> time = Clock::now() - start;
    const std::string key = fmt::format("{:<16} {}", kernel, text_of(args));
    const std::lock_guard lock(mutex_);
    Sum& sum = sums_[key];
    ++sum.calls;
    sum.seconds += time.count();
  };
  if constexpr (std::is_void_v<decltype(f())>) {
    f();
    add();
  } else {
    const auto result = f();
    add();
    return result;
  }
}

#define REEL_TRACE(name, Args)                 \
  void KernelTrace::name(const Args& a) {      \
    timed(#name, a, [&] { device_.name(a); }); \
  }
#define REEL_TRACE_OTHER(result, name, Args)                 \
  result KernelTrace::name(const Args& a) {                  \
    return timed(#name, a, [&] { return device_.name(a); }); \
  }
REEL_KERNELS(REEL_TRACE)
REEL_OTHER_KERNELS(REEL_TRACE_OTHER)

void KernelTrace::reset() {
  const std::lock_guard lock(mutex_);
  sums_.clear();
}

std::string KernelTrace::table() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Sum>> rows(sums_.begin(), sums_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double all = 0;
  for (const auto& [key, sum] : rows) all += sum.seconds;
  std::string out =
      fmt::format("{:>10} {:>10} {:>10} {:>6}  {:<16} {}\n", "calls", "ms", "us each", "share", "kernel", "of");
  for (const auto& [key, sum] : rows)
    out += fmt::format("{:>10} {:>10.2f} {:>10.2f} {:>4.0f} %  {}\n", sum.calls, 1e3 * sum.seconds,
                       1e6 * sum.seconds / static_cast<double>(sum.calls), all > 0 ? 100 * sum.seconds / all : 0, key);
  return out;
}

}  // namespace reel
