#include "engine/backend.h"

#include <fmt/ranges.h>

#include "engine/error.h"

namespace reel {

void StoragePtr::destroy() { storage_->backend->release(storage_); }

void Backend::unsupported(const char* kernel) const {
  throw Error(name(), fmt::format("{} is not supported by this backend", kernel));
}

namespace {
std::vector<std::unique_ptr<Backend>>& registry() {
  static std::vector<std::unique_ptr<Backend>> backends;
  return backends;
}
}  // namespace

bool register_backend(std::unique_ptr<Backend> backend) {
  registry().push_back(std::move(backend));
  return true;
}

Backend& backend(const std::string& name) {
  for (const auto& b : registry()) {
    if (b->name() == name) return *b;
  }
  throw Error("device",
              fmt::format("there is no device \"{}\"; this build has: {}", name, fmt::join(backend_names(), ", ")));
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& b : registry()) names.push_back(b->name());
  return names;
}

}  // namespace reel
