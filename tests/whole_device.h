// A device for tests of time loops: it computes as the CPU does, but is given runs and loops of the whole batch, as a
// GPU is, and makes what local values need by itself.
#pragma once
#include "tests/fused_by_cpu.h"

namespace reel::test {

class WholeDevice final : public Backend {
 public:
  /// Registers it, and makes it the device of new tensors.
  static WholeDevice& use() {
    static const bool registered [[maybe_unused]] = register_backend(
        "whole", [](const std::string&) -> std::unique_ptr<Backend> { return std::make_unique<WholeDevice>(); });
    return static_cast<WholeDevice&>(set_default_backend("whole"));
  }
  int runs = 0, loops = 0;  // calls of fused and of fused_loop

  std::string name() const override { return "whole"; }
  Storage* allocate(std::size_t bytes) override {
    Storage* const storage = cpu_.allocate(bytes);
    storage->backend = this;
    return storage;
  }
  void release(Storage* storage) override {
    storage->backend = &cpu_;
    cpu_.release(storage);
  }
  void read(void* host, const void* device, std::size_t bytes) override { cpu_.read(host, device, bytes); }
  void write(void* device, const void* host, std::size_t bytes) override { cpu_.write(device, host, bytes); }
  void fill(const FillArgs& a) override { cpu_.fill(a); }
  void copy(const CopyArgs& a) override { cpu_.copy(a); }
  void cast(const CastArgs& a) override { cpu_.cast(a); }
  void map(const MapArgs& a) override { cpu_.map(a); }
  void zip(const ZipArgs& a) override { cpu_.zip(a); }
  void select(const SelectArgs& a) override { cpu_.select(a); }
  void reduce(const ReduceArgs& a) override { cpu_.reduce(a); }
  void gemm(const GemmArgs& a) override { cpu_.gemm(a); }
  void random(const RandomArgs& a) override { cpu_.random(a); }

  bool fuses(const FusedCall&) override { return true; }
  void fused(const FusedArgs& a) override {
    ++runs;
    fused_by_cpu(a);
  }
  bool fused_loop(const FusedLoopArgs& a) override {
    ++loops;
    loop_by_cpu(a);
    return true;
  }

 private:
  Backend& cpu_ = backend("cpu");
};

}  // namespace reel::test
