#include "tasks/explain/graphs.h"

#include <fmt/core.h>

#include <chrono>

#include "tasks/io/spawn.h"

namespace reel::explain {

Drawn draw_graph(const std::string& dot) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(10);
  const Spawned run = run_child({"dot", "-Tsvg"}, dot, [&] { return Clock::now() > end; });
  if (run.code == could_not_start)
    return {"", "Graphviz is not installed (Debian package graphviz), so the page has no graphs"};
  const std::size_t first = run.out.find("<svg");
  if (run.code != 0 || first == std::string::npos)
    return {"", fmt::format("dot of Graphviz {}", run.problem.empty() ? "drew nothing" : run.problem)};
  return {run.out.substr(first), ""};
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace reel::explain
