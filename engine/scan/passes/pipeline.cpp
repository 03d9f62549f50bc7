// The passes, in the order in which they run over every loop: forward loops, and those of their gradients.
#include <cstdio>
#include <cstdlib>

#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

struct Pass {
  const char* name;
  Loop (*run)(Loop, const ScanPasses&);
  bool ScanPasses::*enabled;  // null: always
  const char* rule;
};

constexpr Pass pipeline[] = {
    {"delay_gathers", delay_gathers, &ScanPasses::delay_gathers, "f(table[i]) = f(table)[i]"},
    {"hoist", hoist, &ScanPasses::hoist, "what needs only x or constants runs once, on [T, ...], in the prologue"},
    {"sink_reductions", sink_reductions, &ScanPasses::sink_reductions, "a sum over time is one op in the epilogue"},
    {"dce", dce, nullptr, "what no result needs is dropped"},
    {"rematerialize", rematerialize, &ScanPasses::rematerialize, "save or recompute for the gradient: a minimal cut"},
};

void print(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

Loop optimize(Loop loop, const ScanPasses& passes) {
  const bool prints = std::getenv("REEL_PRINT_PASSES") != nullptr;
  std::string last;
  if (prints) {
    last = loop.str();
    print(fmt::format("---- {}\n{}", loop.signature.gradient ? "gradient of a scan" : "scan", last));
  }
  for (const Pass& pass : pipeline) {
    if (pass.enabled && !(passes.*pass.enabled)) continue;
    loop = pass.run(std::move(loop), passes);
    if (!prints) continue;
    std::string now = loop.str();
    const bool same = now == last;
    print(fmt::format("---- {}: {}{}\n{}", pass.name, pass.rule, same ? ". Nothing to do" : "", same ? "" : now));
    last = std::move(now);
  }
  return loop;
}

}  // namespace reel
