#include "backends/shared/device_link.h"

#include <map>

namespace reel {

namespace {
std::map<std::string, DeviceLinks>& registry() {
  static std::map<std::string, DeviceLinks> all;
  return all;
}
}  // namespace

bool register_device_links(const std::string& kind, const DeviceLinks& links) {
  return registry().emplace(kind, links).second;
}

const DeviceLinks* device_links(const std::string& kind) {
  const auto found = registry().find(kind);
  return found == registry().end() ? nullptr : &found->second;
}

}  // namespace reel
