// The passes, in the order in which they run over every loop: forward loops, and those of their gradients.
#include <cstdio>
#include <cstdlib>

#include "engine/scan/plan.h"

namespace reel {

constexpr LoopPass loop_passes[] = {
    {"delay_gathers", delay_gathers, &ScanPasses::delay_gathers, "f(table[i]) = f(table)[i]"},
    {"hoist", hoist, &ScanPasses::hoist, "what needs only x or constants runs once, on [T, ...], in the prologue"},
    {"sink_reductions", sink_reductions, &ScanPasses::sink_reductions, "a sum over time is one op in the epilogue"},
    {"dce", dce, nullptr, "what no result needs is dropped"},
    {"rematerialize", rematerialize, &ScanPasses::rematerialize, "save or recompute for the gradient: a minimal cut"},
};

Loop optimize(Loop loop, const ScanPasses& passes) {
  const PlanWatch* const watch = plan_watch();
  std::string last;
  const auto show = [&](const char* pass, const std::string& rule) {
    if (watch) watch->stage(pass, rule, loop);
    if (!std::getenv("REEL_PRINT_PASSES")) return;
    std::string now = loop.str();
    const std::string text = now == last ? ". Nothing to do\n" : "\n" + now;
    std::fputs(fmt::format("---- {}{}{}{}", pass, rule.empty() ? "" : ": ", rule, text).c_str(), stderr);
    last = std::move(now);
  };
  show(loop.signature.gradient ? "gradient of a scan" : "scan", "");
  for (const LoopPass& pass : loop_passes) {
    if (pass.enabled && !(passes.*pass.enabled)) continue;
    loop = pass.run(std::move(loop), passes);
    show(pass.name, pass.rule);
  }
  return loop;
}

}  // namespace reel
