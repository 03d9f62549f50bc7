#include "backends/cpu/codegen/compiled_groups.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "backends/cpu/codegen/equal_bits.h"
#include "backends/cpu/codegen/group_source.h"
#include "backends/cpu/codegen/row_chains.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

// Calls of elements after which a group is looked up in the cache, which takes some milliseconds; and compiled: some
// tenths of a second of interpreting, when compiling takes about one.
constexpr double some = 5e7, enough = 1e9;

/// The compiler's function of a chain.
RowChainFunction as_chain(GroupFunction f) {
  return reinterpret_cast<RowChainFunction>(reinterpret_cast<void (*)()>(f));
}

std::vector<std::string> texts_of(const auto& members) {
  std::vector<std::string> texts;
  for (const auto& member : members) texts.push_back(member.group->text);
  return texts;
}

}  // namespace

CompiledGroups::CompiledGroups(Interpreter interpreter) : interpreter_(std::move(interpreter)) {
  const char* const set = std::getenv("REEL_COMPILE");
  const std::string_view mode = set ? set : "";
  off_ = mode == "off";
  wait_ = mode == "wait";
  if (wait_) compiler_.hurry();
  if (!off_ && !wait_ && !mode.empty())
    throw Error("REEL_COMPILE", fmt::format("it is \"off\", \"wait\" or not set, got \"{}\"", mode));
}

CompiledGroup* CompiledGroups::find(const FusedArgs& args) {
  if (off_) return nullptr;
  std::string text = group_source(args);
  return text.empty() ? nullptr : group_of(std::move(text));
}

CompiledGroup* CompiledGroups::group_of(std::string text) {
  const std::lock_guard lock(mutex_);
  auto& group = groups_[text];
  if (!group) {
    group = std::make_unique<CompiledGroup>();
    group->text = std::move(text);
  }
  return group.get();
}

/// What is compiled for a loop, which keeps it.
struct CompiledGroups::Loop {
  Members members;  // each once
  std::vector<std::pair<RowChain, CompiledGroup*>> chains;
  std::mutex mutex;
  std::shared_ptr<const std::vector<LoopCall>> calls;  // with the chains that have been compiled
  std::size_t compiled = 0;                            // how many these are

  void add(Member member) {
    const auto same = [&](const Member& known) { return known.group == member.group; };
    if (std::none_of(members.begin(), members.end(), same)) members.push_back(std::move(member));
  }
  std::shared_ptr<const std::vector<LoopCall>> chained(const LoweredLoop& loop);
};

CompiledGroups::Loop& CompiledGroups::loop_of(Backend& backend, const LoweredLoop& loop) {
  const std::lock_guard lock(loops_);
  if (loop.kept) return *static_cast<Loop*>(loop.kept.get());
  const auto made = std::make_shared<Loop>();
  const auto steps = static_cast<double>(loop.steps);
  for (const LoopCall& call : loop.calls) {
    const FusedArgs* const args = call.kernel.as<Kernel::fused>();
    if (!args || !args->compiled) continue;
    const double work = steps * static_cast<double>(args->rows * args->columns * std::ssize(args->calls));
    made->add({static_cast<CompiledGroup*>(args->compiled), work,
               [this, args = *args](GroupFunction f) { return same_bits(f, args); }});
  }
  if (!off_) {
    const auto own = std::make_shared<const LoweredLoop>(LoweredLoop{loop.steps, loop.setup, loop.calls, loop.scratch});
    for (RowChain& chain : row_chains(*own)) {
      CompiledGroup* const group = group_of(chain.text);
      made->add({group, steps * static_cast<double>(chain.work), [&backend, chain, own](GroupFunction f) {
                   return cpu::same_bits(backend, *own, chain, as_chain(f));
                 }});
      made->chains.emplace_back(std::move(chain), group);
    }
  }
  loop.kept = made;
  return *made;
}

std::shared_ptr<const std::vector<LoopCall>> CompiledGroups::Loop::chained(const LoweredLoop& loop) {
  const std::lock_guard lock(mutex);
  if (compiled == chains.size()) return calls;
  std::vector<GroupFunction> functions;
  for (const auto& [chain, group] : chains) functions.push_back(group->function.load(std::memory_order_acquire));
  const auto now = chains.size() - static_cast<std::size_t>(std::count(functions.begin(), functions.end(), nullptr));
  if (now == compiled) return calls;
  auto made = std::make_shared<std::vector<LoopCall>>();
  std::size_t next = 0;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    if (!functions[i]) continue;
    const RowChain& chain = chains[i].first;
    made->insert(made->end(), loop.calls.begin() + static_cast<std::ptrdiff_t>(next),
                 loop.calls.begin() + static_cast<std::ptrdiff_t>(chain.first));
    made->push_back(compiled_call(chain, as_chain(functions[i])));
    next = chain.end;
  }
  made->insert(made->end(), loop.calls.begin() + static_cast<std::ptrdiff_t>(next), loop.calls.end());
  compiled = now;
  return calls = made;
}

std::shared_ptr<const std::vector<LoopCall>> CompiledGroups::runs(Backend& backend, const LoweredLoop& loop) {
  Loop& is = loop_of(backend, loop);
  bool look = false, often = false;
  for (const Member& member : is.members) {
    CompiledGroup& group = *member.group;
    if (group.asked || group.function) continue;
    const double work = group.work.fetch_add(member.work, std::memory_order_relaxed) + member.work;
    const bool now = wait_ || work > enough;
    if (now ? !group.asked.exchange(true) : work > some && !group.looked_up.exchange(true)) (now ? often : look) = true;
  }
  if (often) {  // all of the loop, so that it is one file, whichever was first
    for (const Member& member : is.members) member.group->asked = true;
    if (wait_)
      compile(is.members);
    else
      ask(is.members);
  } else if (look) {
    look_up(is.members);
  }
  return is.chained(loop);
}

void CompiledGroups::ask(Members members) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(members));
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
    const Members members = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    lock.unlock();
    try {
      compile(members);
    } catch (const std::exception&) {  // no memory, no files: the interpreter goes on
    }
    lock.lock();
  }
}

void CompiledGroups::compile(const Members& members) {
  const std::lock_guard one_at_a_time(compiling_);
  take(members, compiler_.compile(texts_of(members)));
}

void CompiledGroups::look_up(const Members& members) {
  const std::unique_lock one_at_a_time(compiling_, std::try_to_lock);
  if (one_at_a_time) take(members, compiler_.cached(texts_of(members)));
}

void CompiledGroups::take(const Members& members, const std::vector<GroupFunction>& functions) {
  for (std::size_t i = 0; i < functions.size(); ++i) {
    CompiledGroup& group = *members[i].group;
    if (group.function) continue;
    if (members[i].same_bits(functions[i]))
      group.function.store(functions[i], std::memory_order_release);
    else if (wait_)
      warn("REEL_COMPILE", "a fusion group or row chain is not used compiled: it does not give the interpreter's bits");
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
        x[i] = row ? x[i - row_size] : number_at_random<T>(random, i);
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
    const std::int64_t bytes = n * static_cast<std::int64_t>(size_of(dtypes[o]));
    if (!equal_values(dtypes[o], args.operands[o].data, other.operands[o].data, bytes)) return false;
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
