// A device for tests of captured graphs. It computes as the CPU does and captures as a GPU does: what is captured is
// not run, and only what the CUDA backend's table has as native can be captured. Memory comes from a pool of its own,
// whose every byte is spoilt before each run.
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
#include "engine/device/backend.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "ops/functors/update.h"
#include "tests/support/fused_by_cpu.h"

namespace reel::test {

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
    asked();
    if (writing_) throw NotCapturable("it needs a value on the host");
    ++reads;
    if (const std::string text = std::exchange(fault_, ""); !text.empty()) throw Error("noted", text);
    cpu_.read(host, device, bytes);
  }
  void write(void* device, const void* host, std::size_t bytes) override {
    asked();
    if (!writing_) return cpu_.write(device, host, bytes);
    const auto* first = static_cast<const std::byte*>(host);
    writing_->calls.emplace_back([device, copy = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(device, copy.data(), copy.size());
    });
  }

  void fill(const FillArgs& a) override {
    work("fill", [=, this] { cpu_.fill(a); });
  }
  void copy(const CopyArgs& a) override {
    work("copy", [=, this, loop = a.loop, n = a.element_bytes, in = a.in, out = a.out] {
      cpu_.copy({n, loop, in, out});
    });
  }
  void cast(const CastArgs& a) override {
    work("cast", [=, this] { cpu_.cast(a); });
  }
  void map(const MapArgs& a) override {
    work("map", [=, this, params = params_of<UnaryFunctors>(a.functor, a.params)] {
      MapArgs b = a;
      b.params = params.data();
      cpu_.map(b);
    });
  }
  void zip(const ZipArgs& a) override {
    work("zip", [=, this, params = params_of<BinaryFunctors>(a.functor, a.params), loop = a.loop, functor = a.functor,
                 dtype = a.dtype, x = a.a, y = a.b, out = a.out] {
      cpu_.zip({functor, params.data(), dtype, loop, x, y, out});
    });
  }
  void select(const SelectArgs& a) override {
    work("select", [=, this] { cpu_.select(a); });
  }
  bool fuses(const FusedCall&) override { return true; }
  void fused(const FusedArgs& a) override {
    work("fused", [run = Run(a)] { run.compute(); });
  }
  void reduce(const ReduceArgs& a) override {
    work("reduce", [=, this, loop = a.loop, kind = a.kind, dtype = a.dtype, n = a.out_numel, in = a.in, out = a.out] {
      cpu_.reduce({kind, dtype, loop, n, in, out});
    });
  }
  void update(const UpdateArgs& a) override {
    work("update", [=, this, params = params_of<UpdateRules>(a.rule, a.params),
                    places = std::vector<UpdatePlace>(a.places.begin(), a.places.end())] {
      cpu_.update({a.rule, params.data(), a.dtype, a.limit, a.numbers, places});
    });
  }
  void clip(std::int64_t n, const double* numbers, double limit, double* scale) override {
    work("clip", [=, this] {
      cpu_.clip(n, numbers, limit, scale);
      if (!fault_.empty()) *scale = std::nan("");
    });
  }
  void sums_of_squares(DType dtype, std::span<const SquaresOf> some) override {
    work("sums_of_squares",
         [=, this, arrays = std::vector<SquaresOf>(some.begin(), some.end())] { cpu_.sums_of_squares(dtype, arrays); });
  }
  void random(const RandomArgs& a) override {
    if (writing_ && !a.offset) throw NotCapturable("its random numbers would be the same at each step");
    work("random", [=, this] { cpu_.random(a); });
  }
