// What a device must be able to do: plain kernels on plain pointers. Ops call these; a backend knows no op, no tensor
// and no tape. Every method has a default that says "not supported", so a new backend can grow one kernel at a time.
#pragma once
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/dtype.h"
#include "engine/loop.h"

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

// Arguments of the kernels. Pointers are to contiguous row-major elements unless a Loop says how to walk them.

struct FillArgs {  // out[i] = value
  DType dtype;
  std::int64_t n;
  std::complex<double> value;
  void* out;
};
struct CopyArgs {  // out[..] = in[..]; operand 0 is in, 1 is out; elements are moved, not looked at
  std::size_t element_bytes;
  const Loop<2>& loop;
  const void* in;
  void* out;
};
struct CastArgs {  // complex to real keeps the real part; to boolean is "not zero"
  DType from, to;
  std::int64_t n;
  const void* in;
  void* out;
};
struct MapArgs {  // out[i] = f(x[i]); functor indexes UnaryFunctors, params is the functor object
  int functor;
  const void* params;
  DType dtype;
  std::int64_t n;
  const void* x;
  void* out;
};
struct ZipArgs {  // out[..] = f(a[..], b[..]); operands a, b, out; functor indexes BinaryFunctors
  int functor;
  DType dtype;
  const Loop<3>& loop;
  const void *a, *b;
  void* out;
};
struct SelectArgs {  // out[i] = condition[i] ? a[i] : b[i]
  std::size_t element_bytes;
  std::int64_t n;
  const bool* condition;
  const void *a, *b;
  void* out;
};
enum class Reduction { sum, max };
struct ReduceArgs {  // out is filled with the neutral element, then combined; operand 0 is in, 1 is out (stride 0:
                     // reduced)
  Reduction kind;
  DType dtype;
  const Loop<2>& loop;
  std::int64_t out_numel;
  const void* in;
  void* out;
};
struct ArgmaxArgs {  // out[r] = the first place of the largest of in[r, 0..n)
  DType dtype;
  std::int64_t rows, n;
  const void* in;
  std::int32_t* out;
};
struct GemmArgs {  // c[i] = op(a[i]) op(b[i]) (+ c[i]) for i < batch: [m, k] [k, n] -> [m, n]; stride 0 shares an
                   // operand
  DType dtype;
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* c;
};
struct RowsArgs {  // gather: out[i, :] = table[index[i], :]; scatter_add: table[index[i], :] += rows[i, :]
  DType dtype;
  std::int64_t count, rows, width;
  const std::int32_t* index;
  const void* in;
  void* out;
};
struct PickArgs {  // pick: out[r] = in[r, index[r]]; place: out[r, :] = 0 but out[r, index[r]] = in[r]
  DType dtype;
  std::int64_t rows, n;
  const std::int32_t* index;
  const void* in;
  void* out;
};
enum class Distribution { uniform, normal };
struct RandomArgs {  // uniform in [a, b), or normal with mean a and deviation b; element i depends on seed, stream and
                     // i alone
  Distribution distribution;
  DType dtype;
  std::int64_t n;
  double a, b;
  std::uint64_t seed, stream;
  void* out;
};
struct UpdateArgs {  // an optimiser's step in place; rule indexes UpdateRules, params is the rule object
  int rule;
  const void* params;
  DType dtype;
  std::int64_t n;
  double gradient_scale;  // the gradient is taken times this,
  double gradient_limit;  // then each element within +-this
  void* parameter;
  const void* gradient;
  void* state[3];
};

struct MemoryUse {
  std::size_t live_bytes = 0, cached_bytes = 0, peak_bytes = 0;  // of blocks, rounded up to their size class
  std::size_t system_calls = 0;                                  // times the system was asked for memory
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// What --device takes: "cpu", "cuda", "cuda:1".
  virtual std::string name() const = 0;
  /// Memory for `bytes` bytes, aligned for vector loads; throws Error when there is none.
  virtual Storage* allocate(std::size_t bytes) = 0;
  virtual void release(Storage* storage) = 0;
  virtual MemoryUse memory() const { return {}; }
  virtual void read(void* host, const void* device, std::size_t bytes) = 0;
  virtual void write(void* device, const void* host, std::size_t bytes) = 0;
  /// Threads that kernels may use; ignored where it has no meaning.
  virtual void set_threads(int) {}

  virtual void fill(const FillArgs&) { unsupported("fill"); }
  virtual void copy(const CopyArgs&) { unsupported("copy"); }
  virtual void cast(const CastArgs&) { unsupported("cast"); }
  virtual void map(const MapArgs&) { unsupported("map"); }
  virtual void zip(const ZipArgs&) { unsupported("zip"); }
  virtual void select(const SelectArgs&) { unsupported("select"); }
  virtual void reduce(const ReduceArgs&) { unsupported("reduce"); }
  virtual void argmax(const ArgmaxArgs&) { unsupported("argmax"); }
  virtual void gemm(const GemmArgs&) { unsupported("gemm"); }
  /// Throws Error when an index is not in [0, rows).
  virtual void gather_rows(const RowsArgs&) { unsupported("gather_rows"); }
  virtual void scatter_add_rows(const RowsArgs&) { unsupported("scatter_add_rows"); }
  virtual void pick(const PickArgs&) { unsupported("pick"); }
  virtual void place(const PickArgs&) { unsupported("place"); }
  virtual void random(const RandomArgs&) { unsupported("random"); }
  virtual void update(const UpdateArgs&) { unsupported("update"); }
  /// The sum of squares of n elements, as a number on the host.
  virtual double sum_of_squares(DType, std::int64_t, const void*) { unsupported("sum_of_squares"); }

 protected:
  [[noreturn]] void unsupported(const char* kernel) const;
};

/// Makes a backend known; one line at the end of its main file.
bool register_backend(std::unique_ptr<Backend> backend);
/// The backend called `name`; throws Error that lists the known ones.
Backend& backend(const std::string& name = "cpu");
std::vector<std::string> backend_names();

}  // namespace reel
