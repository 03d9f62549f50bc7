// Fusion groups and row chains that run often are compiled while the interpreter runs them, and take over when they are
// ready. Their bits are the interpreter's, so that nobody can tell when.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/cpu/codegen/group_compiler.h"
#include "engine/device/lowered_loop.h"

namespace reel::cpu {

/// A fusion group or a row chain that can be compiled; it lives as long as the backend.
struct CompiledGroup {
  std::string text;
  std::atomic<GroupFunction> function{nullptr};  // once it is compiled
  std::atomic<double> work{0};                   // calls of elements so far
  std::atomic<bool> looked_up{false};            // in the cache
  std::atomic<bool> asked{false};                // to be compiled
};

class CompiledGroups {
 public:
  using Interpreter = std::function<void(const FusedArgs&)>;
  /// REEL_COMPILE in the environment: "off" compiles nothing, "wait" compiles before the first run.
  explicit CompiledGroups(Interpreter interpreter);
  CompiledGroups(const CompiledGroups&) = delete;
  ~CompiledGroups() { stop(); }

  /// The group of these calls; null: it cannot be compiled.
  CompiledGroup* find(const FusedArgs& args);
  /// Says that a loop runs on `backend`. After a while its groups and chains are looked up in the cache, and when it
  /// has run long, compiled. Returns the calls of a step with compiled chains in their place; null: the loop's own.
  std::shared_ptr<const std::vector<LoopCall>> runs(Backend& backend, const LoweredLoop& loop);
  /// Ends a compilation, and compiles nothing more.
  void stop();

 private:
  /// What a loop has of a group or chain.
  struct Member {
    CompiledGroup* group;
    double work;  // of a run, in calls of elements
    std::function<bool(GroupFunction)> same_bits;
  };
  using Members = std::vector<Member>;
  struct Loop;
  CompiledGroup* group_of(std::string text);
  Loop& loop_of(Backend& backend, const LoweredLoop& loop);
  void ask(Members members);
  void compile(const Members& members);
  void look_up(const Members& members);
  void take(const Members& members, const std::vector<GroupFunction>& functions);
  bool same_bits(GroupFunction f, FusedArgs args) const;
  void work();

  const Interpreter interpreter_;
  bool off_ = false, wait_ = false;
  GroupCompiler compiler_;
  std::mutex compiling_, mutex_, loops_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<CompiledGroup>> groups_;  // by text
  std::vector<Members> waiting_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace reel::cpu