#define REEL_PLAIN_KERNEL(name, Args)         \
  void name(const Args& a) override {         \
    work(#name, [=, this] { cpu_.name(a); }); \
  }
  REEL_PLAIN_KERNEL(argmax, ArgmaxArgs)
  REEL_PLAIN_KERNEL(cumsum, CumsumArgs)
  REEL_PLAIN_KERNEL(row_function, RowFunctionArgs)
  REEL_PLAIN_KERNEL(gemm, GemmArgs)
  REEL_PLAIN_KERNEL(gather_rows, RowsArgs)
  REEL_PLAIN_KERNEL(segment_sum, RowsArgs)
  REEL_PLAIN_KERNEL(take_along, TakeArgs)
  REEL_PLAIN_KERNEL(scatter_add, TakeArgs)
  REEL_PLAIN_KERNEL(rotate, RotateArgs)
  REEL_PLAIN_KERNEL(fft, FftArgs)
  REEL_PLAIN_KERNEL(real_fft, RealFftArgs)
  REEL_PLAIN_KERNEL(eigh, EighArgs)
  REEL_PLAIN_KERNEL(svd, SvdArgs)
  REEL_PLAIN_KERNEL(schur, SchurArgs)
  REEL_PLAIN_KERNEL(solve, SolveArgs)
  REEL_PLAIN_KERNEL(triangular_solve, TriangularSolveArgs)
  REEL_PLAIN_KERNEL(sylvester, SylvesterArgs)
  REEL_PLAIN_KERNEL(lu, LuArgs)
  REEL_PLAIN_KERNEL(cholesky, CholeskyArgs)
  REEL_PLAIN_KERNEL(qr, QrArgs)
  REEL_PLAIN_KERNEL(determinant, DeterminantArgs)
  REEL_PLAIN_KERNEL(pinv, PinvArgs)
  REEL_PLAIN_KERNEL(polar_factor, PolarFactorArgs)
#undef REEL_PLAIN_KERNEL
  std::int64_t eig(const EigArgs& a) override {
    std::int64_t result = 0;
    work("eig", [&] { result = cpu_.eig(a); });
    return result;
  }
  std::int64_t spectral_radius(const SpectralRadiusArgs& a) override {
    std::int64_t result = 0;
    work("spectral_radius", [&] { result = cpu_.spectral_radius(a); });
    return result;
  }

 protected:
  /// A kernel, or a reading, is asked for.
  virtual void asked() {}

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
  /// A fused run with copies of all that its arguments point to.
  struct Run {
    explicit Run(const FusedArgs& a)
        : rows(a.rows),
          columns(a.columns),
          calls(a.calls.begin(), a.calls.end()),
          operands(a.operands.begin(), a.operands.end()) {
      for (const FusedCall& c : calls) {
        params.push_back(c.kind == FusedCall::Kind::map   ? params_of<UnaryFunctors>(c.functor, c.params)
                         : c.kind == FusedCall::Kind::zip ? params_of<BinaryFunctors>(c.functor, c.params)
                                                          : std::vector<std::byte>());
      }
    }
    void compute() const {
      std::vector<FusedCall> now = calls;
      for (std::size_t i = 0; i < now.size(); ++i) now[i].params = params[i].data();
      fused_by_cpu({rows, columns, now, operands});
    }
    std::int64_t rows, columns;
    std::vector<FusedCall> calls;
    std::vector<FusedOperand> operands;
    std::vector<std::vector<std::byte>> params;
  };

  template <class... F>
  static std::vector<std::size_t> sizes(TypeList<F...>) {
    return {sizeof(F)...};
  }
  template <class Functors>
  static std::vector<std::byte> params_of(int functor, const void* params) {
    static const std::vector<std::size_t> bytes = sizes(Functors{});
    const auto* first = static_cast<const std::byte*>(params);
    return {first, first + bytes[static_cast<std::size_t>(functor)]};
  }
  static void spoil(std::byte* data, std::size_t bytes) { std::memset(data, 0xff, bytes); }

  template <class F>
  void work(std::string_view kernel, F f) {
    asked();
    if (!writing_) {
      ++kernels;
      return f();
    }
    const auto* const row = std::find_if(std::begin(cuda::kernel_table), std::end(cuda::kernel_table),
                                         [&](const cuda::KernelRow& r) { return r.name == kernel; });
    if (row->how == cuda::How::noted) {
      writing_->calls.emplace_back([this, f = std::move(f)] {
        try {
          f();
        } catch (const RuleError& e) {
          fault_ = e.what();
        }
      });
      return;
    }
    if (row->how != cuda::How::native) throw NotCapturable("it needs a value on the host");
    writing_->calls.emplace_back(std::move(f));
  }

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
