// A backend that records kernel calls instead of running them. An op that asks for elements on the host cannot be
// recorded. Its memory is the host's, and zero, so that one that does not ask can be tried on it.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "engine/device/backend.h"

namespace reel {

class Recorder final : public Backend {
 public:
  /// It answers all queries like `real`.
  explicit Recorder(Backend& real) : real_(real) {}
  ~Recorder() override;

  /// The calls since the last take().
  std::vector<KernelCall> take() { return std::exchange(calls_, {}); }
  /// The block of this recorder that contains the address, or ends at it; null if there is none.
  const Storage* block_of(const void* address) const;

  std::string name() const override { return real_.name(); }
  int threads() const override { return real_.threads(); }
  bool runs_in_blocks() const override { return real_.runs_in_blocks(); }
  CostModel costs() const override { return real_.costs(); }
  bool fuses(const FusedCall& call) override { return real_.fuses(call); }
  void resolve(FusedArgs& group) override { real_.resolve(group); }
  /// Blocks keep their addresses as long as the recorder is alive.
  Storage* allocate(std::size_t bytes) override;
  void release(Storage*) override {}
  void host_access() override { not_recorded(); }
  void read(void*, const void*, std::size_t) override { not_recorded(); }
  void write(void*, const void*, std::size_t) override { not_recorded(); }
#define REEL_RECORD(name, Args) \
  void name(const Args& a) override { calls_.push_back(KernelCall::of<Kernel::name>(a)); }
#define REEL_NOT_RECORDED(result, name, Args) \
  result name(const Args&) override { not_recorded(); }
  REEL_KERNELS(REEL_RECORD)
  REEL_OTHER_KERNELS(REEL_NOT_RECORDED)
#undef REEL_RECORD
#undef REEL_NOT_RECORDED

 private:
  [[noreturn]] static void not_recorded() { throw NotCapturable("it needs a value on the host"); }

  Backend& real_;
  std::map<const std::byte*, Storage> blocks_;
  std::vector<KernelCall> calls_;
};

}  // namespace reel
