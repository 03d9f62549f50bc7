// The interface of a device: plain kernels on plain pointers. Ops call these; a backend knows no op, no tensor and no
// tape. Every kernel has a default that throws "not supported", so a new backend can grow one kernel at a time.
#pragma once
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device/kernels.h"

namespace reel {

class Backend;

/// A reference-counted block of device memory that tensors share.
struct Storage {
  std::atomic<int> references{0};
  std::uint32_t version = 0;  // counts in-place changes, so that a vjp detects that a saved value was overwritten
  Backend* backend = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Shared ownership of a Storage; the last owner releases it to its backend.
class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) { retain(); }
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) { retain(); }
  StoragePtr(StoragePtr&& other) noexcept : storage_(other.storage_) { other.storage_ = nullptr; }
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    if (storage_ && storage_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  void retain() {
    if (storage_) storage_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void destroy();
  Storage* storage_ = nullptr;
};

struct MemoryUse {
  std::size_t live_bytes = 0, cached_bytes = 0, peak_bytes = 0;  // of blocks, rounded up to their size class
  std::size_t system_calls = 0;                                  // allocations from the system
};

/// The most memory that a device can allocate, and a text for messages: "this machine has 24.6 GB".
struct MemoryLimit {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  std::string text = "";
};
/// "4.1 GB", with 1 GB = 10^9 bytes.
std::string memory_text(double bytes);
/// An amount with the prefix of its unit: "2.6 Mflop".
std::string amount_text(double amount, const char* unit);

/// Kernels that a backend captured instead of running them, to replay any number of times on the same memory. Blocks
/// allocated during the capture belong to the graph and are not reused. Destroying it before stop() abandons the
/// capture.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Ends the capture; later kernels run immediately again.
  virtual void stop() = 0;
  /// Runs all captured kernels. Call it after stop().
  virtual void replay() = 0;
  /// The number of captured kernels and copies.
  virtual std::size_t size() const = 0;
};
/// Thrown during a capture by an operation that cannot be captured, such as reading a value on the host. The
/// CapturedGraph is unusable then.
struct NotCapturable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Backend {
 public:
  Backend();
  virtual ~Backend() = default;
  /// A number that no other backend of this process has or had.
  std::uint64_t serial() const { return serial_; }
  /// What --device takes: "cpu", "cuda", "cuda:1".
  virtual std::string name() const = 0;
  /// Allocates `bytes` bytes, aligned for vector loads; throws OutOfMemory.
  virtual Storage* allocate(std::size_t bytes) = 0;
  virtual void release(Storage* storage) = 0;
  virtual MemoryUse memory() const { return {}; }
  virtual MemoryLimit memory_limit() const { return {}; }
  /// Resets the peak to the bytes that are live now.
  virtual void reset_peak() {}
  virtual void read(void* host, const void* device, std::size_t bytes) = 0;
  virtual void write(void* device, const void* host, std::size_t bytes) = 0;
  /// The number of threads that kernels may use; ignored by devices without host threads.
  virtual void set_threads(int) {}
  virtual int threads() const { return 1; }
  /// True for CPUs, where caches matter: time loops shard the batch, and fusion groups run block by block in host
  /// memory. False: each call or fusion group of a step is a kernel on the whole batch, and its local operands have no
  /// buffers.
  virtual bool runs_in_blocks() const { return false; }
  /// Calls f(part) for all parts, in parallel if there are threads. Kernels called inside f run on f's thread. Throws
  /// what f throws.
  virtual void parallel(int parts, const std::function<void(int)>& f) {
    for (int p = 0; p < parts; ++p) f(p);
  }
  /// Captures kernels from here on instead of running them, until CapturedGraph::stop(). Null: this backend cannot
  /// capture.
  virtual std::unique_ptr<CapturedGraph> capture() { return nullptr; }

