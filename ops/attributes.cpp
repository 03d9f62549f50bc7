#include "ops/attributes.h"

#include <algorithm>

namespace reel {

namespace {
std::map<const Op*, Attributes (*)(const Attrs&)>& readers() {
  static std::map<const Op*, Attributes (*)(const Attrs&)> all;
  return all;
}
}  // namespace

bool register_attributes(const Op& op, Attributes (*read)(const Attrs&)) {
  readers()[&op] = read;
  return true;
}

bool is_registered(const Op& op) { return std::ranges::count(op_registry(), &op) > 0; }

Attributes attributes_of(const Op& op, const Attrs& attrs) {
  const auto found = readers().find(&op);
  return found == readers().end() ? Attributes{} : found->second(attrs);
}

}  // namespace reel
