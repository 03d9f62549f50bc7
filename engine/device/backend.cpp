#include "engine/device/backend.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "engine/core/error.h"
#include "engine/device/lowered_loop.h"

namespace reel {

void StoragePtr::destroy() { storage_->backend->release(storage_); }

void Backend::unsupported(const char* kernel) const {
  throw Error(name(), fmt::format("{} is not supported by this backend", kernel));
}

void Backend::run(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  run_calls(*this, loop.setup, 1, buffers);
  run_calls(*this, loop.calls, loop.steps, buffers);
}

std::string memory_text(double bytes) { return amount_text(bytes, bytes < 999.5 ? "bytes" : "B"); }

std::string amount_text(double amount, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  for (; amount >= 999.5 && prefix + 1 < std::size(prefixes); ++prefix) amount /= 1000;
  return fmt::format("{:.3g} {}{}", amount, prefixes[prefix], unit);
}

void Backend::require_memory(const std::string& subject, const std::string& what, double bytes,
                             const std::string& hint) const {
  const MemoryLimit limit = memory_limit();
  if (bytes <= static_cast<double>(limit.bytes)) return;
  throw OutOfMemory(subject, fmt::format("{} need {}, {}. Hint: {}", what, memory_text(bytes), limit.text, hint));
}

namespace {
std::atomic<std::uint64_t> backends_made{0};

struct Registry {
  std::recursive_mutex mutex;  // of all but `usual`, which each new tensor reads
  std::multimap<std::string, MakeBackend> kinds;
  std::map<std::string, std::shared_ptr<Backend>> made;  // those used so far, by all names they were asked for by
  std::atomic<Backend*> usual = nullptr;
};
Registry& registry() {
  static Registry& registry = *new Registry;  // leaked: at exit drivers may end before it, and tensors after it
  return registry;
}
}  // namespace

Backend::Backend() : serial_(++backends_made) {}

bool register_backend(const std::string& kind, MakeBackend make) {
  const std::lock_guard lock(registry().mutex);
  registry().kinds.emplace(kind, make);
  return true;
}

Backend& backend(const std::string& name) {
  if (Backend* usual = registry().usual; usual && name.empty()) return *usual;
  const std::lock_guard lock(registry().mutex);
  if (name.empty()) return registry().usual ? *registry().usual : set_default_backend("cpu");
  if (const auto found = registry().made.find(name); found != registry().made.end()) return *found->second;
  const std::size_t end = std::min(name.find_first_of(":,"), name.size());
  for (const auto& [kind, make] : registry().kinds) {
    if (name.compare(0, end, kind) != 0) continue;
    std::shared_ptr<Backend> b = make(name.substr(end));
    return *(registry().made[name] = registry().made.try_emplace(b->name(), b).first->second);  // "cuda:0" is "cuda"
  }
  constexpr const char* early = "none before main(). Hint: a static tensor inside a function, made when it is called";
  throw Error("device",
              fmt::format("there is no device \"{}\"; this build has: {}", name,
                          registry().kinds.empty() ? early : fmt::format("{}", fmt::join(backend_names(), ", "))));
}

Backend& set_default_backend(const std::string& name) { return *(registry().usual = &backend(name)); }

std::vector<std::string> backend_names() {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& [kind, make] : registry().kinds) names.push_back(kind);
  return names;
}

}  // namespace reel
