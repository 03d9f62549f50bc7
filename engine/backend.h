// What a device must be able to do: plain kernels on plain pointers. Ops call these; a backend knows no op, no tensor
// and no tape. Every method has a default that says "not supported", so a new backend can grow one kernel at a time.
#pragma once
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kernels.h"

namespace reel {

class Backend;

/// A block of device memory with the count of tensors that look into it.
struct Storage {
  std::atomic<int> references{0};
  std::uint32_t version = 0;  // counts changes in place, so that a derivative can tell that a value it needs is gone
  Backend* backend = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Shared ownership of a Storage; the last one gives it back to its backend.
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
  std::size_t system_calls = 0;                                  // times the system was asked for memory
};

/// The most memory that a device can give, in words also: "this machine has 24.6 GB".
struct MemoryLimit {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  std::string text = "";
};
/// "4.1 GB", with 1 GB = 10^9 bytes.
std::string memory_text(double bytes);

/// Kernels that a backend has written down instead of running them, to be run as often as one likes on the same memory.
/// Blocks allocated meanwhile are its own: nobody else is given them. One that goes before stop() is given up.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Ends the writing down: what is asked for from here on is done at once, as ever.
  virtual void stop() = 0;
  /// Runs all of it; after stop().
  virtual void replay() = 0;
  /// How many kernels and copies it is.
  virtual std::size_t size() const = 0;
};
/// Thrown while writing down, at what cannot be: a number that the host wants to see. The Recording is of no use then.
struct CannotRecord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// What --device takes: "cpu", "cuda", "cuda:1".
  virtual std::string name() const = 0;
  /// Memory for `bytes` bytes, aligned for vector loads; throws OutOfMemory when there is none.
  virtual Storage* allocate(std::size_t bytes) = 0;
  virtual void release(Storage* storage) = 0;
  virtual MemoryUse memory() const { return {}; }
  virtual MemoryLimit memory_limit() const { return {}; }
  /// Counts the peak anew from what is live now.
  virtual void reset_peak() {}
  virtual void read(void* host, const void* device, std::size_t bytes) = 0;
  virtual void write(void* device, const void* host, std::size_t bytes) = 0;
  /// Threads that kernels may use; ignored where it has no meaning.
  virtual void set_threads(int) {}
  virtual int threads() const { return 1; }
  /// May time loops take rows of the batch apart, and do fused runs go block by block through memory of the host? True
  /// for processors that have caches to keep; false: calls and runs of a step are kernels for the whole batch, and
  /// local values of a run have no memory.
  virtual bool runs_in_blocks() const { return false; }
  /// Calls f(part) for all parts, at the same time where there are threads; kernels called inside f stay on its thread.
  /// Throws what f throws.
  virtual void parallel(int parts, const std::function<void(int)>& f) {
    for (int p = 0; p < parts; ++p) f(p);
  }
  /// Kernels are written down from here on and not run, until Recording::stop(); null: this backend does not do that.
  virtual std::unique_ptr<Recording> record() { return nullptr; }

  virtual void fill(const FillArgs&) { unsupported("fill"); }
  virtual void copy(const CopyArgs&) { unsupported("copy"); }
  virtual void cast(const CastArgs&) { unsupported("cast"); }
  virtual void map(const MapArgs&) { unsupported("map"); }
  virtual void zip(const ZipArgs&) { unsupported("zip"); }
  virtual void select(const SelectArgs&) { unsupported("select"); }
  /// Can this call, whose operands are not numbered yet, be a part of a fused run?
  virtual bool fuses(const FusedCall&) { return false; }
  /// Looks up what runs a call of a fused run: once, before many runs.
  virtual void resolve(FusedCall&) {}
  virtual void fused(const FusedArgs&) { unsupported("fused"); }
  /// Calls step(i) for i = 0 .. steps - 1. Each step makes the same calls, on memory that lies equally far apart from
  /// step to step, or in one of two places in turn; so a backend may look at a few and do all of them its own way. What
  /// the next step writes over need not be there in the end.
  virtual void loop(std::int64_t steps, const std::function<void(std::int64_t i)>& step) {
    for (std::int64_t i = 0; i < steps; ++i) step(i);
  }
  virtual void reduce(const ReduceArgs&) { unsupported("reduce"); }
  virtual void argmax(const ArgmaxArgs&) { unsupported("argmax"); }
  virtual void cumsum(const CumsumArgs&) { unsupported("cumsum"); }
  virtual void row_function(const RowFunctionArgs&) { unsupported("row_function"); }
  virtual void gemm(const GemmArgs&) { unsupported("gemm"); }
  /// The four lookups throw Error when an index is out of range.
  virtual void gather_rows(const RowsArgs&) { unsupported("gather_rows"); }
  virtual void scatter_add_rows(const RowsArgs&) { unsupported("scatter_add_rows"); }
  virtual void take_along(const TakeArgs&) { unsupported("take_along"); }
  virtual void put_along(const TakeArgs&) { unsupported("put_along"); }
  virtual void rotate(const RotateArgs&) { unsupported("rotate"); }
  virtual void random(const RandomArgs&) { unsupported("random"); }
  virtual void update(const UpdateArgs&) { unsupported("update"); }
  /// The sums of squares of many arrays, each to its place in memory of the device.
  virtual void sums_of_squares(DType, std::span<const SquaresOf>) { unsupported("sums_of_squares"); }
  /// *scale = what an update takes gradients times, so that their norm is at most `limit`: numbers are the loss and n -
  /// 1 sums of squares, in memory of the device as scale is. NaN, for no update, if loss or norm is not finite.
  virtual void clip(std::int64_t, const double*, double, double*) { unsupported("clip"); }
  virtual void fft(const FftArgs&) { unsupported("fft"); }
  virtual void real_fft(const RealFftArgs&) { unsupported("real_fft"); }

  // Linear algebra: spectra. They throw Error when an element is not finite or the iteration does not converge.
  /// Returns how many matrices have no basis of eigenvectors.
  virtual std::int64_t eig(const EigArgs&) { unsupported("eig"); }
  virtual void eigh(const EighArgs&) { unsupported("eigh"); }
  virtual void svd(const SvdArgs&) { unsupported("svd"); }
  virtual void schur(const SchurArgs&) { unsupported("schur"); }
  /// Returns how many matrices have no simple eigenvalue of largest modulus.
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
  virtual void polar(const PolarArgs&) { unsupported("polar"); }

  /// Throws OutOfMemory when `bytes` are more than the device has: "[subject] what needs 4 TB, this machine has 24.6
  /// GB. Hint: hint". For what is known to be large before anything of it is asked for.
  void require_memory(const std::string& subject, const std::string& what, double bytes, const std::string& hint) const;

 protected:
  [[noreturn]] void unsupported(const char* kernel) const;
};

/// Makes the backend of a device that has just been asked for; `rest` is what follows the kind in its name, as ":1".
/// Throws Error when there is no such device.
using MakeBackend = std::unique_ptr<Backend> (*)(const std::string& rest);
/// Makes a kind of device known ("cuda"); one line at the end of its backend's main file. Nothing is looked for until
/// such a device is asked for.
bool register_backend(const std::string& kind, MakeBackend make);
/// The device called `name` ("cpu", "cuda:1"), or the default one; throws Error that lists the kinds this build has.
Backend& backend(const std::string& name = {});
/// Where tensors are made when nobody says where; "cpu" before the first call. Throws as backend() does.
Backend& set_default_backend(const std::string& name);
/// The kinds of device that this build has.
std::vector<std::string> backend_names();

}  // namespace reel
