#include "tasks/explain/render.h"
namespace reel::explain {
std::string dot(const Explanation&) { return ""; }
std::string html(const Explanation&) { return ""; }
}  // namespace reel::explain
