// Docstrings: the comments of Reel's headers, which python/docstrings.py writes into docstrings.inc.
#include <algorithm>
#include <string_view>

#include "python/src/python.h"

namespace reel::python {

namespace {
struct Entry {
  std::string_view name;
  const char* text;
};
constexpr Entry entries[] = {
#include "docstrings.inc"
};
}  // namespace

const char* doc(const char* name) {
  const auto found = std::lower_bound(std::begin(entries), std::end(entries), std::string_view(name),
                                      [](const Entry& e, std::string_view wanted) { return e.name < wanted; });
  if (found == std::end(entries) || found->name != name)
    throw std::logic_error(std::string("reel: internal: no comment above the declaration of ") + name);
  return found->text;
}

}  // namespace reel::python