  virtual void fill(const FillArgs&) { unsupported("fill"); }
  virtual void copy(const CopyArgs&) { unsupported("copy"); }
  virtual void cast(const CastArgs&) { unsupported("cast"); }
  virtual void map(const MapArgs&) { unsupported("map"); }
  virtual void zip(const ZipArgs&) { unsupported("zip"); }
  virtual void select(const SelectArgs&) { unsupported("select"); }
  /// Can this call join a fusion group? Its operands have no indices yet.
  virtual bool fuses(const FusedCall&) { return false; }
  /// Sets the kernel of a fused call, once before many runs.
  virtual void resolve(FusedCall&) {}
  virtual void fused(const FusedArgs&) { unsupported("fused"); }
  /// Calls step(i) for i = 0 .. steps - 1. Each step makes the same kernel calls, on addresses that advance by a
  /// constant stride a step or are double-buffered. So a backend may trace a few steps and then run all of them in its
  /// own way. Values that a later step overwrites need not exist afterwards.
  virtual void loop(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
    for (std::int64_t i = 0; i < steps; ++i) step(i);
  }
  virtual void reduce(const ReduceArgs&) { unsupported("reduce"); }
  virtual void argmax(const ArgmaxArgs&) { unsupported("argmax"); }
  virtual void cumsum(const CumsumArgs&) { unsupported("cumsum"); }
  virtual void row_function(const RowFunctionArgs&) { unsupported("row_function"); }
  virtual void gemm(const GemmArgs&) { unsupported("gemm"); }
  /// The next four kernels throw Error when an index is out of range.
  virtual void gather_rows(const RowsArgs&) { unsupported("gather_rows"); }
  virtual void segment_sum(const RowsArgs&) { unsupported("segment_sum"); }
  virtual void take_along(const TakeArgs&) { unsupported("take_along"); }
  virtual void scatter_add(const TakeArgs&) { unsupported("scatter_add"); }
  virtual void rotate(const RotateArgs&) { unsupported("rotate"); }
  virtual void random(const RandomArgs&) { unsupported("random"); }
  virtual void update(const UpdateArgs&) { unsupported("update"); }
  /// The sum of squares of each of many arrays, written to device memory.
  virtual void sums_of_squares(DType, std::span<const SquaresOf>) { unsupported("sums_of_squares"); }
  /// clip(n, numbers, limit, scale): *scale = the factor that clips the gradients' norm to `limit`. The numbers are the
  /// loss and n - 1 sums of squares; they and scale are in device memory. NaN, which means no update, if the loss or
  /// the norm is not finite.
  virtual void clip(std::int64_t, const double*, double, double*) { unsupported("clip"); }
  virtual void fft(const FftArgs&) { unsupported("fft"); }
  virtual void real_fft(const RealFftArgs&) { unsupported("real_fft"); }

  // Linear algebra: spectra. These throw Error when an element is not finite or the iteration does not converge.
  /// Returns the number of matrices that have no basis of eigenvectors.
  virtual std::int64_t eig(const EigArgs&) { unsupported("eig"); }
  virtual void eigh(const EighArgs&) { unsupported("eigh"); }
  virtual void svd(const SvdArgs&) { unsupported("svd"); }
  virtual void schur(const SchurArgs&) { unsupported("schur"); }
  /// Returns the number of matrices whose eigenvalue of largest modulus is not simple.
  virtual std::int64_t spectral_radius(const SpectralRadiusArgs&) { unsupported("spectral_radius"); }

  // Linear algebra: solving
  virtual void solve(const SolveArgs&) { unsupported("solve"); }
  virtual void triangular_solve(const TriangularSolveArgs&) { unsupported("triangular_solve"); }
  virtual void sylvester(const SylvesterArgs&) { unsupported("sylvester"); }
  virtual void lu(const LuArgs&) { unsupported("lu"); }
  virtual void cholesky(const CholeskyArgs&) { unsupported("cholesky"); }
  virtual void qr(const QrArgs&) { unsupported("qr"); }
  virtual void determinant(const DeterminantArgs&) { unsupported("determinant"); }
  virtual void pinv(const PinvArgs&) { unsupported("pinv"); }
  virtual void polar_factor(const PolarFactorArgs&) { unsupported("polar_factor"); }

  /// Throws OutOfMemory when `bytes` are more than the device has: "[subject] what need 4 TB, this machine has 24.6 GB.
  /// Hint: hint". For sizes that are known before anything is allocated.
  void require_memory(const std::string& subject, const std::string& what, double bytes, const std::string& hint) const;

 protected:
  [[noreturn]] void unsupported(const char* kernel) const;

 private:
  std::uint64_t serial_;
};

/// Creates the backend of a device on its first use; `rest` is the part of its name after the kind, such as ":1".
/// Throws Error when there is no such device.
using MakeBackend = std::unique_ptr<Backend> (*)(const std::string& rest);
/// Registers a kind of device ("cuda"): one line at the end of its backend's main file. `make` is called on first use.
bool register_backend(const std::string& kind, MakeBackend make);
/// The device called `name` ("cpu", "cuda:1"), or the default one. Throws Error that lists the kinds of this build.
Backend& backend(const std::string& name = {});
/// Sets the device of new tensors; "cpu" before the first call. Throws as backend() does.
Backend& set_default_backend(const std::string& name);
/// The kinds of device in this build.
std::vector<std::string> backend_names();

}  // namespace reel
