// Memory, errors, and the parts of a device. Blocks come from cudaMalloc and are cached in free lists. All work is in
// one stream, so a block can be reused while the GPU still works on it: the new owner's kernels run later.
#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/codegen/loop_layout.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/fft_plans.h"
#include "backends/cuda/linalg/matrices.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/graph.h"
#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/runtime/staging.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

void* device_memory(std::size_t bytes) {
  void* block = nullptr;
  const cudaError_t code = cudaMalloc(&block, bytes);
  if (code != cudaErrorMemoryAllocation)
    return check(code, "cudaMalloc"), block;  // an earlier kernel's error comes here
  cudaGetLastError();                         // clears the error: the caller reports out of memory
  return nullptr;
}
void free_device_memory(void* block, std::size_t) { cudaFree(block); }

/// Throws Error if there is no such GPU.
void find_device(const DeviceOptions& options) {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code != cudaSuccess || devices == 0)
    throw Error("device", fmt::format("\"{}\": no NVIDIA GPU can be used here: {}. Hint: --device cpu", options.name(),
                                      code == cudaSuccess ? "there is none" : cudaGetErrorString(code)));
  if (options.index >= devices)
    throw Error("device", fmt::format("\"{}\": the last GPU here is cuda:{}", options.name(), devices - 1));
}

}  // namespace

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // otherwise the next launch would report it again
  const std::string text = fmt::format("{}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory("cuda", text);
  throw Error("cuda", text);
}

Cuda::Cuda(const DeviceOptions& options) : options_(options), allocator_(device_memory, free_device_memory) {
  find_device(options);
  make_current();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  staging_ = std::make_unique<Staging>();
  faults_ = std::make_unique<Faults>(stream_);
  libraries_ = std::make_unique<Libraries>(stream_, options.precision);
  matrix_kernels_ = matrix_kernels(stream_, [this](std::int64_t n) { launched("linear algebra", {n}); });
  fft_plans_ = std::make_unique<FftPlans>(*libraries_, stream_);
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, options.index), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, options.index), "cudaDeviceGetAttribute");
  generated_ = std::make_unique<GeneratedKernels>(10 * major + minor);
  int processors = 0, shared = 0;
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, options.index), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.index),
        "cudaDeviceGetAttribute");
  limits_ =
      std::make_unique<LoopLimits>(LoopLimits{.processors = processors, .shared = shared, .always = options.at_once});
  limits_->costs.flops = product_flops(options.precision);
  if (major >= 8 && !options.fma) limits_->tensor_products = options.precision == Precision::strict ? 3 : 1;
}

Cuda::~Cuda() {  // the stream last: libraries use it
  fft_plans_.reset();
  libraries_.reset();
  cudaStreamDestroy(stream_);
}

cudaStream_t Cuda::stream() {
  make_current();
  return stream_;
}

void Cuda::make_current() {
  int current = -1;  // all libraries of the process may have set it
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != options_.index) check(cudaSetDevice(options_.index), "cudaSetDevice");
}

void Cuda::launched(const char* kernel, const char* what, std::initializer_list<std::int64_t> sizes) {
  cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess && options_.sync) code = cudaStreamSynchronize(stream_);
  if (code == cudaSuccess) {
    if (capturing_) capturing_->count_kernel();
    return;
  }
  std::string text = fmt::format("{}{}{} of sizes", kernel, *what ? " " : "", what);
  for (std::int64_t n : sizes) text += fmt::format(" {}", n);
  check(code, text.c_str());
}

Storage* Cuda::allocate(std::size_t bytes) { return allocate_from(capturing_ ? capturing_->pool() : nullptr, bytes); }

Storage* Cuda::allocate_from(const std::shared_ptr<CachingAllocator>& pool, std::size_t bytes) {
  make_current();
  void* block = (pool ? *pool : allocator_).allocate(bytes);
  if (!block) {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw OutOfMemory(name(),
                      fmt::format("out of memory: {} bytes were asked for, {} are in use by tensors, {} of the GPU's "
                                  "{} are free. Hint: a smaller batch, or --checkpoint-every",
                                  bytes, memory().live_bytes, free, total));
  }
  if (headers_.empty()) headers_.push_back(std::make_unique<Block>());
  Block* const storage = headers_.back().release();
  headers_.pop_back();
  storage->backend = this;
  storage->data = static_cast<std::byte*>(block);
  storage->bytes = bytes;
  storage->version = 0;
  storage->pool = pool;
  return storage;
}

void Cuda::release(Storage* storage) {
  auto* const block = static_cast<Block*>(storage);
  if (capturing_ && !block->pool) return capturing_->keep(block);
  (block->pool ? *block->pool : allocator_).release(block->data, block->bytes);
  block->pool.reset();
  headers_.emplace_back(block);
}

void Cuda::read(void* host, const void* device, std::size_t bytes) {
  not_captured("it needs a value on the host");
  if (bytes == 0) return faults_->check_all(stream(), false);
  faults_->fetch(stream());
  staging_->read(host, device, bytes, stream());
  faults_->check_fetched(stream(), false);
}

void Cuda::write(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  if (capturing_) return copy_bytes(device, capturing_->constant(host, bytes), bytes);
  staging_->write(device, host, bytes, stream());
}

[[maybe_unused]] static const bool registered = register_backend(
    "cuda",
    [](const std::string& rest) -> std::unique_ptr<Backend> { return std::make_unique<Cuda>(parse_device(rest)); });

}  // namespace reel::cuda
