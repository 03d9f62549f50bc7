#include "backends/cpu/codegen/compiled_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "backends/cpu/codegen/group_source.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"
#include "engine/core/random.h"

namespace reel::cpu {

namespace {

// Calls of elements after which a group is looked up in the cache, which takes some milliseconds; and compiled: some
// tenths of a second of interpreting, when compiling takes about one.
constexpr double some = 5e7, enough = 1e9;

template <class T>
bool equal_bits(const T* a, const T* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(T)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

std::vector<std::string> texts_of(const auto& groups) {
  std::vector<std::string> texts;
  for (const auto& [group, args] : groups) texts.push_back(group->text);
  return texts;
}

}  // namespace

CompiledGroups::CompiledGroups(Interpreter interpreter) : interpreter_(std::move(interpreter)) {
  const char* const set = std::getenv("REEL_COMPILE");
  const std::string_view mode = set ? set : "";
  off_ = mode == "off";
  wait_ = mode == "wait";
  if (!off_ && !wait_ && !mode.empty())
    throw Error("REEL_COMPILE", fmt::format("it is \"off\", \"wait\" or not set, got \"{}\"", mode));
}

CompiledGroup* CompiledGroups::find(const FusedArgs& args) {
  if (off_) return nullptr;
  std::string text = group_source(args);
  if (text.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& group = groups_[text];
  if (!group) {
    group = std::make_unique<CompiledGroup>();
    group->text = std::move(text);
  }
  return group.get();
}

void CompiledGroups::runs(const LoweredLoop& loop) {
  bool look = false, often = false;
  const auto each = [&](auto&& f) {
    for (const LoopCall& call : loop.calls) {
      const FusedArgs* const args = call.kernel.as<Kernel::fused>();
      if (args && args->compiled) f(*static_cast<CompiledGroup*>(args->compiled), *args);
    }
  };
  each([&](CompiledGroup& group, const FusedArgs& args) {
    if (group.asked || group.function) return;
    const double more = static_cast<double>(loop.steps * args.rows * args.columns * std::ssize(args.calls)),
                 work = group.work.fetch_add(more, std::memory_order_relaxed) + more;
    const bool now = wait_ || work > enough;
    if (now ? !group.asked.exchange(true) : work > some && !group.looked_up.exchange(true)) (now ? often : look) = true;
  });
  if (!look && !often) return;
  Groups groups;  // all of the loop, so that it is one file, whichever group was first
  each([&](CompiledGroup& group, const FusedArgs& args) {
    const auto same = [&](const auto& known) { return known.first == &group; };
    if (std::none_of(groups.begin(), groups.end(), same)) groups.emplace_back(&group, args);
  });
  if (!often) return look_up(groups);
  for (const auto& [group, args] : groups) group->asked = true;
  if (wait_)
    compile(groups);
  else
    ask(std::move(groups));
}

void CompiledGroups::ask(Groups groups) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(groups));
  changed_.notify_one();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {  // the system has no more threads: the interpreter goes on
    stopped_ = true;
  }
}

void CompiledGroups::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const Groups groups = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    lock.unlock();
    try {
      compile(groups);
    } catch (const std::exception&) {  // no memory, no files: the interpreter goes on
    }
    lock.lock();
  }
}

void CompiledGroups::compile(const Groups& groups) {
  const std::lock_guard one_at_a_time(compiling_);
  take(groups, compiler_.compile(texts_of(groups)));
}

void CompiledGroups::look_up(const Groups& groups) {
  const std::unique_lock one_at_a_time(compiling_, std::try_to_lock);
  if (one_at_a_time) take(groups, compiler_.cached(texts_of(groups)));
}

void CompiledGroups::take(const Groups& groups, const std::vector<GroupFunction>& functions) {
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto& [group, args] = groups[i];
    if (group->function) continue;
    if (same_bits(functions[i], args))
      group->function.store(functions[i], std::memory_order_release);
    else if (wait_)
      warn("REEL_COMPILE", fmt::format("a fusion group of {} calls is not used compiled: it does not give the "
                                       "interpreter's bits",
                                       args.calls.size()));
  }
}

/// Does the function compute what the interpreter does, on numbers at random? Another compiler may round otherwise.
bool CompiledGroups::same_bits(GroupFunction f, FusedArgs args) const {
  const std::vector<int> maker = makers_of(args.calls, args.operands.size());
  const std::vector<DType> dtypes = dtypes_of(args);
  args.rows = std::clamp<std::int64_t>(16384 / args.columns, 3, 1024);
  const std::int64_t n = std::max(args.rows * args.columns, FusedArgs::block);
  /// Calls g with an operand's memory as real numbers, how many an element has, and how many there are.
  const auto as_real = [&](std::size_t o, std::byte* data, auto&& g) {
    if (dtypes[o] == DType::boolean) return;
    const std::int64_t parts = is_complex(dtypes[o]) ? 2 : 1;
    dispatch_floating(real_of(dtypes[o]),
                      [&]<class T>(std::type_identity<T>) { g(reinterpret_cast<T*>(data), parts, parts * n); });
  };
  FusedArgs other = args;
  Stream random(1, 1);
  std::vector<std::vector<std::byte>> memory;
  for (std::size_t o = 0; o < args.operands.size(); ++o) {
    std::vector<std::byte>& first = memory.emplace_back(static_cast<std::size_t>(n) * size_of(dtypes[o]));
    if (dtypes[o] == DType::boolean)
      for (std::byte& condition : first) condition = static_cast<std::byte>(random.below(2));
    as_real(o, first.data(), [&]<class T>(T* x, std::int64_t parts, std::int64_t all) {
      const std::int64_t row_size = parts * args.columns;
      for (std::int64_t i = 0; i < all; ++i) {
        const bool row = args.operands[o].local && i >= row_size;  // a local argument is a row, repeated
        x[i] = row ? x[i - row_size]
                   : static_cast<T>(std::ldexp(2 * random.uniform() - 1, static_cast<int>(random.below(12)) - 8));
        if (i % 17 == 0 && !row) x[i] = static_cast<T>(i % 2 ? -0.0 : 0.0);
        if (i % 29 == 0 && !row) x[i] *= static_cast<T>(1e20);
      }
    });
    args.operands[o].data = first.data();
    std::vector<std::byte>& second = memory.emplace_back(first);
    other.operands[o].data = second.data();
  }
  interpreter_(args);
  f(other);
  for (std::size_t o = 0; o < args.operands.size(); ++o) {
    if (maker[o] < 0 || args.operands[o].local) continue;
    bool same = dtypes[o] != DType::boolean ||
                std::equal(args.operands[o].data, args.operands[o].data + n, other.operands[o].data);
    as_real(o, args.operands[o].data, [&]<class T>(const T* x, std::int64_t, std::int64_t all) {
      same = equal_bits(x, reinterpret_cast<const T*>(other.operands[o].data), all);
    });
    if (!same) return false;
  }
  return true;
}

void CompiledGroups::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  compiler_.stop();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace reel::cpu
