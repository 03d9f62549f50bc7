// A device for tests of captured graphs. It computes as the CPU does and captures as a GPU does: what is captured is
// not run, and kernels that the CUDA backend's table has as checked cannot be captured. Memory comes from a pool of its
// own, whose every byte is spoilt before each run.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "backends/cuda/kernels/kernel_table.h"
#include "backends/shared/allocator.h"
#include "engine/core/error.h"
#include "engine/device/backend.h"
#include "ops/functors/cross_entropy.h"
#include "ops/functors/linalg.h"
#include "ops/functors/update.h"
#include "tests/support/fused_by_cpu.h"

namespace reel::test {

/// A call's arguments with all that they point to on the host.
template <class Args>
class Kept {
 public:
  explicit Kept(const Args& args) : args_(args) {}
  const Args& get() const { return args_; }

 private:
  Args args_;
};
template <>
class Kept<SquaresArgs> {
 public:
  explicit Kept(const SquaresArgs& args) : dtype_(args.dtype), of_(args.of.begin(), args.of.end()) {}
  SquaresArgs get() const { return {dtype_, of_}; }

 private:
  DType dtype_;
  std::vector<SquaresOf> of_;
};

class RecordingDevice : public Backend {
 public:
  RecordingDevice() { cpu_.set_threads(1); }  // the tensors of tests are small
  static RecordingDevice& get() {
    static const bool registered [[maybe_unused]] = register_backend(
        "recording",
        [](const std::string&) -> std::unique_ptr<Backend> { return std::make_unique<RecordingDevice>(); });
    return static_cast<RecordingDevice&>(backend("recording"));
  }
  std::size_t allocations = 0, reads = 0, kernels = 0, replays = 0;  // asked for so far; kernels not of recordings

  std::string name() const override { return "recording"; }
  MemoryUse memory() const override { return all_.use(); }
  void reset_peak() override { all_.reset_peak(); }
  std::unique_ptr<CapturedGraph> capture() override { return std::make_unique<Written>(*this); }
  Storage* allocate(std::size_t bytes) override {
    ++allocations;
    auto* const block = new Block;
    if (writing_) block->pool = writing_->pool;
    block->backend = this;
    block->bytes = bytes;
    block->data = static_cast<std::byte*>((writing_ ? *block->pool : all_).allocate(bytes));
    spoil(block->data, bytes);
    if (writing_) {
      std::size_t& size = writing_->blocks[block->data];
      size = std::max(size, bytes);
    } else {
      for (const Written* w : written_) {
        const auto next = w->blocks.upper_bound(block->data);
        if (next != w->blocks.begin() && std::prev(next)->first + std::prev(next)->second > block->data)
          throw std::logic_error("a block of a recording was handed out");
      }
    }
    return block;
  }
  void release(Storage* storage) override {
    auto* const block = static_cast<Block*>(storage);
    if (writing_ && !block->pool) return writing_->kept.push_back(block);
    (block->pool ? *block->pool : all_).release(block->data, block->bytes);
    delete block;
  }
  void read(void* host, const void* device, std::size_t bytes) override {
    if (writing_) throw NotCapturable("it needs a value on the host");
    ++reads;
    if (const std::string text = std::exchange(fault_, ""); !text.empty()) throw Error("noted", text);
    cpu_.read(host, device, bytes);
  }
  void write(void* device, const void* host, std::size_t bytes) override {
    if (!writing_) return cpu_.write(device, host, bytes);
    const auto* first = static_cast<const std::byte*>(host);
    writing_->calls.emplace_back([device, copy = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(device, copy.data(), copy.size());
    });
  }

  bool fuses(const FusedCall&) override { return true; }
#define REEL_RECORD(name, Args) \
  void name(const Args& a) override { record(KernelCall::of<Kernel::name>(a)); }
#define REEL_RECORD_OTHER(result, name, Args)                                                  \
  result name(const Args& a) override {                                                        \
    if constexpr (!std::is_void_v<result>) {                                                   \
      if (!writing_) return ++kernels, cpu_.name(a);                                           \
    }                                                                                          \
    record(#name, [this, kept = Kept<Args>(a)] { cpu_.name(kept.get()), after(kept.get()); }); \
    return result();                                                                           \
  }
  REEL_KERNELS(REEL_RECORD)
  REEL_OTHER_KERNELS(REEL_RECORD_OTHER)
#undef REEL_RECORD
#undef REEL_RECORD_OTHER

 private:
  struct Block : Storage {
    std::shared_ptr<CachingAllocator> pool;
  };
  struct Written final : CapturedGraph {
    explicit Written(RecordingDevice& d) : device(d), pool(make_pool(d.all_)) {
      if (d.writing_) throw std::logic_error("two recordings at a time");
      d.writing_ = this;
      d.written_.insert(this);
    }
    ~Written() override {
      if (device.writing_ == this) device.writing_ = nullptr;
      device.written_.erase(this);
      for (Block* block : kept) device.release(block);
    }
    void stop() override { device.writing_ = nullptr; }
    void replay() override {
      if (device.writing_) throw std::logic_error("a replay while kernels are captured");
      ++device.replays;
      for (const auto& [data, bytes] : blocks) spoil(data, bytes);
      for (const auto& call : calls) call();
    }
    std::size_t size() const override { return calls.size(); }
    RecordingDevice& device;
    std::shared_ptr<CachingAllocator> pool;
    std::map<std::byte*, std::size_t> blocks;
    std::vector<Block*> kept;
    std::vector<std::function<void()>> calls;
  };
  static void spoil(std::byte* data, std::size_t bytes) { std::memset(data, 0xff, bytes); }

  void record(const KernelCall& call) {
    if (const RandomArgs* random = call.as<Kernel::random>(); writing_ && random && !random->offset)
      throw NotCapturable("its random numbers would be the same at each step");
    record(call.name(), [this, call] {
      const FusedArgs* fused = call.as<Kernel::fused>();
      fused ? fused_by_cpu(*fused) : call.run(cpu_);
    });
  }
  template <class F>
  void record(std::string_view kernel, F f) {
    if (!writing_) {
      ++kernels;
      return f();
    }
    const auto* const row = std::find_if(std::begin(cuda::kernel_table), std::end(cuda::kernel_table),
                                         [&](const cuda::KernelRow& r) { return r.name == kernel; });
    if (row->how == cuda::How::checked) throw NotCapturable("it needs a value on the host");
    writing_->calls.emplace_back([this, f, native = row->how == cuda::How::native] {
      try {
        f();
      } catch (const RuleError& e) {
        if (native) throw;
        fault_ = e.what();
      }
    });
  }
  void after(const ClipArgs& a) {
    if (!fault_.empty()) *a.scale = std::nan("");
  }
  template <class Args>
  void after(const Args&) {}

  Backend& cpu_ = backend("cpu");
  // Blocks lie 64 bytes apart, as those of the CPU backend do behind their headers. Where operands touch, loops that
  // GCC vectorises take their way for operands that overlap, which may round in another way.
  CachingAllocator all_{[](std::size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64); },
                        [](void* block, std::size_t) { std::free(block); }};
  std::string fault_;  // of a replay, not told yet
  Written* writing_ = nullptr;
  std::set<const Written*> written_;
};

}  // namespace reel::test
